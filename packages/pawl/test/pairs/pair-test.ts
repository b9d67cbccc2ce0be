import { describe, expect, test } from "vitest";
import { describeDifferences } from "./difference.ts";
import type { Lane } from "./lane.ts";
import { useLanes } from "./lanes.ts";
import { moves, type Move } from "./move.ts";
import { makeAlone, race, raceFromOldSnapshot, type Outcome } from "./race.ts";
import {
  hasNoEffectYet,
  isEqual,
  isEvidenceOpen,
  isPassedOnLater,
  isSameState,
  isSkipping,
  mayWaitFor,
} from "./rules.ts";
import type { Scenario } from "./scenarios.ts";
import { createTurns, type Turns } from "./turns.ts";

/** Tests every ordered pair of each scenario's moves: one is held open, the other starts, the first ends. */
export function describePairs(of: string, scenarios: readonly Scenario[]): void {
  describe(`pairs of transitions on ${of}`, () => {
    const lanes = useLanes(3);

    for (const scenario of scenarios) {
      test(
        `any two on ${scenario.name} come to what they come to in turn`,
        { timeout: 120_000 },
        async () => {
          const moves = await lanes.prepare(scenario);
          const turns = createTurns();
          const pairs = moves.flatMap((first) => moves.map((second) => ({ first, second })));
          const complaints = await lanes.share(pairs, (lane, { first, second }) =>
            tryPair(lane, turns, first, second),
          );
          expect(complaints.flat()).toEqual([]);
          await lanes.expectNoDeadlock();
        },
      );
    }
  });
}

async function tryPair(lane: Lane, turns: Turns, first: Move, second: Move): Promise<readonly string[]> {
  const title = `"${first.name}" is open, "${second.name}" starts`;
  try {
    if (isPassedOnLater(first, second)) return await tryPassingOn(lane, turns, first, second);
    const eitherOrder = await turns.ofBoth(lane, first, second);
    const committed = await race(lane, first, second, "commit");
    const complaint = await judge(lane, first, second, committed, eitherOrder);
    if (complaint !== null) return [`${title}, the first commits:\n${complaint}`];

    const { before } = committed;
    if (before === null && !mayWaitFor(first, second))
      return [`${title}: and waits for a caller's transaction`];
    // What did not wait for the first has not seen it, and has done what it would have done without it.
    const mustRepeat = before === null || isSkipping(second);
    const withoutFirst = await withoutTheFirst(lane, turns, first, second);
    const undone = mustRepeat
      ? await race(lane, first, second, "rollback")
      : { ...committed, snapshot: before };
    const other = await judge(lane, first, second, undone, [withoutFirst]);
    if (other !== null) return [`${title}, the first is rolled back:\n${other}`];

    if (first.isolation !== "repeatable read") return [];
    const late = await raceFromOldSnapshot(lane, first, second);
    const third = late === null ? null : await judge(lane, first, second, late, eitherOrder);
    return third === null
      ? []
      : [`${title} and ends before "${first.name}", from an old snapshot:\n${third}`];
  } catch (error) {
    return [`${title}: ${String(error)}`];
  }
}

/** The message is where it would be after one of the orders, once the run it was sent to is woken. */
async function tryPassingOn(lane: Lane, turns: Turns, first: Move, second: Move): Promise<readonly string[]> {
  const told = hasNoEffectYet(first) ? first : second;
  const wake = moves.wakeTold("wake who is told", [told.values[2] as string]);
  const allowed = [
    (await turns.of(lane, [first, second, wake])).snapshot,
    (await turns.of(lane, [second, first, wake])).snapshot,
  ];
  const { answers } = await race(lane, first, second, "commit");
  await makeAlone(lane.second, wake);
  const snapshot = await lane.snapshot();
  if (allowed.some((other) => isSameState(snapshot, other, false))) return [];
  const outcomes = allowed.map((other) => ({ answers, snapshot: other }));
  return [`"${first.name}" and "${second.name}":\n${describeDifferences({ answers, snapshot }, outcomes)}`];
}

async function withoutTheFirst(lane: Lane, turns: Turns, first: Move, second: Move): Promise<Outcome> {
  const [firstAlone, secondAlone] = [await turns.of(lane, [first]), await turns.of(lane, [second])];
  return { answers: [...firstAlone.answers, ...secondAlone.answers], snapshot: secondAlone.snapshot };
}

/** Says what is wrong with an outcome that is none of those allowed. */
async function judge(
  lane: Lane,
  first: Move,
  second: Move,
  outcome: Outcome,
  allowed: readonly Outcome[],
): Promise<string | null> {
  if (allowed.some((other) => isEqual(outcome, other))) return null;
  if (!isSkipping(second)) return describeDifferences(outcome, allowed);
  await makeAlone(lane.second, second);
  const snapshot = await lane.snapshot();
  if (allowed.some((other) => isSameState(snapshot, other.snapshot, isEvidenceOpen(first, second))))
    return null;
  return describeDifferences({ ...outcome, snapshot }, allowed);
}
