import { placeIn } from "../conformance/world.ts";
import type { Lane } from "./lane.ts";
import type { Move } from "./move.ts";
import { inTurn, type Outcome } from "./race.ts";

/** What moves come to one after the other, found out once for each sequence. */
export interface Turns {
  of(lane: Lane, moves: readonly Move[]): Promise<Outcome>;
  /** Both orders of two moves, followed by others. The answers are in the order of the moves given. */
  ofBoth(lane: Lane, first: Move, second: Move, ...others: readonly Move[]): Promise<readonly Outcome[]>;
}

export function createTurns(): Turns {
  const known = new Map<string, Promise<Outcome>>();
  const turns: Turns = {
    of(lane, moves) {
      const key = JSON.stringify(moves.map(({ name }) => name));
      let outcome = known.get(key);
      if (outcome === undefined) known.set(key, (outcome = inSoundTurn(lane, moves)));
      return outcome;
    },
    async ofBoth(lane, first, second, ...others) {
      const inOrder = await turns.of(lane, [first, second, ...others]);
      const { answers, snapshot } = await turns.of(lane, [second, first, ...others]);
      const [answer, earlier, ...later] = answers;
      return [inOrder, { answers: [earlier, answer, ...later], snapshot }];
    },
  };
  return turns;
}

async function inSoundTurn(lane: Lane, moves: readonly Move[]): Promise<Outcome> {
  const outcome = await inTurn(lane, moves);
  for (const { id } of outcome.snapshot.runs) placeIn(outcome.snapshot, id);
  return outcome;
}
