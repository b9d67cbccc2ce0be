import type { Transaction } from "../core/transaction.ts";
import type { Transactor } from "../core/transactor.ts";
import { createTransactor, type TransactorOptions } from "./create-transactor.ts";
import { assertMethod, assertTransactionOf } from "./refuse-others.ts";
import { rowsOf } from "./rows-of.ts";

/** What `db.transaction` of Drizzle gives, with any of its drivers for Postgres. */
export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>;
  rollback(): unknown;
}

/**
 * A transaction of Drizzle.
 * @throws {PawlError} `INVALID_TRANSACTION` for what is none, such as `db` itself
 * @example
 * await db.transaction(async (tx) => {
 *   await tx.insert(orders).values({ id: 9182 });
 *   await pawl.start(checkout, { orderId: 9182 }, { tx: fromDrizzle(tx) });
 * });
 */
export function fromDrizzle(tx: DrizzleTransaction): Transaction {
  assertTransactionOf(
    () => typeof tx.rollback === "function",
    "fromDrizzle takes what db.transaction gives, not db itself.",
  );
  return {
    async query(text, values) {
      // Stands for what its sql`…` makes, which is code of its own: built into text and values when it is executed.
      const built = { sql: text, params: values };
      const wrapper = { getSQL: () => ({ toQuery: () => built }) };
      return rowsOf(await tx.execute(wrapper as never));
    },
  };
}

/** A database of Drizzle. */
export interface DrizzleDatabase<Tx> {
  transaction<T>(work: (tx: Tx) => Promise<T>, config?: never): Promise<T>;
}

/**
 * Transactions of Drizzle, with any of its drivers for Postgres.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * await ctx.transaction("record", async (tx) => {
 *   await tx.insert(orders).values({ id: 9182 });
 * }, { on: withDrizzle(db) });
 */
export function withDrizzle<Tx extends DrizzleTransaction>(
  db: DrizzleDatabase<Tx>,
  options: TransactorOptions = {},
): Transactor<Tx> {
  assertMethod("withDrizzle", db, "transaction");
  return createTransactor<Tx>("withDrizzle", options, (work, { isolation } = {}) => {
    const config = isolation === undefined ? undefined : { isolationLevel: isolation };
    return db.transaction((tx) => work(tx, fromDrizzle(tx)), config as never);
  });
}
