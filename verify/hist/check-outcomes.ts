import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { RecordedError } from "../../packages/pawl/src/core/recorded-error.ts";
import type { SnapshotRun } from "../../packages/pawl/src/store/snapshot.ts";
import type { Expectation } from "../gen/expect.ts";
import type { FinalState } from "./check-facts.ts";
import type { Report } from "./verdict.ts";

/** What must have become of a run once the world has healed and rested. */
export interface ExpectedRun {
  /** Every way in which its program may end. */
  readonly ends: Expectation;
  /** Attempts that may fail, the last included. */
  readonly attempts: number;
  /** It or an ancestor was asked to stop, and the request was acknowledged. */
  readonly isCancelled: boolean;
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
  expected: (run: SnapshotRun) => ExpectedRun | null,
  report: Report,
): void {
  const rooms = new Map<RunId, unknown>();
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
    const verdict = judge(run, expectation, final);
    if (verdict !== null)
      report(verdict.invariant, verdict.says, run, rooms.get(run.id) ?? null, lastEvents(final, run.id));
  }
}

/** I3 for whole runs: attempts are 1, 2, 3, …, and no more of them fail than may. One that failed may crash as well. */
function checkAttempts(run: SnapshotRun, limit: number, final: FinalState, report: Report): void {
  const spent = (final.events.get(run.id) ?? []).filter(
    ({ kind }) => kind === "attempt_failed" || kind === "attempt_crashed",
  );
  let last = 0;
  for (const { attempt, kind } of spent) {
    const isNext = attempt === last + 1 || (attempt === last && kind === "attempt_crashed");
    if (!isNext) report("I3", `attempt ${attempt} where ${last + 1} belongs`, ...spent);
    last = attempt ?? last;
  }
  const failed = spent.filter(({ kind }) => kind === "attempt_failed");
  if (failed.length > limit) report("I3", `${failed.length} attempts failed of at most ${limit}`, ...failed);
}

function lastEvents(final: FinalState, runId: RunId): unknown {
  return final.events.get(runId)?.slice(-3) ?? [];
}

function judge(
  run: SnapshotRun,
  { ends, isCancelled, mismatch, ...expected }: ExpectedRun,
  final: FinalState,
): { readonly invariant: string; readonly says: string } | null {
  switch (run.status) {
    case null:
      if (ends.waits && !isCancelled) return null;
      return {
        invariant: "I17",
        says: isCancelled ? "a cancelled run still lives" : "a run that could end still lives",
      };
    case "cancelled":
      return isCancelled ? null : { invariant: "I14", says: "a run is cancelled that nobody cancelled" };
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
    case "expired":
      return { invariant: "I14", says: `a run without such a limit is ${run.status}` };
    default:
      return run.status satisfies never;
  }
}

/** A program's error is the path of what threw it, and for a step its token; a call's is that its child failed. */
function wrongError(error: RecordedError, causes: ReadonlySet<string>): string | null {
  if (causes.size === 0) return "a run failed that cannot";
  const path = error.message.split("#")[0] ?? "";
  return causes.has(path) || error.code === "RUN_FAILED"
    ? null
    : `the run failed with ${JSON.stringify(error)}`;
}

/** Whether it failed because its worker crashed as often as it may. */
function isCrashed(run: SnapshotRun, crashLimit: number, final: FinalState): boolean {
  if ((run.error?.value as { readonly code?: unknown } | null)?.code !== "WORKER_CRASHED") return false;
  const crashes = (final.events.get(run.id) ?? []).filter((event) => event.kind === "attempt_crashed");
  const alone = crashes.filter(
    ({ data }) => (data?.value as { readonly alone?: unknown } | undefined)?.alone === true,
  );
  return alone.length >= crashLimit;
}
