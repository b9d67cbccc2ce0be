import type { Timers } from "../core/timers.ts";

/** Longer delays overflow the platform's timer, which then fires at once. */
const longestMs = 2 ** 31 - 1;

/** The platform's timers, for delays of any length. A pending one keeps the process alive: somebody waits for it. */
export const systemTimers: Timers = {
  after(ms, callback) {
    let leftMs = Math.max(0, ms);
    let timeout: NodeJS.Timeout | undefined;
    const arm = (): void => {
      const partMs = Math.min(leftMs, longestMs);
      leftMs -= partMs;
      timeout = setTimeout(leftMs > 0 ? arm : callback, partMs);
    };
    if (leftMs !== Number.POSITIVE_INFINITY) arm();
    return () => clearTimeout(timeout);
  },
};
