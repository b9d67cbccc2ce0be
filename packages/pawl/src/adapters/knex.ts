import type { Transaction } from "../core/transaction.ts";
import type { Transactor } from "../core/transactor.ts";
import { createTransactor, type TransactorOptions } from "./create-transactor.ts";
import { assertMethod, assertTransactionOf } from "./refuse-others.ts";
import { rowsOf } from "./rows-of.ts";

/** What `knex.transaction` gives. */
export interface KnexTransaction {
  readonly isTransaction?: boolean;
  raw(text: string, bindings: never): PromiseLike<unknown>;
}

/**
 * A transaction of Knex.
 * @throws {PawlError} `INVALID_TRANSACTION` for what is none, such as `knex` itself
 * @example
 * await knex.transaction(async (trx) => {
 *   await trx("orders").insert({ id: 9182 });
 *   await pawl.start(checkout, { orderId: 9182 }, { tx: fromKnex(trx) });
 * });
 */
export function fromKnex(trx: KnexTransaction): Transaction {
  assertTransactionOf(
    () => trx.isTransaction === true,
    "fromKnex takes what knex.transaction gives, not knex itself.",
  );
  return {
    async query(text, values) {
      const bindings: unknown[] = [];
      // Knex writes ? where Postgres has $1, and \? for a question mark.
      const raw = text.replaceAll("?", String.raw`\?`).replaceAll(/\$(\d+)/g, (_, place: string) => {
        bindings.push(values[Number(place) - 1]);
        return "?";
      });
      return rowsOf(await trx.raw(raw, bindings as never));
    },
  };
}

/** What the `knex` function makes. */
export interface KnexDatabase<Tx> {
  transaction<T>(work: (trx: Tx) => Promise<T> | void, config?: never): Promise<T>;
}

/**
 * Transactions of Knex.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * await ctx.transaction("record", async (trx) => {
 *   await trx("orders").insert({ id: 9182 });
 * }, { on: withKnex(knex) });
 */
export function withKnex<Tx extends KnexTransaction>(
  knex: KnexDatabase<Tx>,
  options: TransactorOptions = {},
): Transactor<Tx> {
  assertMethod("withKnex", knex, "transaction");
  return createTransactor<Tx>("withKnex", options, (work, { isolation } = {}) => {
    const config = isolation === undefined ? undefined : { isolationLevel: isolation };
    return knex.transaction((trx) => work(trx, fromKnex(trx)), config as never);
  });
}
