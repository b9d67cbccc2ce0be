import type { RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { RetryPolicy } from "../core/retry.ts";
import type { EndStatus, ParkReason, RunStatus } from "../core/run-status.ts";

/** A run to be created. The id is made by the caller, so creating is safe to repeat. */
export interface NewRun {
  readonly id: RunId;
  readonly workflow: string;
  readonly version: number;
  readonly queue: string;
  /** Lower goes first. Default 0. */
  readonly priority: number;
  readonly input: Payload | null;
  /** True: the input was not parsed by the workflow's schema; its first holder does. */
  readonly isRaw: boolean;
  /** The caller's idempotency key; one run per key, for ever. */
  readonly key: string | null;
  /** True: an equal run under the key is a conflict too. */
  readonly mustBeNew: boolean;
  readonly tags: readonly string[];
  /** When to try again, for this run alone; null: as its workflow says. */
  readonly retry: RetryPolicy | null;
  /** Not claimable before this instant (database time, ms); null: at once. */
  readonly startAt: number | null;
  /** Ends as `expired` unless begun by then. */
  readonly expiresAt: number | null;
  /** Ends as `timed_out` by then. */
  readonly deadlineAt: number | null;
  /** The run that asked for this one, and the request in it that this run answers. */
  readonly parent: { readonly id: RunId; readonly request: string } | null;
  /** True: goes on when its parent is stopped or fails. */
  readonly isDetached: boolean;
  /** The run whose history it begins with. */
  readonly forkedFrom: RunId | null;
}

/** What most runs are like. */
export const plainRun = {
  priority: 0,
  input: null,
  isRaw: false,
  key: null,
  mustBeNew: false,
  tags: [],
  retry: null,
  startAt: null,
  expiresAt: null,
  deadlineAt: null,
  parent: null,
  isDetached: false,
  forkedFrom: null,
} as const satisfies Partial<NewRun>;

/**
 * - `created`: this run, now or by an earlier try of the same call.
 * - `existing`: the key belongs to an equal run (workflow, version, input); `id` is that run's.
 * - `conflict`: the key belongs to a different one, or to any where the run must be new; nothing was created.
 * - `withheld`: another run of the same call is in conflict, and so none of them was created.
 */
export interface CreateAnswer {
  readonly kind: "created" | "existing" | "conflict" | "withheld";
  readonly id: RunId;
}

/** A fact that a fork begins with. `at` null: it happens now. */
export type ForkedEvent = Omit<RunEvent, "at" | "workerId"> & { readonly at: number | null };

/** A run as people see it. */
export interface RunRecord {
  readonly id: RunId;
  readonly workflow: string;
  readonly version: number;
  readonly queue: string;
  readonly priority: number;
  readonly status: RunStatus;
  readonly key: string | null;
  readonly tags: readonly string[];
  readonly parentId: RunId | null;
  readonly rootId: RunId;
  readonly depth: number;
  readonly forkedFrom: RunId | null;
  readonly retry: RetryPolicy | null;
  /** The first run of the chain it is in; its own id unless it goes on from another. */
  readonly firstId: RunId;
  /** The run that goes on from this one. */
  readonly continuedAs: RunId | null;
  readonly epoch: number;
  readonly attempt: number;
  readonly workerId: string | null;
  readonly parkReason: ParkReason | null;
  readonly dueAt: number | null;
  readonly wants: readonly string[] | null;
  readonly createdAt: number;
  readonly startAt: number | null;
  readonly expiresAt: number | null;
  readonly deadlineAt: number | null;
  readonly endedAt: number | null;
  readonly input: Payload | null;
  readonly output: Payload | null;
  readonly error: Payload | null;
}

export interface RunFilter {
  readonly status?: RunStatus;
  readonly workflow?: string;
  readonly queue?: string;
  /** All of them. */
  readonly tags?: readonly string[];
  readonly errorCode?: string;
  /** Newest first, strictly older than this id… */
  readonly before?: RunId;
  /** …and strictly newer than this one. */
  readonly after?: RunId;
  readonly limit: number;
  /** How many runs to look at for that at most. */
  readonly look: number;
}

export interface RunPage {
  readonly runs: readonly RunRecord[];
  /** Go on before this id; null: there are no more. A page may be short, or empty, and not be the last. */
  readonly next: RunId | null;
}

/** A run as its parent's graph sees it. */
export interface ChildRecord {
  readonly id: RunId;
  /** The request in the parent that it answers. */
  readonly request: string;
  readonly status: RunStatus;
  readonly epoch: number;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly error: Payload | null;
}

/** One finished attempt. */
export interface AttemptRecord {
  readonly seq: number;
  readonly attempt: number;
  readonly outcome: "completed" | "failed" | "crashed" | "cancelled" | "timed_out";
  readonly willRetry: boolean;
  readonly beganAt: number | null;
  readonly endedAt: number;
  /** Null where it did not fail. */
  readonly error: Payload | null;
  readonly workerId: string | null;
  readonly host: string | null;
  readonly pid: number | null;
}

/** How many runs there are in a status. */
export interface RunCount {
  readonly status: RunStatus;
  readonly count: number;
  /** False: about as many, by the store's own statistics. */
  readonly isExact: boolean;
}

/** What waits to be claimed of one workflow in one queue. */
export interface Backlog {
  readonly queue: string;
  readonly workflow: string;
  readonly version: number;
  readonly count: number;
  readonly isExact: boolean;
  /** Since when the oldest has been waiting. */
  readonly oldestAt: number;
}

/** What to change of a run that waits to be claimed. */
export interface Rescheduling {
  readonly runId: RunId;
  /** Undefined: leave it. */
  readonly priority: number | undefined;
  /** Null: now. Undefined: leave it. */
  readonly startAt: number | null | undefined;
}

/** How a run ended, for whoever waits for it. */
export interface RunEnd {
  readonly status: EndStatus;
  /** Of a run that has completed; null if it returned nothing. */
  readonly output: Payload | null;
  /** Of one that has not. */
  readonly error: Payload | null;
}

/** A run's end as found by its id. */
export interface FoundEnd extends RunEnd {
  /** It went on as others: the run that is at the end of its chain now. */
  readonly chainEnd?: RunId;
}

/** How far a patch has come among the runs of a workflow. */
export interface PatchUse {
  readonly patch: string;
  /** When the first run took the new side. */
  readonly since: number;
  /** Live runs on the new side. */
  readonly runs: number;
  /** Live runs that started before, and are not on the new side. */
  readonly olderRuns: number;
  /** Live runs that started since, and are not on the new side. */
  readonly newerRuns: number;
}
