import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { FinalState } from "./check-facts.ts";
import type { StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

/** I1, never half; I23: a live run is in one room, an ended one in none. */
export function checkRooms(final: FinalState, report: Report): void {
  const { ready, lease, parked } = final.snapshot;
  const rooms = new Map<RunId, unknown[]>();
  for (const room of [...ready, ...lease, ...parked])
    rooms.set(room.runId, [...(rooms.get(room.runId) ?? []), room]);
  for (const run of final.runs.values()) {
    const found = rooms.get(run.id) ?? [];
    rooms.delete(run.id);
    if (run.status === null && found.length !== 1) {
      report("I23", `a live run is in ${found.length} rooms`, run, ...found);
    }
    if (run.status !== null && found.length > 0) report("I23", "an ended run is in a room", run, ...found);
  }
  for (const found of rooms.values()) report("I1", "a room holds a run that does not exist", ...found);
}

/** I23: a run that waits to be claimed keeps in mind that messages are there. */
export function checkReschedule(entry: StoreEntry, report: Report): void {
  if (entry.op === "reschedule" && entry.isDeaf)
    report("I23", "a rescheduled run forgot its messages", entry);
}

/** I23: the sweep never finds a parked run whose message was there. */
export function checkSweep(entry: StoreEntry, report: Report): void {
  if (entry.op === "sweep" && entry.rescued > 0) {
    report("I23", "the sweep had to wake a parked run whose message was there", entry);
  }
}
