import { expect, test } from "vitest";
import { createRng } from "../sim/rng.ts";
import { runBatch } from "./batch.ts";
import { callKinds, pickCall } from "./call.ts";

test("a batch makes calls of every kind, and finds nothing wrong", { timeout: 60_000 }, async () => {
  const { calls, violations } = await runBatch("kept.memory.1", "");
  expect(violations).toEqual([]);
  const kinds = new Set([...calls.keys()].map((key) => key.split(", ")[0]));
  expect(callKinds.filter((kind) => !kinds.has(kind))).toEqual([]);
});

test("a seed always makes the same calls", () => {
  const labels = (seed: string): readonly string[] => {
    const rng = createRng(seed);
    return Array.from({ length: 200 }, () => pickCall(rng).label);
  };
  expect(labels("a")).toEqual(labels("a"));
  expect(labels("a")).not.toEqual(labels("b"));
});

test("a call can be made with less", () => {
  const rng = createRng("less");
  for (let n = 0; n < 50; n++) {
    const call = pickCall(rng);
    expect([...call.smaller()].length).toBeGreaterThan(0);
  }
});
