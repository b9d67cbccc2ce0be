import { expect, test } from "vitest";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createAhead } from "../../src/worker/ahead.ts";

function createRate(concurrency: number) {
  const clock = createManualClock();
  const ahead = createAhead(clock, concurrency);
  return {
    limit: () => ahead.limit(),
    /** So many runs of this length end within so many milliseconds. */
    pass(ms: number, ended: number, slotMs: number) {
      for (let count = 0; count < ended; count++) ahead.ended(slotMs);
      clock.advance(ms);
    },
  };
}

test("a worker that has done nothing yet holds nothing ahead", () => {
  expect(createRate(100).limit()).toBe(0);
});

test("it holds as many ahead as it gets done in 10 ms", () => {
  const rate = createRate(100);
  rate.pass(20, 200, 3);
  expect(rate.limit()).toBe(100);
  rate.pass(20, 20, 3);
  expect(rate.limit()).toBe(10);
});

test.for([
  [4, 8],
  [100, 200],
  [1_000, 500],
] as const)("with %i slots no more than %i", ([concurrency, most]) => {
  const rate = createRate(concurrency);
  rate.pass(10, 10_000, 3);
  expect(rate.limit()).toBe(most);
});

test("where runs take long it holds none, also when many of them end at the same time", () => {
  const rate = createRate(100);
  rate.pass(1_000, 0, 0);
  expect(rate.limit()).toBe(0);
  rate.pass(10, 100, 10_000);
  expect(rate.limit()).toBe(0);
});

test("what was quick once does not count any more", () => {
  const rate = createRate(100);
  rate.pass(10, 100, 3);
  expect(rate.limit()).toBe(100);
  rate.pass(1_000, 0, 0);
  expect(rate.limit()).toBe(0);
});
