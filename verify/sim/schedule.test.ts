import { expect, test } from "vitest";
import { describeViolation } from "../hist/verdict.ts";
import { mutants } from "./mutants.ts";
import { programMutants } from "./program-mutants.ts";
import { runtimeMutants } from "./runtime-mutants.ts";
import { drawTerms, runSchedule } from "./schedule.ts";
import { spoilRuntime } from "./spoiled-runtime.ts";

/** A mutant that survives this many schedules is not found. */
const mostSchedules = 8_000;

test("some hundred schedules keep every promise", async () => {
  for (let i = 0; i < 200; i++) {
    const seed = `test ${i}`;
    const { violations } = await runSchedule(seed);
    expect(violations.map(describeViolation), `--seed "${seed}"`).toEqual([]);
  }
});

/** Seeds that once broke a promise, or were said to. */
test.each([
  "20261115.9e8f45b.0.291",
  "20261115.964a5bb.0.234",
  "20261115.964a5bb.1.112",
  "20261115.0ceb4e2.1.31",
  "20261116.a2473f3.1.73526",
  "20261116.d59deec.1.59220",
  "20261116.fe769c4.0.4842",
  "20261116.070c29b.1.107320",
  "20261119.e8495d6.1.51623",
  "20261119.fd7da11.1.23972",
])("the schedule %s keeps every promise", async (seed) => {
  const { violations } = await runSchedule(seed);
  expect(violations.map(describeViolation)).toEqual([]);
});

test("the same seed gives the same trace, another seed another one", async () => {
  const traces = new Set<string>();
  for (let i = 0; i < 20; i++) {
    const first = await runSchedule(`trace ${i}`, { tracing: true });
    const second = await runSchedule(`trace ${i}`, { tracing: true });
    expect(second.trace).toBe(first.trace);
    traces.add(first.trace);
  }
  expect(traces.size).toBe(20);
});

test.each(mutants)(
  "a store in which $name is found out",
  async ({ spoil, breaks }) => {
    for (let i = 0; i < mostSchedules; i++) {
      const { violations } = await runSchedule(`mutant ${i}`, { spoil });
      if (violations.some(({ invariant }) => breaks.includes(invariant))) return;
    }
    expect.fail(`It survived ${mostSchedules} schedules.`);
  },
  240_000,
);

test.each([...runtimeMutants, ...programMutants])(
  "an engine in which $name is found out",
  async ({ breaks, world, ...mistake }) => {
    const simulation = await spoilRuntime(mistake);
    try {
      for (let i = 0; i < mostSchedules; i++) {
        const seed = `mutant ${i}`;
        const { violations } = await simulation.runSchedule(seed, {}, drawTerms(seed, world));
        if (violations.some(({ invariant }) => breaks.includes(invariant))) return;
      }
      expect.fail(`It survived ${mostSchedules} schedules.`);
    } finally {
      await simulation.close();
    }
  },
  240_000,
);
