import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { FinalState } from "./check-facts.ts";
import type { StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

interface RunTimes {
  /** What set its start, and when that is. */
  start: { readonly by: StoreEntry; readonly at: number } | null;
  /** The same for a run that waits to be tried again. */
  retry: { readonly by: StoreEntry; readonly at: number } | null;
  expiresAt: number | null;
  deadlineAt: number | null;
  readonly created: StoreEntry;
  isBegun: boolean;
}

function earliest(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

/**
 * I9 for whole runs: nobody claims one before its time, nor a new one after it has expired or timed out; in the end each has
 * the times that it was given, and a redriven one none that are over.
 */
export function createTimeCheck(
  final: FinalState,
  report: Report,
): { readonly see: (entry: StoreEntry) => void; readonly conclude: () => void } {
  const runs = new Map<RunId, RunTimes>();

  const create = (entry: StoreEntry & { op: "create" }): void => {
    if (entry.answer !== "created" || runs.has(entry.run)) return;
    const parent = entry.parent === null ? undefined : runs.get(entry.parent);
    runs.set(entry.run, {
      start: entry.startAt === null ? null : { by: entry, at: entry.startAt },
      retry: null,
      expiresAt: entry.expiresAt,
      deadlineAt: earliest(entry.deadlineAt, parent?.deadlineAt ?? null),
      created: entry,
      isBegun: false,
    });
  };

  const claim = (entry: StoreEntry, times: RunTimes): void => {
    const { isBegun, created, start, retry, expiresAt, deadlineAt } = times;
    const waitsFor = isBegun ? retry : start;
    if (waitsFor !== null && entry.at < waitsFor.at)
      report("I9", `a run was claimed ${waitsFor.at - entry.at} ms before its time`, waitsFor.by, entry);
    const lastAt = isBegun ? null : earliest(expiresAt, deadlineAt);
    if (lastAt !== null && entry.at >= lastAt)
      report("I9", `a run began ${entry.at - lastAt} ms after it was too late`, created, entry);
    times.isBegun = true;
    times.retry = null;
  };

  const reschedule = (entry: StoreEntry & { op: "reschedule" }, times: RunTimes): void => {
    if (entry.answer !== "rescheduled" || entry.startAt === undefined) return;
    const at = entry.startAt ?? entry.at;
    if (!times.isBegun) times.start = { by: entry, at };
    else times.retry = { by: entry, at: earliest(at, times.deadlineAt) ?? at };
  };

  const redrive = (at: number, times: RunTimes): void => {
    times.start = null;
    times.retry = null;
    times.expiresAt = null;
    if ((times.deadlineAt ?? Infinity) <= at) times.deadlineAt = null;
  };

  const see = (entry: StoreEntry): void => {
    if (entry.type === "fail") return;
    if (entry.op === "create") return create(entry);
    if (entry.op === "redrive") {
      for (const [run, answer] of entry.answers) {
        const redriven = answer === "redriven" ? runs.get(run) : undefined;
        if (redriven !== undefined) redrive(entry.at, redriven);
      }
      return;
    }
    const times = "run" in entry ? runs.get(entry.run) : undefined;
    if (times === undefined) return;
    if (entry.op === "claim") claim(entry, times);
    else if (entry.op === "reschedule") reschedule(entry, times);
    // Whoever is told something is not left to wait.
    else if (entry.op === "tell") times.retry = null;
  };

  return {
    see,
    conclude() {
      for (const [id, { created, start, expiresAt, deadlineAt }] of runs) {
        const run = final.runs.get(id);
        if (run === undefined) continue;
        const isSame =
          run.startAt === (start?.at ?? null) && run.expiresAt === expiresAt && run.deadlineAt === deadlineAt;
        if (!isSame)
          report("I9", "a run has other times than it was given", created, run, {
            start,
            expiresAt,
            deadlineAt,
          });
      }
    },
  };
}
