export type { Transaction } from "../core/transaction.ts";
export type { BeginOptions, Completions, Isolation, Transactor } from "../core/transactor.ts";
export {
  completionTableSql,
  installCompletionTable,
  type CompletionTableOptions,
} from "./completion-table.ts";
export type { TransactorOptions } from "./create-transactor.ts";
export { fromDrizzle, withDrizzle, type DrizzleDatabase, type DrizzleTransaction } from "./drizzle.ts";
export { fromKnex, withKnex, type KnexDatabase, type KnexTransaction } from "./knex.ts";
export { fromKysely, withKysely, type KyselyDatabase, type KyselyTransaction } from "./kysely.ts";
export { withPg, type PgClientOf, type PgPool } from "./pg.ts";
export {
  fromPostgresJs,
  withPostgresJs,
  type PostgresJsDatabase,
  type PostgresJsTransaction,
} from "./postgres-js.ts";
export {
  fromPrisma,
  withPrisma,
  type PrismaDatabase,
  type PrismaTransaction,
  type PrismaTransactorOptions,
} from "./prisma.ts";
export { fromTypeOrm, withTypeOrm, type TypeOrmDatabase, type TypeOrmTransaction } from "./type-orm.ts";
