import type { Transaction } from "../core/transaction.ts";
import type { Isolation, Transactor } from "../core/transactor.ts";
import { createTransactor, type TransactorOptions } from "./create-transactor.ts";
import { assertMethod, assertTransactionOf } from "./refuse-others.ts";
import { rowsOf } from "./rows-of.ts";

/** What `db.transaction().execute` of Kysely gives, or `db.startTransaction().execute()`. */
export interface KyselyTransaction {
  readonly isTransaction: boolean;
  executeQuery(query: never): PromiseLike<unknown>;
}

/**
 * A transaction of Kysely.
 * @throws {PawlError} `INVALID_TRANSACTION` for what is none, such as `db` itself
 * @example
 * await db.transaction().execute(async (trx) => {
 *   await trx.insertInto("orders").values({ id: 9182 }).execute();
 *   await pawl.start(checkout, { orderId: 9182 }, { tx: fromKysely(trx) });
 * });
 */
export function fromKysely(trx: KyselyTransaction): Transaction {
  assertTransactionOf(
    () => trx.isTransaction,
    "fromKysely takes what db.transaction() gives, not db itself.",
  );
  return {
    async query(text, values) {
      // As its CompiledQuery.raw makes it.
      const query = { kind: "RawNode", sqlFragments: [text], parameters: [] };
      const compiled = { sql: text, parameters: values, query, queryId: { queryId: "pawl" } };
      return rowsOf(await trx.executeQuery(compiled as never));
    },
  };
}

/** A database of Kysely. */
export interface KyselyDatabase<Tx> {
  transaction(): KyselyTransactionBuilder<Tx>;
}

interface KyselyTransactionBuilder<Tx> {
  setIsolationLevel(level: Isolation): KyselyTransactionBuilder<Tx>;
  execute<T>(work: (trx: Tx) => Promise<T>): Promise<T>;
}

/**
 * Transactions of Kysely.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * await ctx.transaction("record", async (trx) => {
 *   await trx.insertInto("orders").values({ id: 9182 }).execute();
 * }, { on: withKysely(db) });
 */
export function withKysely<Tx extends KyselyTransaction>(
  db: KyselyDatabase<Tx>,
  options: TransactorOptions = {},
): Transactor<Tx> {
  assertMethod("withKysely", db, "transaction");
  return createTransactor<Tx>("withKysely", options, (work, { isolation } = {}) => {
    const builder =
      isolation === undefined ? db.transaction() : db.transaction().setIsolationLevel(isolation);
    return builder.execute((trx) => work(trx, fromKysely(trx)));
  });
}
