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

/**
 * @param now what the store's clock showed a moment ago
 * @param knownAt that moment, by the process's clock; default: now
 */
export function createStoreTime(clock: Clock, now: number, knownAt: number = clock.now()): StoreTime {
  return new KnownTime(clock, now, knownAt);
}

class KnownTime implements StoreTime {
  reached: number;
  readonly #clock: Clock;
  #offsetMs: number;

  constructor(clock: Clock, now: number, knownAt: number) {
    this.#clock = clock;
    this.reached = now;
    this.#offsetMs = now - knownAt;
  }

  learn(now: number): void {
    this.hasPassed(now);
    this.#offsetMs = now - this.#clock.now();
  }

  hasPassed(at: number): void {
    this.reached = Math.max(this.reached, at);
  }

  estimate(): number {
    return Math.max(this.reached, Math.floor(this.#clock.now() + this.#offsetMs));
  }
}
