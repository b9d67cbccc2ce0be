import type { Violation } from "../hist/verdict.ts";
import { cutAt, listCuts, readSeed, writeSeed, type Cut } from "./cuts.ts";
import { drawTerms, runSchedule, type ScheduleOptions, type Terms } from "./schedule.ts";

/** A failure in the smallest world that was found to show it. */
export interface SmallFailure {
  /** Tells the whole of it, its cuts included. */
  readonly seed: string;
  readonly violations: readonly Violation[];
}

/** What is said of a broken promise, without what differs from one world to the next. */
function kindOf({ invariant, says }: Violation): string {
  return `${invariant} ${says.replaceAll(/\S*[\d"{[]\S*/g, "")}`;
}

/** Cuts from the world all that it takes to break the same promise without, for as long as this. */
export async function shrink(
  from: SmallFailure,
  seconds: number,
  options: ScheduleOptions = {},
): Promise<SmallFailure> {
  const endsAt = performance.now() + seconds * 1_000;
  const kinds = new Set(from.violations.map(kindOf));
  let smallest = from;
  let terms = drawTerms(from.seed);

  const tryCut = async (cut: Cut): Promise<boolean> => {
    const smaller = cutAt(terms, cut);
    const violations = await runQuietly(smallest.seed, smaller, options);
    const kept = violations.filter((violation) => kinds.has(kindOf(violation)));
    if (kept.length === 0) return false;
    const { seed, cuts } = readSeed(smallest.seed);
    smallest = { seed: writeSeed(seed, [...cuts, cut]), violations: kept };
    terms = smaller;
    return true;
  };

  const tryAll = async (): Promise<boolean> => {
    let hasShrunk = false;
    // What is left after a cut has other places: the next one takes the place of what was cut.
    for (let index = 0; ;) {
      const cut = [...listCuts(terms)][index];
      if (cut === undefined || performance.now() > endsAt) return hasShrunk;
      if (await tryCut(cut)) hasShrunk = true;
      else index += 1;
    }
  };

  while (performance.now() < endsAt && (await tryAll()));
  return smallest;
}

/** A world that cannot be run shows nothing. */
async function runQuietly(
  seed: string,
  terms: Terms,
  options: ScheduleOptions,
): Promise<readonly Violation[]> {
  try {
    return (await runSchedule(seed, options, terms)).violations;
  } catch {
    return [];
  }
}
