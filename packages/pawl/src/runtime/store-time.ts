import type { Clock } from "../core/clock.ts";

/** What a holder knows of the store's clock, which alone decides what is due. */
export interface StoreTime {
  /** The store's clock has certainly come this far. */
  readonly reached: number;
  /** The store says that it is now this time. */
  learn(now: number): void;
  /** Something has happened at this instant of the store's clock. */
  hasPassed(at: number): void;
  /** What the store's clock may show: good for reports, and for deciding when to look. */
  estimate(): number;
}

/** @param now what the store's clock showed a moment ago */
export function createStoreTime(clock: Clock, now: number): StoreTime {
  let offsetMs = now - clock.now();
  const time = {
    reached: now,
    learn(now: number) {
      time.hasPassed(now);
      offsetMs = now - clock.now();
    },
    hasPassed(at: number) {
      time.reached = Math.max(time.reached, at);
    },
    estimate: () => Math.max(time.reached, Math.floor(clock.now() + offsetMs)),
  };
  return time;
}
