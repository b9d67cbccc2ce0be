import type { CreateAnswer, NewRun } from "../store/run-record.ts";
import { compareMessages } from "./inbox.ts";
import { isSameJson } from "./json-equal.ts";
import { moveToParked, moveToReady, newNumbers } from "./rooms.ts";
import { SortedList } from "./sorted-list.ts";
import { runOf, type Run, type State } from "./state.ts";

export function createRuns(state: State, runs: readonly NewRun[]): readonly CreateAnswer[] {
  return runs.map((run) => createRun(state, run));
}

function createRun(state: State, wanted: NewRun): CreateAnswer {
  const ownerId = wanted.key === null ? undefined : state.keys.get(wanted.key);
  if (ownerId !== undefined && ownerId !== wanted.id) {
    const owner = runOf(state, ownerId);
    const isSame =
      owner.workflow === wanted.workflow &&
      owner.version === wanted.version &&
      isSameJson(owner.input, wanted.input);
    return { kind: isSame ? "existing" : "conflict", id: ownerId };
  }
  if (!state.runs.has(wanted.id)) addRun(state, wanted);
  return { kind: "created", id: wanted.id };
}

function addRun(state: State, wanted: NewRun): void {
  const parent = wanted.parent === null ? undefined : state.runs.get(wanted.parent.id);
  const run: Run = {
    id: wanted.id,
    workflow: wanted.workflow,
    version: wanted.version,
    queue: wanted.queue,
    priority: wanted.priority,
    input: wanted.input,
    key: wanted.key,
    retry: wanted.retry,
    expiresAt: wanted.expiresAt,
    deadlineAt: earliest(wanted.deadlineAt, parent?.deadlineAt ?? null),
    parentId: wanted.parent?.id ?? null,
    parentRequest: wanted.parent?.request ?? null,
    rootId: parent?.rootId ?? wanted.id,
    depth: parent ? parent.depth + 1 : 0,
    createdAt: state.now(),
    room: null,
    end: null,
    events: new Map(),
    newestSeq: 0,
    inbox: new Map(),
    unread: new SortedList(compareMessages),
    idempotencyKeys: new Set(),
    childIds: new Set(),
  };
  state.runs.set(run.id, run);
  state.runIds.add(run.id);
  if (run.key !== null) state.keys.set(run.key, run.id);
  parent?.childIds.add(run.id);

  if (wanted.startAt !== null && wanted.startAt > state.now()) {
    moveToParked(state, run, newNumbers, {
      reason: "delayed",
      dueAt: wanted.startAt,
      wants: ["cancel", "pause"],
    });
  } else {
    moveToReady(state, run, newNumbers, false);
  }
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
