import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import { isBeginning, type FinalState } from "./check-facts.ts";
import type { StepEntry, StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

type ForkEntry = StoreEntry & { readonly op: "fork" };

/**
 * I14 for forks: a fork has every result that its source had before the step it was forked from, and none from there on. I3:
 * what it has it does not do again.
 */
export function createForkCheck(final: FinalState, report: Report): (entry: StepEntry | StoreEntry) => void {
  /** By run and step. */
  const copied = new Map<string, ForkEntry>();

  const checkFork = (entry: ForkEntry): void => {
    const source = final.events.get(entry.source) ?? [];
    const forked = entry.facts.find(({ kind }) => kind === "forked");
    const { seq: until } = JSON.parse(forked?.data ?? "{}") as { readonly seq: number };
    const tokens = new Set<string>();
    for (const { kind, data } of entry.facts)
      if (kind === "step_completed") tokens.add(JSON.parse(data ?? "null") as string);
    for (const token of tokens) copied.set(idOf(entry.run, token), entry);
    const began = source.findLast((event) => event.seq < until && isBeginning(event))?.seq ?? 0;
    for (const event of source.slice(began)) {
      if (event.kind !== "step_completed") continue;
      const isThere = tokens.has(String(event.data?.value));
      if (event.seq < until && !isThere)
        report("I14", "a fork forgot what its source had done", event, entry);
      if (event.seq >= until && isThere)
        report("I14", "a fork knows what its source did later", event, entry);
    }
  };

  return (entry) => {
    if (entry.by === "store") {
      if (entry.op === "fork") checkFork(entry);
      return;
    }
    const known = copied.get(`${entry.run} ${entry.step}`);
    if (known !== undefined && entry.type === "invoke")
      report("I3", "a fork did again what its source had done", known, entry);
  };
}

function idOf(run: RunId, token: string): string {
  return `${run} ${token.split("#")[0]}`;
}
