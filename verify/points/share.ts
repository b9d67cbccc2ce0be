import type { Violation } from "../hist/verdict.ts";
import { createRng } from "../sim/rng.ts";
import { operationKinds } from "../sim/tally.ts";
import { casesOf, nameOf, runBaseline, runCase, type Case } from "./case.ts";
import { harmsAt } from "./script.ts";

/** What one process is to try. */
export interface ShareTask {
  readonly seed: string;
  /** `all`: every case of the catalogue. `sample`: a few of each of many programs. */
  readonly mode: "all" | "sample";
  /** For a sample. */
  readonly seconds: number;
  /** Which of how many shares this is. */
  readonly share: number;
  readonly shares: number;
}

/** Plain values only: it travels between processes. */
export interface ShareReport {
  readonly cases: number;
  readonly programs: number;
  /** How often something went wrong at each place. */
  readonly places: readonly (readonly [string, number])[];
  readonly failure: { readonly seed: string; readonly violations: readonly Violation[] } | null;
}

/** Programs that are looked at for the catalogue. Each of those in it shows what none before it does. */
const candidates = 200;
/** Cases of each program in a sample. */
const sampled = 12;

export async function runShare(task: ShareTask): Promise<ShareReport> {
  const places = new Map<string, number>();
  const programs = new Set<string>();
  let cases = 0;
  for await (const { seed, fault } of task.mode === "all" ? catalogue(task) : sample(task)) {
    programs.add(seed);
    cases += 1;
    places.set(fault.place, (places.get(fault.place) ?? 0) + 1);
    const violations = await runCase({ seed, fault });
    if (violations.length === 0) continue;
    const failure = { seed: nameOf({ seed, fault }), violations };
    return { cases, programs: programs.size, places: [...places], failure };
  }
  return { cases, programs: programs.size, places: [...places], failure: null };
}

/** This share of the cases of fixed programs, which together do everything that needs no fault. */
async function* catalogue({ share, shares }: ShareTask): AsyncGenerator<Case> {
  const seen = new Set<string>();
  let index = 0;
  for (let number = 1; number <= candidates; number++) {
    const seed = `points.${number}`;
    const baseline = await runBaseline(seed);
    const shown = [
      ...baseline.passed.keys(),
      ...operationKinds.filter((kind) => (baseline.landed.get(kind) ?? 0) > 0),
    ];
    if (shown.every((kind) => seen.has(kind))) continue;
    for (const kind of shown) seen.add(kind);
    for (const one of casesOf(seed, baseline)) if (index++ % shares === share) yield one;
  }
}

/** A few cases each of programs that nobody has tried before. */
async function* sample({ seed, seconds, share }: ShareTask): AsyncGenerator<Case> {
  const deadline = performance.now() + seconds * 1_000;
  for (let number = 1; performance.now() < deadline; number++) {
    const own = `${seed}.${share}.${number}`;
    const rng = createRng(`${own} cases`);
    const { passed } = await runBaseline(own);
    for (let left = sampled; left > 0 && passed.size > 0; left--) {
      // Most of what happens is polling: every place is as likely as any other.
      const [place, times] = rng.pick([...passed]);
      yield { seed: own, fault: { place, nth: 1 + rng.below(times), harm: rng.pick(harmsAt(place)) } };
    }
  }
}
