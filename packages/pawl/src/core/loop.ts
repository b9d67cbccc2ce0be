import { backOffMs } from "./back-off.ts";
import type { Log } from "./log.ts";
import type { Random } from "./random.ts";
import type { Timers } from "./timers.ts";

export interface LoopSeams {
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
}

/** Something that is done over and over. */
export interface Loop {
  /** Takes the first turn at once. */
  start(): void;
  /** Cuts the rest short. Pokes that come while a turn is taken lead to one more turn, however many they are. */
  poke(): void;
  /** Pokes; resolves when a turn that began after this has succeeded and led to a rest, or when the loop has stopped. */
  turned(): Promise<void>;
  /** Takes no further turn; resolves when the one being taken has ended. */
  stop(): Promise<void>;
}

/**
 * Takes turns, one at a time, until stopped. A turn answers how many ms to rest after it; `Infinity` rests until
 * poked. A turn that fails is reported, and tried again after a growing, jittered pause that no poke shortens.
 */
export function createLoop(
  name: string,
  seams: LoopSeams,
  turn: () => Promise<number>,
  longestBackOffMs = 5_000,
): Loop {
  const { timers, random, log } = seams;
  let running: Promise<void> | null = null;
  let stopped = false;
  let poked = false;
  let awaited: (() => void)[] = [];
  let resting: { readonly pokeable: boolean; wake(): void } | null = null;

  const rest = (ms: number, pokeable: boolean): Promise<void> =>
    new Promise((resolve) => {
      if (stopped || ms <= 0 || (pokeable && poked)) return resolve();
      const wake = (): void => {
        cancelTimer();
        resting = null;
        resolve();
      };
      const cancelTimer = ms === Number.POSITIVE_INFINITY ? () => {} : timers.after(ms, wake);
      resting = { pokeable, wake };
    });

  const takeTurns = async (): Promise<void> => {
    let failures = 0;
    while (!stopped) {
      poked = false;
      const asked = awaited;
      awaited = [];
      try {
        const restMs = await turn();
        failures = 0;
        if (restMs > 0) for (const resolve of asked) resolve();
        else awaited.push(...asked);
        await rest(restMs, true);
      } catch (error) {
        failures += 1;
        awaited.push(...asked);
        log.warn(`The ${name} failed; it will be tried again.`, { loop: name, failures, error });
        await rest(backOffMs(failures, random, Math.min(100, longestBackOffMs), longestBackOffMs), false);
      }
    }
  };

  const poke = (): void => {
    poked = true;
    if (resting?.pokeable) resting.wake();
  };

  return {
    start() {
      if (!stopped) running ??= takeTurns();
    },
    poke,
    turned() {
      if (stopped) return Promise.resolve();
      poke();
      return new Promise((resolve) => awaited.push(resolve));
    },
    async stop() {
      stopped = true;
      resting?.wake();
      await running;
      for (const resolve of awaited) resolve();
    },
  };
}
