import { invalidTransaction, type Transaction } from "../core/transaction.ts";
import { rowsOf } from "./rows-of.ts";

/** What `sql.begin` of postgres.js gives. */
export interface PostgresJsTransaction {
  unsafe(text: string, values?: never): PromiseLike<unknown>;
  savepoint(act: never): PromiseLike<unknown>;
}

/**
 * A transaction of postgres.js.
 * @throws {PawlError} `INVALID_TRANSACTION` for what is none, such as the outer `sql`
 * @example
 * await sql.begin(async (sql) => {
 *   await sql`insert into orders (id) values (9182)`;
 *   await pawl.start(checkout, { orderId: 9182 }, { tx: fromPostgresJs(sql) });
 * });
 */
export function fromPostgresJs(sql: PostgresJsTransaction): Transaction {
  if (typeof sql.savepoint !== "function")
    throw invalidTransaction("fromPostgresJs takes what sql.begin gives, not the outer sql.");
  return {
    async query(text, values) {
      return rowsOf(await sql.unsafe(text, values as never));
    },
  };
}
