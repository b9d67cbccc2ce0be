import { expect, test } from "vitest";
import { walk } from "../gen/program.ts";
import { describeTerms } from "./describe-terms.ts";
import { mutants } from "./mutants.ts";
import { drawTerms, runSchedule, type Spoil } from "./schedule.ts";
import { shrink, type SmallFailure } from "./shrink.ts";

const ofTimers = mutants.find(({ name }) => name === "timers are set too short");

async function findFailures(count: number, spoil: Spoil | undefined): Promise<readonly SmallFailure[]> {
  const found: SmallFailure[] = [];
  for (let i = 0; found.length < count; i++) {
    const seed = `shrink ${i}`;
    const { violations } = await runSchedule(seed, { spoil });
    const early = violations.filter(({ invariant }) => invariant === "I9");
    if (early.length > 0) found.push({ seed, violations: early });
  }
  return found;
}

// Cuts are tried one at a time: a world can end where each of them mends it. Of three, one does not.
test("of schedules that fail one shrinks to a program of a few lines, and the seed of each tells how", async () => {
  const spoil = ofTimers?.spoil;
  const lines: number[] = [];
  for (const failure of await findFailures(3, spoil)) {
    const small = await shrink(failure, 40, { spoil });
    const terms = drawTerms(small.seed);
    const { roots, batch } = terms.scenario;
    const programs = [...roots, ...(batch?.items ?? [])].map(({ program }) => program);
    const ops = programs.flatMap((program) => [...walk(program.ops, true)]);
    expect(ops.length).toBeLessThan(4);
    lines.push(describeTerms(terms).split("\n").length);

    const again = await runSchedule(small.seed, { spoil });
    expect(again.violations[0]).toEqual(small.violations[0]);
    expect((await runSchedule(small.seed)).violations).toEqual([]);
  }
  expect(Math.min(...lines)).toBeLessThan(14);
}, 120_000);

test("a world from which nothing is cut has the seed it was drawn from", async () => {
  const violations = [{ invariant: "I1", says: "nothing of the kind happened", witness: [] }];
  expect(await shrink({ seed: "whole", violations }, 0)).toEqual({ seed: "whole", violations });
});
