export type { Transaction } from "../core/transaction.ts";
export { fromDrizzle, type DrizzleTransaction } from "./drizzle.ts";
export { fromKnex, type KnexTransaction } from "./knex.ts";
export { fromKysely, type KyselyTransaction } from "./kysely.ts";
export { fromPostgresJs, type PostgresJsTransaction } from "./postgres-js.ts";
export { fromPrisma, type PrismaTransaction } from "./prisma.ts";
export { fromTypeOrm, type TypeOrmTransaction } from "./type-orm.ts";
