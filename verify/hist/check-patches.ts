import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { PatchEntry, RecordedFact, StepEntry, StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

type Write = StoreEntry & { readonly run: RunId; readonly epoch: number };

/**
 * I14 while code changes: a run that took the new side of a patch, and said so, stays there, and so does one on the old side.
 * Only a run on a new side is ever blocked, by code from before; and nothing is executed then.
 */
export function createPatchCheck(report: Report): (entry: PatchEntry | StepEntry | StoreEntry) => void {
  const recorded = new Map<string, Write>();
  const old = new Map<string, PatchEntry>();
  const changed = new Set<RunId>();
  const firstStep = new Map<string, StepEntry>();

  const checkPatch = (entry: PatchEntry): void => {
    const id = `${entry.run} ${entry.id}`;
    const since = recorded.get(id);
    if (!entry.isNew) {
      if (since !== undefined && since.epoch < entry.epoch)
        report("I14", "a run left the new side of a patch", since, entry);
      if (!old.has(id)) old.set(id, entry);
    } else {
      const before = old.get(id);
      if (before !== undefined && before.epoch <= entry.epoch)
        report("I14", "a run left the old side of a patch", before, entry);
    }
  };

  const learn = (entry: Write, { kind, name }: RecordedFact): void => {
    if (kind === "patched") {
      changed.add(entry.run);
      const id = `${entry.run} ${name ?? ""}`;
      if (!recorded.has(id)) recorded.set(id, entry);
    }
    if (kind !== "blocked") return;
    if (!changed.has(entry.run)) report("I14", "a run is blocked by code that fits", entry);
    const step = firstStep.get(`${entry.run} ${entry.epoch}`);
    if (step !== undefined) report("I14", "code that does not fit its history executed a step", step, entry);
  };

  return (entry) => {
    if (entry.by === "patch") checkPatch(entry);
    else if (entry.by === "step") {
      const id = `${entry.run} ${entry.epoch}`;
      if (!firstStep.has(id)) firstStep.set(id, entry);
    } else if (entry.type === "ok" && (entry.op === "record" || entry.op === "park" || entry.op === "end"))
      for (const fact of entry.facts) learn(entry, fact);
  };
}
