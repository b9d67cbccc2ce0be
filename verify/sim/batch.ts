import type { Violation } from "../hist/verdict.ts";
import { describeTerms } from "./describe-terms.ts";
import { drawTerms, runSchedule } from "./schedule.ts";
import { shrink } from "./shrink.ts";
import { count, type Tally } from "./tally.ts";

/** What a number of schedules showed. Plain values only: it travels between processes. */
export interface BatchReport {
  readonly schedules: number;
  /** Schedules that were run twice, to see whether they are the same. */
  readonly repeated: number;
  /** What they took of a core. */
  readonly cpuSeconds: number;
  readonly landed: readonly (readonly [string, number])[];
  /** Calls made after the world had healed. */
  readonly asked: number;
  readonly answered: number;
  readonly failure: BatchFailure | null;
}

interface BatchFailure {
  readonly seed: string;
  readonly violations: readonly Violation[];
  /** What happens in it, in words. */
  readonly story: string;
}

/** How long a world that fails is made smaller. */
const shrinkSeconds = 10;

/** One in this many schedules is run twice, with a trace. */
const repeatEvery = 200;

/** Runs schedules, one after the other, until the time is up or one of them fails. */
export async function runBatch(seedOf: (index: number) => string, seconds: number): Promise<BatchReport> {
  const beganAt = performance.now();
  const cpuBefore = process.cpuUsage();
  const landed: Tally = new Map();
  let asked = 0;
  let answered = 0;
  let repeated = 0;
  let schedules = 0;
  let failure: BatchFailure | null = null;
  const elapsed = (): number => (performance.now() - beganAt) / 1000;

  for (; failure === null && elapsed() < seconds; schedules++) {
    const seed = seedOf(schedules);
    const isRepeated = schedules % repeatEvery === 0;
    const result = await runSchedule(seed, { tracing: isRepeated });
    for (const [kind, times] of result.landed) count(landed, kind, times);
    asked += result.asked;
    answered += result.answered;
    if (result.violations.length > 0) {
      const small = await shrink({ seed, violations: result.violations }, shrinkSeconds);
      failure = { ...small, story: describeTerms(drawTerms(small.seed)) };
    }
    if (!isRepeated) continue;
    repeated += 1;
    const again = await runSchedule(seed, { tracing: true });
    const difference = firstDifference(result.trace, again.trace);
    if (difference !== null) {
      failure ??= {
        seed,
        story: "",
        violations: [
          { invariant: "Determinism", says: "two traces of one seed differ", witness: difference },
        ],
      };
    }
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const cpuSeconds = (user + system) / 1e6;
  return { schedules, repeated, cpuSeconds, landed: [...landed], asked, answered, failure };
}

function firstDifference(a: string, b: string): readonly string[] | null {
  if (a === b) return null;
  const [first, second] = [a.split("\n"), b.split("\n")];
  const at = first.findIndex((line, index) => line !== second[index]);
  return [first[at] ?? "(the end)", second[at] ?? "(the end)"];
}
