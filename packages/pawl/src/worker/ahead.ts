import type { Clock } from "../core/clock.ts";

/**
 * How many runs a worker may hold that have no slot yet: as many as it has lately got done in some milliseconds, where they are short. So
 * a worker of few slots claims as many short runs at a time as one of many, and has always one to begin. Long runs it leaves to others.
 */
export interface Ahead {
  /** A run has left its slot after so long. */
  ended(slotMs: number): void;
  limit(): number;
}

/** What a run may have to wait for a slot, if all goes on as it did. */
const aheadMs = 10;
/** Runs are short that have their slots for no longer than this, on average. Much of it is the time of the store. */
const shortMs = 30;
/** The rate is that of so long at least. */
const windowMs = 10;
const most = 500;

export function createAhead(clock: Clock, concurrency: number): Ahead {
  let ended = 0;
  let slotsMs = 0;
  let since = clock.now();
  let limit = 0;
  return {
    ended(slotMs) {
      ended += 1;
      slotsMs += slotMs;
    },
    limit() {
      const passedMs = clock.now() - since;
      if (passedMs < windowMs) return limit;
      const inTime = slotsMs <= ended * shortMs ? Math.floor((ended / passedMs) * aheadMs) : 0;
      limit = Math.min(inTime, most, 2 * concurrency);
      ended = 0;
      slotsMs = 0;
      since += passedMs;
      return limit;
    },
  };
}
