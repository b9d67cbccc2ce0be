import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { FinalState } from "./check-facts.ts";
import type { ClientEntry, StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

/** One run of a call that started many. */
export interface StartedItem {
  readonly key: string;
  readonly run: RunId;
}

export interface StartCheck {
  client(entry: ClientEntry): void;
  store(entry: StoreEntry): void;
}

/**
 * I1 for starts: an acknowledged run is there. I12: all starts with one key are one run; one that must be new is; a call starts all
 * of its runs or none, and what it does not start leaves nothing behind.
 */
export function createStartCheck(final: FinalState, report: Report): StartCheck {
  const acknowledged = new Map<string, { readonly run: RunId; readonly entry: ClientEntry }>();
  const ofCall = new Map<number, StoreEntry & { op: "create" }>();
  checkKeys(final, report);

  const acknowledge = (entry: ClientEntry, answered: RunId, key: string | null): void => {
    if (!final.runs.has(answered)) report("I1", "an acknowledged run is not there", entry);
    const run = final.runs.get(answered)?.firstId ?? answered;
    if (key === null) return;
    const earlier = acknowledged.get(key);
    if (earlier !== undefined && earlier.run !== run) {
      report("I12", "two starts with one key were answered with two runs", earlier.entry, entry);
    }
    acknowledged.set(key, { run, entry });
  };

  return {
    client(entry) {
      if (entry.type !== "ok") return;
      if ((entry.op === "start" || entry.op === "signalOrStart") && entry.run !== null)
        acknowledge(entry, entry.run, entry.key);
      if (entry.op !== "startMany") return;
      for (const { run, key } of entry.value as readonly StartedItem[]) acknowledge(entry, run, key);
    },
    store(entry) {
      if (entry.op !== "create") return;
      const isStarted = wasStarted(entry);
      if (entry.mustBeNew && entry.answer === "existing")
        report("I12", "a run that must be new was answered with another", entry);
      if (!isStarted && final.runs.has(entry.wanted))
        report("I12", "a run is there that was not to be started", entry, final.runs.get(entry.wanted));
      const first = ofCall.get(entry.call) ?? entry;
      ofCall.set(entry.call, first);
      if (wasStarted(first) !== isStarted) report("I12", "one call started some of its runs", first, entry);
    },
  };
}

function wasStarted({ answer }: StoreEntry & { op: "create" }): boolean {
  return answer === "created" || answer === "existing";
}

/** I12: the keys are those of the runs, each once. */
function checkKeys(final: FinalState, report: Report): void {
  const keyed = new Map<string, RunId>();
  for (const run of final.runs.values()) {
    // The one at the end of a chain has the key of all.
    if (run.key === null || run.continuedAs !== null) continue;
    const twin = keyed.get(run.key);
    if (twin !== undefined) report("I12", "two runs with one key", final.runs.get(twin), run);
    keyed.set(run.key, run.id);
  }
  const unexplained = new Map(keyed);
  for (const { key, runId } of final.snapshot.keys) {
    if (keyed.get(key) !== runId) report("I12", "a key of a run that does not have it", { key, runId });
    unexplained.delete(key);
  }
  for (const [key, run] of unexplained) report("I12", "a run whose key is not known", { key, run });
}
