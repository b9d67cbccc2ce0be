import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { StepEntry, StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

interface CancelledRun {
  readonly cancel: StoreEntry;
  /** Writes that were accepted from each holder since. */
  readonly writes: Map<number, StoreEntry[]>;
}

/** A holder has the answer to a write when it makes the next one. */
const writesUntilKnown = 2;

/** I8: once the store has told a holder of an accepted cancel, by its claim or by the answer to a write, no step starts. */
export function createCancelCheck(report: Report): (entry: StepEntry | StoreEntry) => void {
  const cancelled = new Map<RunId, CancelledRun>();
  const claims = new Map<string, StoreEntry>();

  const checkStep = (entry: StepEntry): void => {
    const run = cancelled.get(entry.run);
    if (run === undefined || entry.type !== "invoke") return;
    const claim = claims.get(`${entry.run} ${entry.epoch}`);
    if (claim !== undefined)
      report("I8", "a step started in a run claimed after it was cancelled", run.cancel, claim, entry);
    const writes = run.writes.get(entry.epoch) ?? [];
    if (writes.length < writesUntilKnown) return;
    report(
      "I8",
      "a step started though its holder had been told of a cancel",
      run.cancel,
      ...writes.slice(0, 2),
      entry,
    );
  };

  const checkStore = (entry: StoreEntry): void => {
    if (entry.type === "fail") return;
    if (entry.op === "tell") {
      const isCancel = entry.topic === "cancel" && entry.answer === "accepted";
      if (isCancel && !cancelled.has(entry.run))
        cancelled.set(entry.run, { cancel: entry, writes: new Map() });
      return;
    }
    if (entry.op !== "claim" && entry.op !== "record" && entry.op !== "park") return;
    const run = cancelled.get(entry.run);
    if (run === undefined) return;
    if (entry.op === "claim") claims.set(`${entry.run} ${entry.epoch}`, entry);
    else run.writes.set(entry.epoch, [...(run.writes.get(entry.epoch) ?? []), entry]);
  };

  return (entry) => (entry.by === "step" ? checkStep(entry) : checkStore(entry));
}
