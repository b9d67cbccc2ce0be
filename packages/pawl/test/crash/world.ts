import type { RunId, Transaction, Transactor } from "../../src/index.ts";
import type { Ledger } from "./ledger.ts";
import type { Pass } from "./probed-worker.ts";

/** What workflows reach of their process, and of what is outside of it. */
export interface World {
  readonly ledger: Ledger;
  /** A meeting's code is called. */
  readonly entered: (runId: string) => void;
  /** The run's next request is a wait for the signal `go`. */
  readonly aboutToWait: (runId: string) => void;
  /** A transaction's function was called. */
  readonly buying: (runId: string, step: string) => void;
  /** Signals a run. */
  readonly tell: (runId: RunId, name: string, payload: unknown, idempotencyKey: string) => Promise<void>;
  /** The process comes to a place where it may have to die. */
  readonly pass: Pass;
  /** Transactions in the ledger's database, which is taken for another than Pawl's. */
  readonly foreign: Transactor<Transaction>;
}
