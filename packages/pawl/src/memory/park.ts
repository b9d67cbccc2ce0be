import { LeaseLostError } from "../core/error.ts";
import { knownSeq, type ParkAnswer, type Parking } from "../store/lease.ts";
import { heldRun } from "./fence.ts";
import { isTold, unreadMessages } from "./inbox.ts";
import { noteLook, write } from "./record.ts";
import { moveToParked } from "./rooms.ts";
import type { LeaseRoom, Run, State } from "./state.ts";
import { wake } from "./wake.ts";

export function park(state: State, parking: Parking): ParkAnswer {
  const { run, room } = heldRun(state, parking.lease, knownSeq(parking));
  // The holder has gone on since: this is an earlier try of a park, come late, and would park the run behind its back.
  if (run.newestSeq > parking.lastSeq) throw new LeaseLostError(parking.lease.runId, parking.lease.epoch);
  const timers = write(state, run, parking);
  const now = state.now();
  const answer = { told: room.told, dueAt: timers, now };

  const hasNews = isTold(run, parking.wants);
  if (hasNews && !parking.attemptFailed) {
    noteLook(room, parking.look);
    return { ...answer, told: room.told, outcome: "told", messages: unreadMessages(run) };
  }
  const due = earliestDue(parking, timers, now);
  if (due !== null && due.at <= now && goesOnWhenDue(parking)) {
    return { ...answer, outcome: "due", messages: [] };
  }
  letGo(state, run, room, parking, due);
  // An attempt that has failed is over, and counts: the run is woken like one that was told afterwards.
  if (hasNews) wake(state, [run]);
  return { ...answer, told: false, outcome: "parked", messages: [] };
}

/** When a run is woken at the latest, and which timer fires then. */
interface Due {
  readonly at: number;
  readonly fires: string | null;
}

/** Of several at the same instant the first: what the holder knew comes before the timers that it has just set. */
function earliestDue(parking: Parking, timers: ReadonlyMap<number, number>, now: number): Due | null {
  const all: Due[] = [];
  if (parking.dueAt !== null) all.push({ at: parking.dueAt, fires: parking.fires ?? null });
  if (parking.delayMs !== null) all.push({ at: Math.ceil(now + parking.delayMs), fires: null });
  for (const { seq, kind, name } of parking.events) {
    const at = timers.get(seq);
    if (at !== undefined) all.push({ at, fires: kind === "timer_set" ? name : null });
  }
  return all.reduce<Due | null>((first, due) => (first === null || due.at < first.at ? due : first), null);
}

/** A new attempt, a pause and a block need a new claim, even if it comes at once. */
function goesOnWhenDue(parking: Parking): boolean {
  return !parking.attemptFailed && parking.reason !== "paused" && parking.reason !== "blocked";
}

function letGo(state: State, run: Run, room: LeaseRoom, parking: Parking, due: Due | null): void {
  const failed = parking.attemptFailed ? 1 : 0;
  const numbers = {
    epoch: room.epoch,
    lastSeq: parking.lastSeq,
    attempt: room.attempt + failed,
    failures: room.failures + failed,
    crashes: 0,
    suspicion: 0,
  };
  const { reason, wants } = parking;
  const fires = reason === "waiting" && parking.fires !== null ? (due?.fires ?? null) : null;
  moveToParked(state, run, numbers, { reason, dueAt: due?.at ?? null, wants, fires });
}
