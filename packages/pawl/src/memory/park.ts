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
  const dueAt = earliestDue(parking, timers.values(), now);
  if (dueAt !== null && dueAt <= now && goesOnWhenDue(parking)) {
    return { ...answer, outcome: "due", messages: [] };
  }
  letGo(state, run, room, parking, dueAt);
  // An attempt that has failed is over, and counts: the run is woken like one that was told afterwards.
  if (hasNews) wake(state, [run]);
  return { ...answer, told: false, outcome: "parked", messages: [] };
}

function earliestDue(parking: Parking, timers: Iterable<number>, now: number): number | null {
  const times = [...timers];
  if (parking.dueAt !== null) times.push(parking.dueAt);
  if (parking.delayMs !== null) times.push(Math.ceil(now + parking.delayMs));
  return times.length === 0 ? null : Math.min(...times);
}

/** A new attempt, a pause and a block need a new claim, even if it comes at once. */
function goesOnWhenDue(parking: Parking): boolean {
  return !parking.attemptFailed && parking.reason !== "paused" && parking.reason !== "blocked";
}

function letGo(state: State, run: Run, room: LeaseRoom, parking: Parking, dueAt: number | null): void {
  const failed = parking.attemptFailed ? 1 : 0;
  const numbers = {
    epoch: room.epoch,
    lastSeq: parking.lastSeq,
    attempt: room.attempt + failed,
    failures: room.failures + failed,
    crashes: 0,
    suspicion: 0,
  };
  moveToParked(state, run, numbers, { reason: parking.reason, dueAt, wants: parking.wants });
}
