import type { Transaction } from "../core/transaction.ts";
import type { BeginOptions, Transactor } from "../core/transactor.ts";
import { createTransactor, type TransactorOptions } from "./create-transactor.ts";
import { assertMethod, assertTransactionOf } from "./refuse-others.ts";
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
  assertTransactionOf(
    () => typeof sql.savepoint === "function",
    "fromPostgresJs takes what sql.begin gives, not the outer sql.",
  );
  return {
    async query(text, values) {
      return rowsOf(await sql.unsafe(text, values as never));
    },
  };
}

/** What the `postgres` function makes. */
export interface PostgresJsDatabase<Tx> {
  begin<T>(options: string, work: (sql: Tx) => Promise<T>): Promise<unknown>;
}

/**
 * Transactions of postgres.js.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * await ctx.transaction("record", async (sql) => {
 *   await sql`insert into orders (id) values (9182)`;
 * }, { on: withPostgresJs(sql) });
 */
export function withPostgresJs<Tx extends PostgresJsTransaction>(
  sql: PostgresJsDatabase<Tx>,
  options: TransactorOptions = {},
): Transactor<Tx> {
  assertMethod("withPostgresJs", sql, "begin");
  return createTransactor<Tx>(
    "withPostgresJs",
    options,
    async <T>(
      work: (tx: Tx, handle: Transaction) => Promise<T>,
      { isolation }: BeginOptions = {},
    ): Promise<T> => {
      // It resolves arrays that the work answers, as if they were queries.
      const answers: T[] = [];
      await sql.begin(isolation === undefined ? "" : `isolation level ${isolation}`, async (tx) => {
        answers.push(await work(tx, fromPostgresJs(tx)));
      });
      return answers[0] as T;
    },
  );
}
