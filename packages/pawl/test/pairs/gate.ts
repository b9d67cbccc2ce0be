import type { StoreSnapshot } from "../../src/store/snapshot.ts";
import type { Lane } from "./lane.ts";
import type { Move } from "./move.ts";
import { isToBeRepeated, makeAlone, type Outcome } from "./race.ts";

/** A row that a third session holds, so that moves stop half-way. */
export interface Gate {
  readonly name: string;
  readonly text: string;
  readonly id: string;
}

const idColumns = { run: "id", ready: "run_id", lease: "run_id", parked: "run_id", worker: "id" };

/** All rows that moves lock. */
export function gatesOf({ runs, ready, lease, parked, workers }: StoreSnapshot): readonly Gate[] {
  const gate = (table: keyof typeof idColumns, id: string): Gate => ({
    name: `the row of ${id} in ${table}`,
    text: `select 1 from {schema}.${table} where ${idColumns[table]} = $1 for update`,
    id,
  });
  /** The row in the room, or the pack. */
  const roomGate = (table: "ready" | "lease", id: string): Gate => ({
    ...gate(table, id),
    text: `with single as (${gate(table, id).text}), packed as (select 1 from {schema}.pack where $1 = any (run_ids) for update)
           select 1 from single union all select 1 from packed`,
  });
  return [
    ...runs.map(({ id }) => gate("run", id)),
    ...ready.map(({ runId }) => roomGate("ready", runId)),
    ...lease.map(({ runId }) => roomGate("lease", runId)),
    ...parked.map(({ runId }) => gate("parked", runId)),
    ...workers.map(({ id }) => gate("worker", id)),
  ];
}

/** Whether a move, made alone, stops at this gate. */
export async function stopsAt(lane: Lane, gate: Gate, move: Move): Promise<boolean> {
  await lane.restore();
  await close(lane, gate);
  const call = makeAlone(lane.first, move);
  const state = await lane.untilOverOrBlocked(call, lane.first, [lane.third]);
  await lane.third.rollback();
  await call;
  return state === "blocked";
}

/**
 * The first move stops at the gate; the second ends, or stops at the gate or behind the first; the gate opens, and
 * both go on at once.
 */
export async function raceThrough(lane: Lane, gate: Gate, first: Move, second: Move): Promise<Outcome> {
  await lane.restore();
  await close(lane, gate);
  const firstCall = makeAlone(lane.first, first);
  await lane.untilOverOrBlocked(firstCall, lane.first, [lane.third]);
  const secondCall = makeAlone(lane.second, second);
  await lane.untilOverOrBlocked(secondCall, lane.second, [lane.first, lane.third]);
  await lane.third.rollback();
  const [one, other] = await Promise.allSettled([firstCall, secondCall]);
  const answers = [await answerOf(lane, first, one), await answerOf(lane, second, other)];
  return { answers, snapshot: await lane.snapshot() };
}

async function answerOf(lane: Lane, move: Move, settled: PromiseSettledResult<unknown>): Promise<unknown> {
  if (settled.status === "fulfilled") return settled.value;
  if (isToBeRepeated(settled.reason)) return makeAlone(lane.first, move);
  throw settled.reason;
}

async function close(lane: Lane, { text, id }: Gate): Promise<void> {
  await lane.third.begin(null);
  await lane.third.query(text, [id]);
}
