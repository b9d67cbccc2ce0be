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
      try {
        const restMs = await turn();
        failures = 0;
        await rest(restMs, true);
      } catch (error) {
        failures += 1;
        log.warn(`The ${name} failed; it will be tried again.`, { loop: name, failures, error });
        await rest(backOffMs(failures, random, Math.min(100, longestBackOffMs), longestBackOffMs), false);
      }
    }
  };

  return {
    start() {
      if (!stopped) running ??= takeTurns();
    },
    poke() {
      poked = true;
      if (resting?.pokeable) resting.wake();
    },
    async stop() {
      stopped = true;
      resting?.wake();
      await running;
    },
  };
}
