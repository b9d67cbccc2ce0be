import type { RunId } from "../core/ids.ts";

export interface NewWorker {
  /** New at every start of a process. */
  readonly id: string;
  readonly leaseMs: number;
  readonly host: string;
  readonly pid: number;
  readonly queues: readonly string[];
  readonly concurrency: number;
}

export interface Heartbeat {
  readonly workerId: string;
  readonly held: readonly { readonly runId: RunId; readonly epoch: number }[];
  /**
   * The time that the newest claim's answer gave, of those the worker has taken in; null before the first. Leases claimed
   * up to then that it does not hold are given back: the answer was lost.
   */
  readonly claimsKnownTo: number | null;
}

export interface HeartbeatAnswer {
  /** False: this worker has expired, and every lease of it with it. Nothing was changed. */
  readonly alive: boolean;
  /** Held runs that have been told something. */
  readonly told: readonly RunId[];
  /** Held runs whose lease is gone. */
  readonly lost: readonly RunId[];
  /** Leases nobody knew of, given back. */
  readonly returned: number;
  readonly now: number;
}

export interface SweepRequest {
  readonly limit: number;
  /** Where the last look for overlooked messages ended; null begins anew. */
  readonly after: RunId | null;
}

export interface SweepAnswer {
  /** Workers found dead. */
  readonly expiredWorkers: number;
  /** Runs taken from dead workers and made claimable again. */
  readonly recovered: number;
  /** Runs that failed because their crash limit is spent. */
  readonly failed: number;
  /** Runs ended because nobody began them in time. */
  readonly expiredRuns: number;
  /** Parked runs whose wanted message was there. Expected to be 0 where notifications work. */
  readonly rescued: number;
  readonly after: RunId | null;
  /** True: there may be more; sweep again at once. */
  readonly more: boolean;
}
