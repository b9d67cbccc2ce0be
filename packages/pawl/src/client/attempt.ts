import type { RunId } from "../core/ids.ts";
import { placeOfError, placeOfEvent } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { AttemptRecord } from "../store/run-record.ts";

/** One finished attempt of a run: a fact that never changes. */
export interface Attempt {
  /** From 1. */
  readonly attempt: number;
  /** `crashed`: its worker died while it ran. */
  readonly outcome: "completed" | "failed" | "crashed" | "cancelled" | "timed_out";
  /** Whether another attempt followed, or was to follow. */
  readonly willRetry: boolean;
  /** When the worker that finished it took the run: an attempt may sleep, and go on elsewhere. */
  readonly beganAt: Date | null;
  readonly endedAt: Date;
  readonly error: Error | null;
  /** The error's `code`, if it has one; `WORKER_CRASHED` for a crash. */
  readonly errorCode: string | null;
  readonly workerId: string | null;
  readonly host: string | null;
  readonly pid: number | null;
}

export function readAttempt(runId: RunId, record: AttemptRecord, payloads: Payloads): Attempt {
  const { attempt, outcome, willRetry, beganAt, endedAt, workerId, host, pid } = record;
  const place = willRetry ? placeOfEvent(runId, { kind: "attempt_failed", name: null }) : placeOfError(runId);
  const error = record.error === null ? null : payloads.decodeError(record.error, place);
  return {
    attempt,
    outcome,
    willRetry,
    beganAt: beganAt === null ? null : new Date(beganAt),
    endedAt: new Date(endedAt),
    error,
    errorCode: outcome === "crashed" ? "WORKER_CRASHED" : codeOf(error),
    workerId,
    host,
    pid,
  };
}

function codeOf(error: Error | null): string | null {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" || typeof code === "number" ? String(code) : null;
}
