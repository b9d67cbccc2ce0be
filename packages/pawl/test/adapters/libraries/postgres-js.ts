import postgres from "postgres";
import { fromPostgresJs, withPostgresJs } from "../../../src/adapters/index.ts";
import type { Library, OpenTransaction } from "../library.ts";

function opened(sql: postgres.TransactionSql): OpenTransaction {
  return {
    tx: fromPostgresJs(sql),
    handle: sql,
    insert: (id) => sql`insert into purchase (id) values (${id})`.execute(),
    async nested(act) {
      await sql.savepoint((inner) => act(opened(inner)));
    },
  };
}

export const postgresJs: Library = {
  name: "postgres.js",
  hasSavepoints: true,
  async open(url) {
    // It renames the columns of every answer, of ours too.
    const sql = postgres(url, { max: 3, transform: postgres.camel });
    return {
      transactor: (options) => withPostgresJs(sql, options),
      insert: (tx, id) => opened(tx as postgres.TransactionSql).insert(id),
      async transaction(act) {
        await sql.begin((inner) => act(opened(inner)));
      },
      wrapOutside: () => fromPostgresJs(sql as unknown as postgres.TransactionSql),
      close: () => sql.end({ timeout: 1 }),
    };
  },
};
