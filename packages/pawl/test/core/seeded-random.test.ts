import { expect, test } from "vitest";
import { createSeededRandom } from "../../src/core/seeded-random.ts";

test("the same seed gives the same numbers for ever: histories rest on these", () => {
  const random = createSeededRandom("019b76da-a800-73c9-8008-2579b994348c");
  expect([random.next(), random.next(), random.uuid()]).toMatchInlineSnapshot(`
    [
      0.982819362565659,
      0.209678541819868,
      "eb61cea7-e4bc-4035-9311-9cb2cc385030",
    ]
  `);
});

test("numbers are spread evenly in [0, 1)", () => {
  const random = createSeededRandom("even");
  const counts = Array.from({ length: 10 }, () => 0);
  for (let n = 0; n < 100_000; n++) counts[Math.floor(random.next() * 10)]! += 1;
  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500);
});

test("uuids are version 4, and different for different seeds", () => {
  const uuids = new Set<string>();
  for (let n = 0; n < 10_000; n++) {
    const random = createSeededRandom(`019b76da-a800-73c9-8008-${String(n).padStart(12, "0")}`);
    uuids.add(random.uuid()).add(random.uuid());
  }
  expect(uuids.size).toBe(20_000);
  for (const uuid of uuids)
    expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
