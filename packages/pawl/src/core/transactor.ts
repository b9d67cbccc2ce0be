import type { RunId } from "./ids.ts";
import type { Payload } from "./json.ts";
import type { Transaction } from "./transaction.ts";

/** How far a transaction is kept apart from others, as Postgres has it. */
export type Isolation = "read committed" | "repeatable read" | "serializable";

/** What a transactor is told when it begins a transaction. */
export interface BeginOptions {
  /** Default: as the database is set. */
  readonly isolation?: Isolation | undefined;
}

/**
 * Begins transactions of a library, for `ctx.transaction`: made by the functions of `pawl/adapters` whose names begin
 * with `with`. `Tx` is what the library calls a transaction.
 */
export interface Transactor<Tx> {
  /** Whether its database is said to be another than the one that runs live in. */
  readonly isForeign: boolean;
  /** Whether `begin` rejects when a COMMIT was answered with ROLLBACK. */
  readonly checksCommit: boolean;
  /** The completion table in its database; used where that is not the one that runs live in. */
  readonly completions: Completions;
  /** Commits when the work returns, rolls back when it throws. */
  begin<T>(work: (tx: Tx, handle: Transaction) => Promise<T>, options?: BeginOptions): Promise<T>;
}

/** One transaction of one run. */
export interface CompletionId {
  readonly runId: RunId;
  /** The step's key. */
  readonly step: string;
  /** Of whoever tries it now. */
  readonly token: string;
}

export type TakeOver =
  | { readonly state: "open" }
  | { readonly state: "completed"; readonly result: Payload | null };

/** How a database that runs do not live in remembers which of their transactions have committed there. */
export interface Completions {
  /**
   * Leaves a tombstone: whoever has tried it before can no longer commit. Waits for those who are about to. Answers the
   * result where one of them has.
   */
  takeOver(tx: Transaction, id: CompletionId): Promise<TakeOver>;
  /**
   * The last statement before COMMIT. False: somebody else has taken it over, or completed it.
   * @param isFirst nobody can have tried it before, so there is no tombstone of ours
   */
  complete(tx: Transaction, id: CompletionId, isFirst: boolean, result: Payload | null): Promise<boolean>;
}
