import { sqlState } from "../../src/core/sql-state.ts";
import type { StoreSnapshot } from "../../src/store/snapshot.ts";
import type { Lane } from "./lane.ts";
import type { Move } from "./move.ts";
import type { Session } from "./session.ts";

/** What moves answered and what they have left behind. */
export interface Outcome {
  readonly answers: readonly unknown[];
  readonly snapshot: StoreSnapshot;
}

export interface RaceOutcome extends Outcome {
  /** What everybody saw before the first move ended. Null: the second was not over by then, it waited for the first. */
  readonly before: StoreSnapshot | null;
}

/** Makes the moves one after the other, from the saved state. */
export async function inTurn(lane: Lane, moves: readonly Move[]): Promise<Outcome> {
  await lane.restore();
  const answers: unknown[] = [];
  for (const move of moves) answers.push(await makeAlone(lane.first, move));
  return { answers, snapshot: await lane.snapshot() };
}

/** The first move is made and held open; the second starts and ends or waits; the first ends; the second ends. */
export async function race(
  lane: Lane,
  first: Move,
  second: Move,
  ending: "commit" | "rollback",
): Promise<RaceOutcome> {
  await lane.restore();
  await lane.first.begin(first.isolation);
  const answer = await lane.first.make(first);
  const call = makeAlone(lane.second, second);
  const state = await lane.untilOverOrBlocked(call, lane.second, [lane.first]);
  const before = state === "over" ? await lane.snapshot() : null;
  await lane.first[ending]();
  const other = await call.catch((error: unknown) => {
    if (!isToBeRepeated(error)) throw error;
    return makeAlone(lane.second, second);
  });
  return { answers: [answer, other], snapshot: await lane.snapshot(), before };
}

/**
 * A caller's transaction has looked around before the second move, and makes the first one after it, with eyes that do
 * not see it. Null: Postgres refuses that, and the caller must begin again.
 */
export async function raceFromOldSnapshot(lane: Lane, first: Move, second: Move): Promise<Outcome | null> {
  await lane.restore();
  await lane.first.begin(first.isolation);
  await lane.first.query("select count(*) from {schema}.run");
  const other = await makeAlone(lane.second, second);
  try {
    const answer = await lane.first.make(first);
    await lane.first.commit();
    return { answers: [answer, other], snapshot: await lane.snapshot() };
  } catch (error) {
    await lane.first.rollback();
    if (sqlState(error) !== "40001") throw error;
    return null;
  }
}

/** In a transaction of its own; a caller's, if the move is made in one. */
export async function makeAlone(session: Session, move: Move): Promise<unknown> {
  if (move.isolation === null) return session.make(move);
  await session.begin(move.isolation);
  try {
    return await session.make(move);
  } finally {
    await session.commit();
  }
}

/**
 * Blocked for too long, since a slow machine held the first move open, or in need of locks that it must take anew: the
 * store tries such a call again. Callers repeat a repeatable transaction that met what it cannot see.
 */
export function isToBeRepeated(error: unknown): boolean {
  return ["55P03", "40001"].includes(sqlState(error) ?? "");
}
