import type { Random } from "../../packages/pawl/src/core/random.ts";
import { createSeededRandom } from "../../packages/pawl/src/core/seeded-random.ts";

/** Chance, from a seed. Streams forked under different names are independent, so a draw more in one moves no other. */
export interface Rng extends Random {
  /** A whole number from 0 up to, but not including, this one. */
  below(limit: number): number;
  /** A number from the first up to, but not including, the second. */
  between(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  fork(name: string): Rng;
}

export function createRng(seed: string): Rng {
  const random = createSeededRandom(seed);
  const next = (): number => random.next();
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    between: (from, to) => from + next() * (to - from),
    chance: (probability) => next() < probability,
    pick: (items) => {
      if (items.length === 0) throw new Error("There is nothing to pick from.");
      return items[below(items.length)] as (typeof items)[number];
    },
    fork: (name) => createRng(`${seed}/${name}`),
  };
}
