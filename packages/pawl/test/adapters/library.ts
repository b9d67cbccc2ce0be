import type { Transactor, TransactorOptions } from "../../src/adapters/index.ts";
import type { Transaction } from "../../src/core/transaction.ts";

/** What a user's code has in its hands inside a transaction of some library. */
export interface OpenTransaction {
  readonly tx: Transaction;
  /** The library's own handle, which is not ours to take. */
  readonly handle: unknown;
  /** Inserts a row of the user's own, in the library's own way. */
  readonly insert: (id: number) => Promise<unknown>;
  /** Acts inside a savepoint, which is rolled back when the act throws. */
  readonly nested?: (act: (inner: OpenTransaction) => Promise<void>) => Promise<void>;
}

/** A connection of a library to a database that has a table `purchase (id integer primary key)`. */
export interface OpenLibrary {
  /** Commits when the act returns and rolls back when it throws. */
  transaction(act: (open: OpenTransaction) => Promise<void>): Promise<void>;
  /** For `ctx.transaction`. */
  readonly transactor: (options?: TransactorOptions) => Transactor<unknown>;
  /** Inserts a row of the user's own, in what `transactor` gives. */
  readonly insert: (tx: unknown, id: number) => Promise<unknown>;
  /** Wraps a handle that is in no transaction. */
  wrapOutside(): Transaction;
  close(): Promise<void>;
}

export interface Library {
  readonly name: string;
  /** Whether its transactions have `nested`. */
  readonly hasSavepoints: boolean;
  open(url: string): Promise<OpenLibrary>;
}
