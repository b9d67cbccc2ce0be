import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { RecordedError } from "../../packages/pawl/src/core/recorded-error.ts";
import { endStatuses } from "../../packages/pawl/src/core/run-status.ts";
import type { SnapshotParked, SnapshotRun } from "../../packages/pawl/src/store/snapshot.ts";
import type { Expectation } from "../gen/expect.ts";
import { stepErrors } from "../gen/program-workflow.ts";
import { livesOf, type FinalState } from "./check-facts.ts";
import type { Lives } from "./lives.ts";
import type { Report } from "./verdict.ts";

/** What must have become of a run once the world has healed and rested. */
export interface ExpectedRun {
  /** Every way in which its program may end. */
  readonly ends: Expectation;
  /** Attempts that may fail in one life, the last included. */
  readonly attempts: number;
  /** Crashes alone that it survives. */
  readonly crashLimit: number;
  /** Where its output is wrong, or null. */
  readonly mismatch: (output: unknown) => string | null;
}

/**
 * I17: whatever could run has ended. I14: with the result its program says, and without ever being blocked, since
 * every program is deterministic.
 */
export function checkOutcomes(
  final: FinalState,
  lives: Lives,
  expected: (run: SnapshotRun) => ExpectedRun | null,
  report: Report,
): void {
  const rooms = new Map<RunId, object>();
  for (const room of [...final.snapshot.ready, ...final.snapshot.lease, ...final.snapshot.parked]) {
    rooms.set(room.runId, room);
  }
  for (const room of final.snapshot.parked) {
    if (room.reason === "blocked")
      report("I14", "a deterministic run is blocked", room, lastEvents(final, room.runId));
  }
  for (const run of final.runs.values()) {
    const expectation = expected(run);
    if (expectation === null) continue;
    checkAttempts(run, expectation.attempts, final, report);
    const verdict = judge(run, expectation, final, rooms.get(run.id), lives.stopOf(run.id) !== null);
    if (verdict !== null)
      report(verdict.invariant, verdict.says, run, rooms.get(run.id) ?? null, lastEvents(final, run.id));
  }
}

const attemptEnds: readonly string[] = ["attempt_failed", "attempt_crashed", ...endStatuses];

/**
 * I3 for whole runs: attempts are 1, 2, 3, …, and no more of them fail in one life than may. One that failed may crash as well.
 * Another life counts on; the last attempt of the one before may have left no trace.
 */
function checkAttempts(run: SnapshotRun, limit: number, final: FinalState, report: Report): void {
  let last = 0;
  for (const [index, life] of livesOf(final.events.get(run.id) ?? []).entries()) {
    const spent = life.filter(({ kind, attempt }) => attempt !== null && attemptEnds.includes(kind));
    let isFirst = index > 0;
    for (const { attempt, kind } of spent) {
      const number = attempt ?? last;
      const isNext = isFirst
        ? number > last
        : number === last + 1 || (number === last && kind !== "attempt_failed");
      if (!isNext) report("I3", `attempt ${number} where ${last + 1} belongs`, ...spent);
      last = number;
      isFirst = false;
    }
    const failed = spent.filter(({ kind }) => kind === "attempt_failed" || kind === "failed");
    if (failed.length > limit)
      report("I3", `${failed.length} attempts failed of at most ${limit}`, ...failed);
  }
}

function lastEvents(final: FinalState, runId: RunId): unknown {
  return final.events.get(runId)?.slice(-3) ?? [];
}

function judge(
  run: SnapshotRun,
  { ends, mismatch, ...expected }: ExpectedRun,
  final: FinalState,
  room: object | undefined,
  isStopped: boolean,
): { readonly invariant: string; readonly says: string } | null {
  switch (run.status) {
    case null:
      if (ends.waits && !isStopped && !isMoving(room)) return null;
      return {
        invariant: "I17",
        says: isStopped ? "a cancelled run still lives" : "a run that could end still lives",
      };
    case "cancelled":
      return isStopped || wasParentStopped(run, final)
        ? null
        : { invariant: "I14", says: "a run is cancelled that nobody cancelled" };
    case "completed": {
      const says = ends.completes ? mismatch(run.output?.value) : "a run completed that cannot";
      return says === null ? null : { invariant: "I14", says };
    }
    case "failed": {
      if (isCrashed(run, expected.crashLimit, final)) return null;
      const says = wrongError(run.error?.value as RecordedError, ends.causes);
      return says === null ? null : { invariant: "I14", says };
    }
    case "timed_out":
      return wrongTime(run, run.deadlineAt);
    case "expired":
      return wrongTime(run, run.epoch === 0 ? run.expiresAt : null);
    default:
      return run.status satisfies never;
  }
}

/** A parent that a sweep failed asks its children to stop as well, and no call of the store says so. */
function wasParentStopped({ parentId }: SnapshotRun, final: FinalState): boolean {
  const events = parentId === null ? [] : (final.events.get(parentId) ?? []);
  return events.some(({ kind }) => kind === "failed" || kind === "cancelled" || kind === "timed_out");
}

/** Something has still to happen to it: it does not just wait for a signal. */
function isMoving(room: object | undefined): boolean {
  if (room === undefined) return false;
  const { reason, dueAt } = room as Partial<SnapshotParked>;
  return reason !== "blocked" && (reason !== "waiting" || dueAt !== null);
}

function wrongTime(
  run: SnapshotRun,
  limit: number | null,
): { readonly invariant: string; readonly says: string } | null {
  if (limit === null) return { invariant: "I14", says: `a run without such a limit is ${run.status}` };
  const earlyMs = limit - (run.endedAt ?? 0);
  return earlyMs <= 0 ? null : { invariant: "I9", says: `a run is ${run.status} ${earlyMs} ms early` };
}

const childErrors: readonly unknown[] = ["RUN_FAILED", "RUN_CANCELLED", "RUN_TIMED_OUT", "RUN_EXPIRED"];

/** A program's error is the path of what threw it, and for a step its token; a call's is that its child did not complete. */
function wrongError(error: RecordedError, causes: ReadonlySet<string>): string | null {
  if (causes.size === 0) return "a run failed that cannot";
  const path = error.message.split("#")[0] ?? "";
  return causes.has(path) ||
    childErrors.includes(error.code) ||
    stepErrors.some((code) => code === error.code)
    ? null
    : `the run failed with ${JSON.stringify(error)}`;
}

/** Whether it failed because its worker crashed as often as it may. */
function isCrashed(run: SnapshotRun, crashLimit: number, final: FinalState): boolean {
  if ((run.error?.value as { readonly code?: unknown } | null)?.code !== "WORKER_CRASHED") return false;
  const life = livesOf(final.events.get(run.id) ?? []).at(-1) ?? [];
  const crashes = life.filter((event) => event.kind === "attempt_crashed");
  const alone = crashes.filter(
    ({ data }) => (data?.value as { readonly alone?: unknown } | undefined)?.alone === true,
  );
  return alone.length >= crashLimit;
}
