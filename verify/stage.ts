import { setTimeout as pause } from "node:timers/promises";
import { describeViolation, type Violation } from "./hist/verdict.ts";

/** What a stage is asked to do. */
export interface StageTask {
  /** Everything that is left to chance follows from it. */
  readonly seed: string;
  /** About how long it may take. */
  readonly seconds: number;
  /** The seed is that of one failure: nothing else is run. */
  readonly isRepeat: boolean;
}

/** A promise that was broken, or a test that proved nothing. */
export interface StageFailure {
  readonly violations: readonly Violation[];
  /** Shows it again; null where chance has no part in it. */
  readonly seed: string | null;
  /** What happens in it, in words, where that is known. */
  readonly story?: string;
}

export interface StageReport {
  /** Faults and operations, and how often each took effect. */
  readonly landed: ReadonlyMap<string, number>;
  /** What it measured, a line for each. */
  readonly figures: readonly string[];
  readonly failures: readonly StageFailure[];
  /** It was given up, and ends with its process. */
  readonly goesOn?: boolean;
}

/** One way of looking for a broken promise. */
export interface Stage {
  /** Also of the profile that is this stage alone. */
  readonly name: string;
  /** It has a fixed amount to do, and may take longer than it is given. */
  readonly takesItsTime?: boolean;
  run(task: StageTask): Promise<StageReport>;
}

/** Who takes so much longer than it was given, to begin, to drain and to shrink included, does not come to its end. */
const longestMsOf = (seconds: number): number => Math.min(2 ** 31 - 1, 4_000 * seconds + 180_000);

/** Runs a stage, and gives it up where it has come to no end. */
export async function runInTime(stage: Stage, task: StageTask): Promise<StageReport> {
  if (stage.takesItsTime === true || task.isRepeat) return stage.run(task);
  const limitMs = longestMsOf(task.seconds);
  const says = `the stage ${stage.name} has not come to its end in ${limitMs / 1_000} s`;
  const failures = [{ violations: [{ invariant: "I17", says, witness: [] }], seed: null }];
  const giveUp = new AbortController();
  const report = await Promise.race([
    stage.run(task),
    pause(limitMs, null, { signal: giveUp.signal }).catch(() => null),
  ]);
  giveUp.abort();
  return report ?? { landed: new Map(), figures: [], failures, goesOn: true };
}

/** A test that could not have failed has failed. */
export function provesNothing(says: string): StageFailure {
  return { violations: [{ invariant: "Proof", says, witness: [] }], seed: null };
}

export function describeReport({ landed, figures, failures }: StageReport, stage: string): string {
  const counts = [...landed]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([kind, times]) => `${String(times).padStart(9)}  ${kind}`);
  return [...counts, ...figures, ...failures.map((failure) => describeFailure(failure, stage))].join("\n");
}

function describeFailure({ violations, seed, story }: StageFailure, stage: string): string {
  const described = violations.map(describeViolation);
  if (seed === null) return described.join("\n");
  const broken = [...new Set(violations.map(({ invariant }) => invariant))].join(", ");
  return [
    ...(story === undefined ? [] : [story]),
    ...described,
    `Seed ${seed} breaks ${broken}. To see it again:\n\n    npm run verify -- --profile ${stage} --seed ${seed}\n`,
  ].join("\n");
}
