import type { Transaction } from "../core/transaction.ts";
import type { Transactor } from "../core/transactor.ts";
import type { Lease, NewEvent } from "./lease.ts";

/** What `ctx.transaction` gives its function where it names no library: a connection of Pawl's own. */
export interface OwnTransaction {
  query<Row = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>;
}

/**
 * - `lost`: the lease is gone, or was never in this database.
 * - `late`: the history has gone on since. This transaction was given up before, and must not commit.
 * - `outside`: this is not the transaction that was opened.
 */
export type WithinAnswer = { readonly told: boolean; readonly now: number } | "lost" | "late" | "outside";

/** What a transaction takes into the history: its own fact, behind the patches that it is the first to follow. */
export interface FactsWithin {
  readonly patches: readonly NewEvent[];
  readonly fact: NewEvent;
}

/** What a holder does inside a transaction of its user's, where runs live in the same database. */
export interface HolderTransactions {
  /** Begins transactions on connections that serve for nothing else. */
  readonly own: Transactor<OwnTransaction>;
  /** The first statement. `token` marks the transaction. */
  open(tx: Transaction, token: string, lease: Lease): Promise<"open" | "lost">;
  /** The last statement before COMMIT: appends the facts, under the fence. From here on the lease is locked. */
  record(tx: Transaction, token: string, lease: Lease, facts: FactsWithin): Promise<WithinAnswer>;
}
