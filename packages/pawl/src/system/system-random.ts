import { getRandomValues } from "node:crypto";
import type { Random } from "../core/random.ts";

/** 53 bits at a time from the system's generator, so that ids of different processes never meet. */
export const systemRandom: Random = drawFrom(new Uint32Array(512));

/** Asks the system for many numbers at once: one at a time, it would cost more than the rest of an id. */
function drawFrom(drawn: Uint32Array<ArrayBuffer>): Random {
  let left = 0;
  const draw = (): number => {
    if (left === 0) left = getRandomValues(drawn).length;
    left -= 1;
    return drawn[left] ?? 0;
  };
  return { next: () => ((draw() >>> 5) * 2 ** 26 + (draw() >>> 6)) / 2 ** 53 };
}
