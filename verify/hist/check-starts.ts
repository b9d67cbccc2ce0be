import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { FinalState } from "./check-facts.ts";
import type { ClientEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

/** I1 for starts: an acknowledged run is there. I12: all starts with one key are one run. */
export function createStartCheck(final: FinalState, report: Report): (entry: ClientEntry) => void {
  const acknowledged = new Map<string, ClientEntry>();
  const keyed = new Map<string, RunId>();
  for (const run of final.runs.values()) {
    if (run.key === null) continue;
    const twin = keyed.get(run.key);
    if (twin !== undefined) report("I12", "two runs with one key", final.runs.get(twin), run);
    keyed.set(run.key, run.id);
  }

  return (entry) => {
    if (entry.op !== "start" || entry.type !== "ok" || entry.run === null) return;
    if (!final.runs.has(entry.run)) report("I1", "an acknowledged run is not there", entry);
    if (entry.key === null) return;
    const earlier = acknowledged.get(entry.key);
    if (earlier !== undefined && earlier.run !== entry.run) {
      report("I12", "two starts with one key were answered with two runs", earlier, entry);
    }
    acknowledged.set(entry.key, entry);
  };
}
