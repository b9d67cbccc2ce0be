import type { Clock } from "../core/clock.ts";

/** What a holder knows of the store's clock, which alone decides what is due. */
export interface StoreTime {
  /** The store's clock has certainly come this far. */
  readonly reached: number;
  /** Whether any answer of the store has told its time yet. */
  readonly isKnown: boolean;
  /** The store says that it is now this time. */
  learn(now: number): void;
  /** Something has happened at this instant of the store's clock. */
  hasPassed(at: number): void;
  /** What the store's clock may show: good for reports, and for deciding when to look. */
  estimate(): number;
}

export function createStoreTime(clock: Clock, atLeast: number): StoreTime {
  let offsetMs = 0;
  const time = {
    reached: atLeast,
    isKnown: false,
    learn(now: number) {
      time.hasPassed(now);
      time.isKnown = true;
      offsetMs = now - clock.now();
    },
    hasPassed(at: number) {
      time.reached = Math.max(time.reached, at);
    },
    estimate: () => Math.max(time.reached, Math.floor(clock.now() + offsetMs)),
  };
  return time;
}
