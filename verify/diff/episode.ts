import { createDice } from "./dice.ts";
import { generateOperation } from "./generate.ts";
import { createKnowledge, type Knowledge } from "./knowledge.ts";
import type { Match, Turn } from "./match.ts";
import type { Operation } from "./operation.ts";
import { generatePair } from "./pair-rules.ts";
import type { Tally } from "./tally.ts";

/** Few enough that a failing sequence can be read. */
const turnsPerEpisode = 120;

/** How many turns are two operations at once. */
const pairShare = 0.35;
/** Looking takes longer than most operations. */
const lookEvery = 5;

export interface Episode {
  readonly turns: readonly Turn[];
  /** After the last of them; null: there was none. */
  readonly difference: string | null;
}

/** Random turns on both stores, from empty ones, until they differ. */
export async function playEpisode(match: Match, seed: string, tally: Tally): Promise<Episode> {
  const dice = createDice(seed);
  const known = createKnowledge(dice, await match.begin());
  const turns: Turn[] = [];
  const generateTurn = (): Turn =>
    dice.chance(pairShare) ? generatePair(known) : [generateOperation(known)];
  while (turns.length < turnsPerEpisode) {
    const isLast = turns.length === turnsPerEpisode - 1;
    const turn: Turn = isLast ? [readAll(known)] : generateTurn();
    turns.push(turn);
    const { difference, answers, state } = await match.play(turn, lookEvery);
    if (difference !== null) return { turns, difference };
    if (state === null) break;
    for (const [index, operation] of turn.entries()) {
      known.learn(operation, state);
      tally.add(operation, answers[index] ?? []);
    }
  }
  return { turns, difference: null };
}

const missingId = "019b76da-0000-7000-8000-000000000000";

/** Every run, with whatever has become of it, and one that is not there. */
function readAll({ snapshot }: Knowledge): Operation {
  return { kind: "getRun", calls: [[missingId], ...snapshot.runs.map(({ id }): [string] => [id])] };
}

/** The same turns again. A difference counts only if it comes with the last of them. */
async function replay(match: Match, turns: readonly Turn[]): Promise<string | null> {
  await match.begin();
  for (const [index, turn] of turns.entries()) {
    const { difference, state } = await match.play(turn, 1);
    if (difference !== null) return index === turns.length - 1 ? difference : null;
    if (state === null) return null;
  }
  return null;
}

/** Leaves out what it can without losing the difference. */
export async function shrink(match: Match, episode: Episode, forMs: number): Promise<Episode> {
  const deadline = performance.now() + forMs;
  let best = episode;
  for (let size = Math.ceil(best.turns.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    let start = 0;
    // The last turn is the one that shows it.
    while (start < best.turns.length - 1 && performance.now() < deadline) {
      const end = Math.min(start + size, best.turns.length - 1);
      const turns = [...best.turns.slice(0, start), ...best.turns.slice(end)];
      const difference = await replay(match, turns);
      if (difference === null) start = end;
      else best = { turns, difference };
    }
  }
  return best;
}
