import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Lives } from "./lives.ts";
import type { StepEntry, StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

interface CancelledRun {
  readonly cancel: StoreEntry;
  /** Writes that were accepted from each holder since. */
  readonly writes: Map<number, StoreEntry[]>;
  /** Writes that were refused since. */
  readonly refusals: Map<number, StoreEntry>;
}

/** A holder has the answer to a write when it makes the next one. */
const writesUntilKnown = 2;

/**
 * I8: once the store has told a holder of an accepted cancel, by its claim or by the answer to a write, no step starts. Nor
 * does one in a terminated run, once a write of its holder was refused. A redriven run is asked for nothing any more.
 */
export function createCancelCheck(lives: Lives, report: Report): (entry: StepEntry | StoreEntry) => void {
  const cancelled = new Map<RunId, CancelledRun>();
  const claims = new Map<string, StoreEntry>();
  const newestSeq = new Map<RunId, number>();

  const cancel = (run: RunId, entry: StoreEntry): void => {
    if (cancelled.has(run)) return;
    cancelled.set(run, { cancel: entry, writes: new Map(), refusals: new Map() });
  };

  const checkStep = (entry: StepEntry): void => {
    const run = cancelled.get(entry.run);
    if (run === undefined || entry.type !== "invoke") return;
    const claim = claims.get(`${entry.run} ${entry.epoch}`);
    if (claim !== undefined)
      report("I8", "a step started in a run claimed after it was cancelled", run.cancel, claim, entry);
    // Its transaction began before, and took its time to come to the function, or is tried again: that starts nothing.
    if (entry.isTransactional === true) return;
    const refusal = run.refusals.get(entry.epoch);
    if (refusal !== undefined)
      report("I8", "a step started in a terminated run whose holder was refused", run.cancel, refusal, entry);
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
    if (entry.op === "tell") {
      if (lives.stopOf(entry.run) === entry) cancel(entry.run, entry);
      return;
    }
    if (entry.op === "terminate") {
      if (entry.answer === "terminated") cancel(entry.run, entry);
      return;
    }
    if (entry.op === "redrive") {
      for (const [run, answer] of entry.answers) if (answer === "redriven") cancelled.delete(run);
      return;
    }
    if (entry.op !== "claim" && entry.op !== "record" && entry.op !== "park") return;
    // An earlier try that comes late is refused without anybody's knowing.
    const seq = entry.op === "claim" ? 0 : (entry.facts.at(-1)?.seq ?? 0);
    const isLate = entry.type === "fail" && seq > 0 && seq <= (newestSeq.get(entry.run) ?? 0);
    if (entry.type === "ok") newestSeq.set(entry.run, Math.max(seq, newestSeq.get(entry.run) ?? 0));
    const run = cancelled.get(entry.run);
    if (run === undefined || isLate) return;
    if (entry.type === "fail") run.refusals.set(entry.epoch, entry);
    else if (entry.op === "claim") claims.set(`${entry.run} ${entry.epoch}`, entry);
    else run.writes.set(entry.epoch, [...(run.writes.get(entry.epoch) ?? []), entry]);
  };

  return (entry) => (entry.by === "step" ? checkStep(entry) : checkStore(entry));
}
