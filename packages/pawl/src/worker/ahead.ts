import type { Clock } from "../core/clock.ts";

/**
 * How many runs a worker may hold that have no slot yet: as many as it has lately got done in some milliseconds. So a worker of few
 * slots claims as many short runs at a time as one of many, and has always one to begin. Long runs it leaves to others.
 */
export interface Ahead {
  /** A run has left its slot. */
  ended(): void;
  limit(): number;
}

/** What a run may have to wait for a slot, if all goes on as it did. */
const aheadMs = 10;
/** The rate is that of so long at least. */
const leastMs = 5;
const most = 500;

export function createAhead(clock: Clock): Ahead {
  let ended = 0;
  let since = clock.now();
  let perMs = 0;
  return {
    ended() {
      ended += 1;
    },
    limit() {
      const now = clock.now();
      if (now - since >= leastMs) {
        perMs = ended / (now - since);
        ended = 0;
        since = now;
      }
      return Math.min(most, Math.floor(perMs * aheadMs));
    },
  };
}
