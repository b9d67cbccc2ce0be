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
  /** The caller's idempotency key; one run per key, for ever. */
  readonly key: string | null;
  /** Not claimable before this instant (database time, ms); null: at once. */
  readonly startAt: number | null;
  /** Ends as `expired` unless begun by then. */
  readonly expiresAt: number | null;
  /** Ends as `timed_out` by then. */
  readonly deadlineAt: number | null;
  /** When to try again, for this run alone; null: as its workflow says. */
  readonly retry: RetryPolicy | null;
  /** The run that asked for this one, and the request in it that this run answers. */
  readonly parent: { readonly id: RunId; readonly request: string } | null;
}

/**
 * - `created`: this run, now or by an earlier try of the same call.
 * - `existing`: the key belongs to an equal run (workflow, version, input); `id` is that run's.
 * - `conflict`: the key belongs to a different one; nothing was created.
 */
export interface CreateAnswer {
  readonly kind: "created" | "existing" | "conflict";
  readonly id: RunId;
}

/** A run as people see it. */
export interface RunRecord {
  readonly id: RunId;
  readonly workflow: string;
  readonly version: number;
  readonly queue: string;
  readonly priority: number;
  readonly status: RunStatus;
  readonly key: string | null;
  readonly parentId: RunId | null;
  readonly rootId: RunId;
  readonly depth: number;
  readonly epoch: number | null;
  readonly attempt: number | null;
  readonly workerId: string | null;
  readonly parkReason: ParkReason | null;
  readonly dueAt: number | null;
  readonly wants: readonly string[] | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly input: Payload | null;
  readonly output: Payload | null;
  readonly error: Payload | null;
}

export interface RunFilter {
  readonly status?: RunStatus;
  readonly workflow?: string;
  readonly queue?: string;
  /** Newest first, strictly older than this id. */
  readonly before?: RunId;
  readonly limit: number;
}

/** How a run ended, for whoever waits for it. */
export interface RunEnd {
  readonly status: EndStatus;
  readonly output: Payload | null;
  readonly error: Payload | null;
}
