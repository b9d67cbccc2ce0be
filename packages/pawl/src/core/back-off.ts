import type { Random } from "./random.ts";

/** How long to wait after the n-th failure in a row: doubling up to a longest pause, the upper half of it random. */
export function backOffMs(failures: number, random: Random, firstMs: number, longestMs: number): number {
  const pauseMs = Math.min(longestMs, firstMs * 2 ** (failures - 1));
  return jittered(pauseMs * 0.75, random, 1 / 3);
}

/** A duration spread evenly over `ms ± spread × ms`, so that processes that began together do not stay in step. */
export function jittered(ms: number, random: Random, spread = 0.2): number {
  return ms * (1 + spread * (2 * random.next() - 1));
}
