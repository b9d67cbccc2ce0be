import type { Lane } from "./lane.ts";
import type { Move } from "./move.ts";
import { isToBeRepeated, makeAlone } from "./race.ts";
import type { Session } from "./session.ts";

/** Moves that one session makes in turn, each in a transaction that is begun in one step and ended in another. */
export interface Track {
  readonly session: Session;
  readonly moves: readonly Move[];
}

/** Every order of the steps of two tracks: which of them takes the next step. */
export function ordersOf(tracks: readonly [Track, Track]): readonly (readonly number[])[] {
  return interleave(2 * tracks[0].moves.length, 2 * tracks[1].moves.length);
}

function interleave(some: number, others: number): readonly (readonly number[])[] {
  if (some === 0 && others === 0) return [[]];
  const first = some > 0 ? interleave(some - 1, others).map((order) => [0, ...order]) : [];
  const second = others > 0 ? interleave(some, others - 1).map((order) => [1, ...order]) : [];
  return [...first, ...second];
}

/** Takes the steps in this order. A track that is blocked by the other takes its next step when it no longer is. */
export async function playTracks(
  lane: Lane,
  tracks: readonly [Track, Track],
  order: readonly number[],
): Promise<void> {
  const refused: Move[] = [];
  const players = tracks.map(({ session, moves }) => ({
    session,
    steps: stepsOf(session, moves, refused),
    call: Promise.resolve(),
  }));
  for (const turn of order) {
    const [player, other] = [players[turn]!, players[1 - turn]!];
    // Blocked in its last step: only the other can help.
    while ((await lane.untilOverOrBlocked(player.call, player.session, [other.session])) === "blocked") {
      other.call = other.steps.next().value ?? other.call;
      await other.call;
    }
    player.call = player.steps.next().value ?? player.call;
    await lane.untilOverOrBlocked(player.call, player.session, [other.session]);
  }
  await Promise.all(players.map(({ call }) => call));
  for (const move of refused) await makeAlone(lane.first, move);
}

function* stepsOf(session: Session, moves: readonly Move[], refused: Move[]): Generator<Promise<void>> {
  for (const move of moves) {
    yield begin(session, move, refused);
    yield session.commit();
  }
}

async function begin(session: Session, move: Move, refused: Move[]): Promise<void> {
  await session.begin(move.isolation);
  await session.make(move).catch((error: unknown) => {
    if (!isToBeRepeated(error)) throw error;
    refused.push(move);
  });
}
