import type { Violation } from "../hist/verdict.ts";
import { drawTerms, runSchedule } from "../sim/schedule.ts";
import type { Tally } from "../sim/tally.ts";
import { calm } from "./calm-plan.ts";
import { harmsAt, Script, type SingleFault } from "./script.ts";

/** A schedule in which one thing goes wrong. */
export interface Case {
  readonly seed: string;
  readonly fault: SingleFault;
}

/** What happens in a schedule in which nothing goes wrong. */
export interface Baseline {
  /** How often each place is passed. */
  readonly passed: ReadonlyMap<string, number>;
  readonly landed: Tally;
  readonly violations: readonly Violation[];
}

export async function runBaseline(seed: string): Promise<Baseline> {
  const script = new Script(null);
  const { landed, violations } = await runSchedule(seed, { script }, drawTerms(seed, calm));
  return { passed: script.passed, landed, violations };
}

/** Everything that can go wrong at every passing of every place, one at a time. */
export function* casesOf(seed: string, { passed }: Baseline): Generator<Case> {
  for (const [place, times] of passed)
    for (let nth = 1; nth <= times; nth++)
      for (const harm of harmsAt(place)) yield { seed, fault: { place, nth, harm } };
}

export async function runCase({ seed, fault }: Case): Promise<readonly Violation[]> {
  const script = new Script(fault);
  const { violations } = await runSchedule(seed, { script }, drawTerms(seed, calm));
  if (script.hasLanded) return violations;
  const says = "a place was not passed that was passed when nothing went wrong";
  return [...violations, { invariant: "Determinism", says, witness: [fault] }];
}

/** One word for a shell. */
export function nameOf({ seed, fault }: Case): string {
  return [seed, fault.place, fault.nth, fault.harm].join("@").replaceAll(" ", "_");
}

/** Null: it is the name of a schedule in which nothing goes wrong. */
export function parseCase(name: string): Case | null {
  const [seed = "", place, nth, harm] = name.replaceAll("_", " ").split("@");
  if (place === undefined || nth === undefined || harm === undefined) return null;
  const known = harmsAt(place).find((word) => word === harm);
  return known === undefined ? null : { seed, fault: { place, nth: Number(nth), harm: known } };
}
