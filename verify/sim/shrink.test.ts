import { expect, test } from "vitest";
import { walk } from "../gen/program.ts";
import { describeTerms } from "./describe-terms.ts";
import { mutants } from "./mutants.ts";
import { drawTerms, runSchedule, type Spoil } from "./schedule.ts";
import { shrink, type SmallFailure } from "./shrink.ts";

const ofTimers = mutants.find(({ name }) => name === "timers are set too short");

async function findFailure(spoil: Spoil | undefined): Promise<SmallFailure> {
  for (let i = 0; ; i++) {
    const seed = `shrink ${i}`;
    const { violations } = await runSchedule(seed, { spoil });
    const early = violations.filter(({ invariant }) => invariant === "I9");
    if (early.length > 0) return { seed, violations: early };
  }
}

test("a schedule that fails shrinks to a program of a few lines, and its seed tells how", async () => {
  const spoil = ofTimers?.spoil;
  const small = await shrink(await findFailure(spoil), 60, { spoil });
  const terms = drawTerms(small.seed);
  const { roots, batch } = terms.scenario;
  const programs = [...roots, ...(batch?.items ?? [])].map(({ program }) => program);
  const ops = programs.flatMap((program) => [...walk(program.ops, true)]);
  expect(ops.length).toBeLessThan(4);
  expect(describeTerms(terms).split("\n").length).toBeLessThan(14);

  const again = await runSchedule(small.seed, { spoil });
  expect(again.violations[0]).toEqual(small.violations[0]);
  expect((await runSchedule(small.seed)).violations).toEqual([]);
}, 120_000);

test("a world from which nothing is cut has the seed it was drawn from", async () => {
  const violations = [{ invariant: "I1", says: "nothing of the kind happened", witness: [] }];
  expect(await shrink({ seed: "whole", violations }, 0)).toEqual({ seed: "whole", violations });
});
