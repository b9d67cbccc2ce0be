import { expect, test } from "vitest";
import { createIds, idsFrom, isRunId, shardOf } from "../../src/core/ids.ts";
import type { Random } from "../../src/core/random.ts";

const draws = (...values: readonly number[]): Random => {
  let next = 0;
  return { next: () => values[next++ % values.length] ?? 0 };
};

test("an id is a uuid v7 that tells its instant, its place in it, and its shard", () => {
  const id = createIds(() => 0x0123_4567_89ab, draws(0, 10 / 16, 0xabc_def_012_345 / 2 ** 48), 5).next();
  expect(id).toBe("01234567-89ab-7000-805a-abcdef012345");
  expect(isRunId(id)).toBe(true);
  expect(shardOf(id)).toBe(5);
});

test.for([0, 1, 1_767_225_600_000.9, 2 ** 48 - 10])("ids grow strictly, from the instant %d on", (ms) => {
  const ids = createIds(() => ms, draws(0.999, 0.5, 0, 0.25));
  const made = Array.from({ length: 10_000 }, () => ids.next());
  expect(made.every(isRunId)).toBe(true);
  expect(made).toEqual([...new Set(made)].sort());
  expect(made[0]! >= idsFrom(ms)).toBe(true);
});
