import type { Clock } from "../core/clock.ts";
import { parseDuration, type Duration } from "../core/duration.ts";

/** A clock that moves only when told. */
export interface ManualClock extends Clock {
  /** Moves the clock forward. */
  advance(duration: Duration): void;
}

/**
 * Makes a clock that stands still at `startAt` (ms; default: the beginning of 2026) until it is advanced.
 * @example
 * const clock = createManualClock();
 * clock.advance("16s");
 */
export function createManualClock(startAt: number = Date.UTC(2026, 0, 1)): ManualClock {
  let now = startAt;
  return {
    now: () => now,
    advance(duration) {
      now += parseDuration(duration);
    },
  };
}
