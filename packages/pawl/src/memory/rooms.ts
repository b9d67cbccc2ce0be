import type { Payload } from "../core/json.ts";
import type { EndStatus } from "../core/run-status.ts";
import type { Mark } from "../store/lease.ts";
import { SortedList, compareText } from "./sorted-list.ts";
import type { LeaseRoom, Numbers, ParkedRoom, Room, Run, State } from "./state.ts";

export const newNumbers: Numbers = {
  epoch: 0,
  lastSeq: 0,
  attempt: 1,
  failures: 0,
  crashes: 0,
  suspicion: 0,
};

/** Suspected of killing its worker: tried alone. */
export function isSuspect(numbers: Numbers): boolean {
  return numbers.suspicion >= 2;
}

/** Nobody has ever held it. */
export function hasNotBegun(run: Run): boolean {
  return run.room !== null && run.room.kind !== "lease" && run.room.epoch === 0;
}

export function numbersOf(room: Numbers): Numbers {
  const { epoch, lastSeq, attempt, failures, crashes, suspicion } = room;
  return { epoch, lastSeq, attempt, failures, crashes, suspicion };
}

/** Makes the run claimable. `isUnbegun`: its code was never called. */
export function moveToReady(
  state: State,
  run: Run,
  numbers: Numbers,
  told: boolean,
  readyAt: number = state.now(),
  isUnbegun: boolean = numbers.epoch === 0,
): void {
  const mark: Mark = { priority: run.priority, readyAt, runId: run.id };
  const expiresAt = isUnbegun ? earliest(run.expiresAt, run.deadlineAt) : null;
  enter(state, run, { kind: "ready", ...numbersOf(numbers), mark, expiresAt, told });
  state.hints.add({ kind: "ready", queue: run.queue });
}

/**
 * Gives a held run back, with nothing held against it. Its history is the truth: a record's answer may have been lost. `readyAt`: its code
 * has not been called under this lease, and it keeps its place.
 */
export function giveBack(state: State, run: Run, room: LeaseRoom, readyAt?: number): void {
  moveToReady(
    state,
    run,
    { ...room, lastSeq: run.newestSeq },
    true,
    readyAt,
    readyAt !== undefined && room.epoch === 1,
  );
}

export function moveToLease(state: State, run: Run, lease: Omit<LeaseRoom, "kind">): void {
  enter(state, run, { kind: "lease", ...lease });
}

export function moveToParked(
  state: State,
  run: Run,
  numbers: Numbers,
  why: Pick<ParkedRoom, "reason" | "dueAt" | "wants"> & Partial<Pick<ParkedRoom, "fires">>,
): void {
  const { reason, dueAt, wants, fires = null } = why;
  enter(state, run, { kind: "parked", ...numbersOf(numbers), reason, dueAt, wants, fires });
}

/** Takes a run out of its room for ever. */
export function leaveRooms(
  state: State,
  run: Run,
  end: { readonly status: EndStatus; readonly output: Payload | null; readonly error: Payload | null },
): void {
  const { epoch, attempt } = run.room ?? newNumbers;
  if (run.room) unlist(state, run, run.room);
  run.room = null;
  const { status, output, error } = end;
  run.end = { status, output, error, endedAt: state.now(), epoch, attempt };
  state.hints.add({ kind: "ended", runId: run.id });
}

/** The ready runs of one kind of work, in the order of claiming. */
export function laneOf(
  state: State,
  kind: { readonly queue: string; readonly workflow: string; readonly version: number },
  suspects: boolean,
): SortedList<Mark> {
  const name = JSON.stringify([kind.queue, kind.workflow, kind.version, suspects]);
  let lane = state.lanes.get(name);
  if (!lane) state.lanes.set(name, (lane = new SortedList(compareMarks)));
  return lane;
}

export function compareMarks(a: Mark, b: Mark): number {
  return a.priority - b.priority || a.readyAt - b.readyAt || compareText(a.runId, b.runId);
}

function enter(state: State, run: Run, room: Room): void {
  if (run.room) unlist(state, run, run.room);
  run.room = room;
  switch (room.kind) {
    case "ready":
      laneOf(state, run, isSuspect(room)).add(room.mark);
      if (room.expiresAt !== null) state.expiring.add({ at: room.expiresAt, runId: run.id });
      return;
    case "lease":
      state.leased.add(run.id);
      return;
    case "parked":
      if (room.dueAt !== null) state.due.add({ at: room.dueAt, runId: run.id });
      return;
    default:
      room satisfies never;
  }
}

function unlist(state: State, run: Run, room: Room): void {
  switch (room.kind) {
    case "ready":
      laneOf(state, run, isSuspect(room)).remove(room.mark);
      if (room.expiresAt !== null) state.expiring.remove({ at: room.expiresAt, runId: run.id });
      return;
    case "lease":
      state.leased.remove(run.id);
      return;
    case "parked":
      if (room.dueAt !== null) state.due.remove({ at: room.dueAt, runId: run.id });
      return;
    default:
      room satisfies never;
  }
}

/** When a run that waits for its start leaves `parked`: to begin, or to end because its time is up before. */
export function startDueAt({ startAt, expiresAt, deadlineAt }: Run): number | null {
  return earliest(startAt, earliest(expiresAt, deadlineAt));
}

export function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
