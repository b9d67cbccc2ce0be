import { describe, expect, test } from "vitest";
import { describeDifferences } from "./difference.ts";
import { gatesOf, raceThrough, stopsAt, type Gate } from "./gate.ts";
import type { Lane } from "./lane.ts";
import { useLanes } from "./lanes.ts";
import { moves as make, type Move } from "./move.ts";
import { makeAlone, type Outcome } from "./race.ts";
import { hasNoEffectYet, isEqual, isEvidenceOpen, isSameState, isSkipping } from "./rules.ts";
import { batches, deadWorker, delayedChild, expiredRun, heldFamily } from "./scenarios.ts";
import { createTurns, type Turns } from "./turns.ts";

// Held open at its end, as in the other tests of pairs, a move has all its locks. Here it stands half-way: it has
// looked at some rows and holds some, and wants others that the second move may have taken.
describe("two transitions that go on at once from half-way", () => {
  const lanes = useLanes(3);

  for (const scenario of [expiredRun, delayedChild, heldFamily, deadWorker, batches]) {
    test(`on ${scenario.name} come to what they come to in turn`, { timeout: 120_000 }, async () => {
      const moves = await lanes.prepare(scenario);
      const turns = createTurns();
      const [gates] = await lanes.share([null], async (lane) => gatesOf(await lane.snapshot()));
      const tries = gates!.flatMap((gate) => moves.map((first) => ({ gate, first })));
      const stopped = await lanes.share(tries, async (lane, { gate, first }) => {
        return (await stopsAt(lane, gate, first)) ? [{ gate, first }] : [];
      });
      // Also where both stop: whoever came first has the row first.
      const pairs = stopped
        .flat()
        .flatMap(({ gate, first }) => moves.map((second) => ({ gate, first, second })));
      const complaints = await lanes.share(pairs, (lane, pair) => tryThrough(lane, turns, pair));
      expect(complaints.filter((complaint) => complaint !== null)).toEqual([]);
      await lanes.expectNoDeadlock();
    });
  }
});

interface Pair {
  readonly gate: Gate;
  readonly first: Move;
  readonly second: Move;
}

async function tryThrough(lane: Lane, turns: Turns, { gate, first, second }: Pair): Promise<string | null> {
  const title = `"${first.name}" and "${second.name}" wait for ${gate.name}`;
  try {
    const allowed = await turns.ofBoth(lane, first, second);
    const outcome = await raceThrough(lane, gate, first, second);
    if (allowed.some((other) => isEqual(outcome, other))) return null;
    // Calls that were merged are transitions of their own: something may come between them.
    if (first.isMerged || second.isMerged) return null;
    const complaint = await judgeLater(lane, turns, first, second, outcome);
    return complaint === null ? null : `${title}:\n${complaint}`;
  } catch (error) {
    return `${title}: ${String(error)}`;
  }
}

/** What was passed over is made up for, and what was told takes effect. */
async function judgeLater(
  lane: Lane,
  turns: Turns,
  first: Move,
  second: Move,
  outcome: Outcome,
): Promise<string | null> {
  const pair = [first, second];
  const runIds = outcome.snapshot.runs.map(({ id }) => id);
  const wakeUp = pair.some(hasNoEffectYet) ? [make.wakeTold("wake all", runIds)] : [];
  for (const move of [...pair.filter(isSkipping), ...wakeUp]) await makeAlone(lane.first, move);
  const later = { ...outcome, snapshot: await lane.snapshot() };
  const allowed = await turns.ofBoth(lane, first, second, ...wakeUp);
  const isOpen = isEvidenceOpen(first, second) || isEvidenceOpen(second, first);
  if (allowed.some((other) => isSameState(later.snapshot, other.snapshot, isOpen))) return null;
  return describeDifferences(later, allowed);
}
