import type { Transaction } from "../core/transaction.ts";
import type { Transactor } from "../core/transactor.ts";
import { createTransactor, type TransactorOptions } from "./create-transactor.ts";
import { assertMethod, assertTransactionOf } from "./refuse-others.ts";
import { rowsOf } from "./rows-of.ts";

/** The manager that `dataSource.transaction` of TypeORM gives, or a query runner that has begun one. */
export interface TypeOrmTransaction {
  readonly isTransactionActive?: boolean;
  readonly queryRunner?: { readonly isTransactionActive: boolean } | undefined;
  query(text: string, values?: never): PromiseLike<unknown>;
}

/**
 * A transaction of TypeORM.
 * @throws {PawlError} `INVALID_TRANSACTION` for what is none, such as the data source or its own manager
 * @example
 * await dataSource.transaction(async (manager) => {
 *   await manager.insert(Order, { id: 9182 });
 *   await pawl.start(checkout, { orderId: 9182 }, { tx: fromTypeOrm(manager) });
 * });
 */
export function fromTypeOrm(manager: TypeOrmTransaction): Transaction {
  assertTransactionOf(
    () => (manager.queryRunner?.isTransactionActive ?? manager.isTransactionActive) === true,
    "fromTypeOrm takes the manager that dataSource.transaction gives, no other.",
  );
  return {
    async query(text, values) {
      return rowsOf(await manager.query(text, values as never));
    },
  };
}

/** A data source of TypeORM. */
export interface TypeOrmDatabase<Tx> {
  transaction<T>(work: (manager: Tx) => Promise<T>): Promise<T>;
  transaction<T>(isolation: never, work: (manager: Tx) => Promise<T>): Promise<T>;
}

/**
 * Transactions of TypeORM.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * await ctx.transaction("record", async (manager) => {
 *   await manager.insert(Order, { id: 9182 });
 * }, { on: withTypeOrm(dataSource) });
 */
export function withTypeOrm<Tx extends TypeOrmTransaction>(
  dataSource: TypeOrmDatabase<Tx>,
  options: TransactorOptions = {},
): Transactor<Tx> {
  assertMethod("withTypeOrm", dataSource, "transaction");
  return createTransactor<Tx>("withTypeOrm", options, (work, { isolation } = {}) => {
    const act = (manager: Tx): ReturnType<typeof work> => work(manager, fromTypeOrm(manager));
    return isolation === undefined
      ? dataSource.transaction(act)
      : dataSource.transaction(isolation.toUpperCase() as never, act);
  });
}
