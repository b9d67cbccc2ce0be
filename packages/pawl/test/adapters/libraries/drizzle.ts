import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { integer, pgTable, type PgTransaction } from "drizzle-orm/pg-core";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import pg from "pg";
import postgres from "postgres";
import { fromDrizzle, withDrizzle, type Transaction } from "../../../src/adapters/index.ts";
import type { Library, OpenTransaction } from "../library.ts";

const purchase = pgTable("purchase", { id: integer("id").primaryKey() });

/** Of any driver. */
type AnyTransaction = PgTransaction<never>;

function opened(tx: Transaction, handle: unknown): OpenTransaction {
  const drizzle = handle as AnyTransaction;
  return {
    tx,
    handle,
    insert: (id) => drizzle.insert(purchase).values({ id }),
    nested: (act) => drizzle.transaction((inner) => act(opened(fromDrizzle(inner), inner))),
  };
}

export const drizzleWithPg: Library = {
  name: "Drizzle on node-postgres",
  hasSavepoints: true,
  async open(connectionString) {
    const pool = new pg.Pool({ connectionString, max: 3 });
    pool.on("error", () => {});
    // One that dies while it is lent says so, and unheard would end the process.
    pool.on("connect", (client) => void client.on("error", () => {}));
    const db = drizzleOnPg(pool);
    return {
      transactor: (options) => withDrizzle(db, options),
      insert: (tx, id) => opened(fromDrizzle(tx as AnyTransaction), tx).insert(id),
      transaction: (act) => db.transaction((tx) => act(opened(fromDrizzle(tx), tx))),
      wrapOutside: () => fromDrizzle(db as unknown as AnyTransaction),
      close: () => pool.end(),
    };
  },
};

export const drizzleWithPostgresJs: Library = {
  name: "Drizzle on postgres.js",
  hasSavepoints: true,
  async open(url) {
    const client = postgres(url, { max: 3 });
    const db = drizzleOnPostgresJs(client);
    return {
      transactor: (options) => withDrizzle(db, options),
      insert: (tx, id) => opened(fromDrizzle(tx as AnyTransaction), tx).insert(id),
      transaction: (act) => db.transaction((tx) => act(opened(fromDrizzle(tx), tx))),
      wrapOutside: () => fromDrizzle(db as unknown as AnyTransaction),
      close: () => client.end({ timeout: 1 }),
    };
  },
};
