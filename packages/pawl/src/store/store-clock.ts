import type { Clock } from "../core/clock.ts";
import type { Store } from "./store.ts";

/** The store's clock, as far as this process knows it. Good enough for ids and start times; never for leases. */
export interface StoreClock extends Clock {
  /** Asks the store for its time, or this way if one is given, unless it was heard not long ago. */
  learn(askNow?: () => Promise<number>): Promise<void>;
  /** Nothing need be learned. */
  isKnown(): boolean;
  /** The store answered that it was `storeNow`, to a call made at `sentAt` by the process's clock. */
  heard(storeNow: number, sentAt: number): void;
}

/** Two clocks drift apart by some tens of ms in this time. */
const keptMs = 5 * 60_000;

/** Follows the store's clock by its distance from this process's, so that most readings cost no call. */
export function createStoreClock(clock: Clock, store: Store): StoreClock {
  let offsetMs = 0;
  let heardAt = Number.NEGATIVE_INFINITY;
  let learning: Promise<void> | null = null;

  const heard = (storeNow: number, sentAt: number): void => {
    heardAt = clock.now();
    offsetMs = storeNow - (sentAt + heardAt) / 2;
  };
  const isKnown = (): boolean => clock.now() - heardAt < keptMs;
  const ask = async (askNow: () => Promise<number>): Promise<void> => {
    const sentAt = clock.now();
    heard(await askNow(), sentAt);
  };

  return {
    now: () => clock.now() + offsetMs,
    heard,
    isKnown,
    async learn(askNow) {
      if (isKnown()) return;
      // Not shared: whoever asks in a transaction may hold the connection that the others wait for.
      if (askNow !== undefined) return ask(askNow);
      learning ??= ask(() => store.now()).finally(() => {
        learning = null;
      });
      await learning;
    },
  };
}
