import type { Clock } from "../core/clock.ts";

/** Begins at the wall clock and never goes back: setting the machine's clock moves no wait. */
export const systemClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
};
