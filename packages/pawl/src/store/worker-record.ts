import type { RunId } from "../core/ids.ts";

export interface NewWorker {
  /** New at every start of a process. */
  readonly id: string;
  readonly leaseMs: number;
  readonly host: string;
  readonly pid: number;
  readonly queues: readonly string[];
  readonly concurrency: number;
  /** What it can execute, as `name@version`. Default: none. */
  readonly workflows?: readonly string[];
  /** What it runs on and how it is set, for people. Default: nothing. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** How a worker fares: one point of a time series. */
export interface WorkerSample {
  readonly held: number;
  readonly memoryBytes: number;
  /** Processor time per time since the last sample: 1 is one core. */
  readonly cpuRatio: number;
  /** The longest that its event loop was late since the last sample. */
  readonly lagMs: number;
}

/** A step that has been running for longer than a heartbeat. `beganAt` is the store's time, as far as the worker knew it. */
export interface LongStep {
  readonly runId: RunId;
  readonly step: string;
  readonly beganAt: number;
  /** What it last said of how far it has come: JSON as it is stored in a payload. Default: nothing. */
  readonly progress?: unknown;
  readonly progressNotes?: unknown;
}

/** A worker as it is registered, with what was heard of it last. */
export interface WorkerRecord {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly queues: readonly string[];
  readonly workflows: readonly string[];
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly startedAt: number;
  readonly heardAt: number;
  /** When it stopped or was found dead. */
  readonly endedAt: number | null;
  readonly isAlive: boolean;
  readonly longSteps: readonly LongStep[];
  readonly sample: (WorkerSample & { readonly at: number }) | null;
}

export interface WorkerFilter {
  /** Also those that ended at most so long ago. */
  readonly endedWithinMs: number;
  readonly limit: number;
}

export interface Heartbeat {
  readonly workerId: string;
  readonly held: readonly { readonly runId: RunId; readonly epoch: number }[];
  /**
   * The time that the newest claim's answer gave, of those the worker has taken in; null before the first. Leases claimed
   * up to then that it does not hold are given back: the answer was lost.
   */
  readonly claimsKnownTo: number | null;
  /**
   * Its lease from now on. Default: as it is. One that is longer is granted only while it holds nothing: a worker that
   * rests need not be heard as often.
   */
  readonly leaseMs?: number;
  /** Steps that have been running for long; takes the place of those said before. Default: none. */
  readonly longSteps?: readonly LongStep[];
  /** Now and then. One that cannot be stored is dropped: the heartbeat counts all the same. */
  readonly sample?: WorkerSample;
}

export interface HeartbeatAnswer {
  /** False: this worker has expired, and every lease of it with it. Nothing was changed. */
  readonly alive: boolean;
  /** The lease it has now; null where it is not alive. */
  readonly leaseMs: number | null;
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
