import type { SnapshotEvent } from "../../packages/pawl/src/store/snapshot.ts";
import { isBeginning, type FinalState } from "./check-facts.ts";
import type { AskEntry, DeliveryEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

/** I9: a timer fires once, and never before its time by the store's clock. */
export function checkTimers(final: FinalState, report: Report): void {
  for (const events of final.events.values()) {
    const set = new Map<string, SnapshotEvent>();
    const fired = new Map<string, SnapshotEvent>();
    for (const event of events) {
      const name = event.name ?? "";
      if (isBeginning(event)) {
        set.clear();
        fired.clear();
      }
      if (event.kind === "timer_set") set.set(name, event);
      if (event.kind !== "timer_fired") continue;
      const timer = set.get(name);
      const earlier = fired.get(name);
      if (timer === undefined || timer.dueAt === null)
        report("I9", "a timer fired that was never set", event);
      else if (event.at < timer.dueAt)
        report("I9", `a timer fired ${timer.dueAt - event.at} ms early`, timer, event);
      if (earlier !== undefined) report("I9", "a timer fired twice", earlier, event);
      fired.set(name, event);
    }
  }
}

/** I9, as the code sees it: what it waited for has passed since it, or an earlier execution, first asked. */
export function createWaitCheck(
  final: FinalState,
  report: Report,
): (entry: AskEntry | DeliveryEntry) => void {
  const asked = new Map<string, AskEntry>();
  return (entry) => {
    // Its source has waited for it.
    if ((final.runs.get(entry.run)?.forkedFrom ?? null) !== null) return;
    const request = `${entry.run} ${entry.step}`;
    const first = asked.get(request);
    if (entry.by === "ask") {
      if (first === undefined) asked.set(request, entry);
    } else if (first !== undefined && entry.value === "null" && entry.at < first.at + first.waitMs) {
      report("I9", `a wait of ${first.waitMs} ms took ${entry.at - first.at}`, first, entry);
    }
  };
}
