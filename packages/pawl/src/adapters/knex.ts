import { invalidTransaction, type Transaction } from "../core/transaction.ts";
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
  if (trx.isTransaction !== true)
    throw invalidTransaction("fromKnex takes what knex.transaction gives, not knex itself.");
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
