import { createSeededRandom } from "../../packages/pawl/src/core/seeded-random.ts";

/** Chance, repeatable. */
export interface Dice {
  /** A number from 0 up to, but without, 1. */
  next(): number;
  /** True in this share of cases. */
  chance(share: number): boolean;
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  /** One of these, of which there must be some. */
  pick<Item>(items: readonly Item[]): Item;
  /** Some of these, in any order, at most so many. */
  some<Item>(items: readonly Item[], most?: number): readonly Item[];
}

export function createDice(seed: string): Dice {
  const random = createSeededRandom(seed);
  const next = (): number => random.next();
  const between = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    between,
    chance: (share) => next() < share,
    pick: (items) => items[between(0, items.length - 1)]!,
    some(items, most = items.length) {
      const shuffled = items.map((item) => ({ item, place: next() })).sort((a, b) => a.place - b.place);
      return shuffled.slice(0, between(0, Math.min(most, items.length))).map(({ item }) => item);
    },
  };
}
