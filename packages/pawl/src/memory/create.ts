import { firstEpoch, type ClaimedRun, type CreateHeldAnswer, type Holder } from "../store/lease.ts";
import type { CreateAnswer, NewRun } from "../store/run-record.ts";
import { describeClaimed } from "./claim.ts";
import { compareMessages } from "./inbox.ts";
import { earliest, moveToLease, moveToParked, moveToReady, newNumbers, startDueAt } from "./rooms.ts";
import { isSameInput } from "./same-input.ts";
import { SortedList } from "./sorted-list.ts";
import { runOf, type Run, type State } from "./state.ts";
import { keepWorker } from "./workers.ts";

/** All of them, or none where one is in conflict. `holder`: holds them from their start. */
export function createRuns(
  state: State,
  runs: readonly NewRun[],
  holder: Holder | null = null,
): readonly CreateAnswer[] {
  const byKey = new Map<string, NewRun>();
  const answers = runs.map((run) => judge(state, run, byKey));
  if (answers.some(({ kind }) => kind === "conflict")) {
    return answers.map((answer) => (answer.kind === "conflict" ? answer : { ...answer, kind: "withheld" }));
  }
  for (const [index, run] of runs.entries()) {
    if (answers[index]?.kind === "created" && !state.runs.has(run.id)) addRun(state, run, holder);
  }
  return answers;
}

/** What would become of this run. `byKey`: the runs before it in the same call that have a key. */
function judge(state: State, wanted: NewRun, byKey: Map<string, NewRun>): CreateAnswer {
  if (wanted.key === null) return { kind: "created", id: wanted.id };
  const ownerId = state.keys.get(wanted.key);
  const owner = ownerId === undefined ? byKey.get(wanted.key) : runOf(state, ownerId);
  // A repeated call is one though its run has passed its key on to the one that it went on as.
  const isThere = state.runs.get(wanted.id)?.key === wanted.key;
  if (owner === undefined || owner.id === wanted.id || isThere) {
    byKey.set(wanted.key, wanted);
    return { kind: "created", id: wanted.id };
  }
  // A run that went on as another has passed its key on: a repeated start is known by what the first was started with.
  const first = "firstId" in owner ? runOf(state, owner.firstId) : owner;
  const isSame =
    first.workflow === wanted.workflow &&
    first.version === wanted.version &&
    isSameInput(first.input, wanted.input);
  return { kind: isSame && !wanted.mustBeNew ? "existing" : "conflict", id: owner.id };
}

/** Makes a run known by its id, its key and its parent. */
export function listRun(state: State, run: Run): void {
  state.runs.set(run.id, run);
  state.runIds.add(run.id);
  if (run.key !== null) state.keys.set(run.key, run.id);
  if (run.parentId !== null) state.runs.get(run.parentId)?.childIds.add(run.id);
}

/** It is created, whether or not somebody can hold it. */
export function createHeld(state: State, run: NewRun, holder: Holder): CreateHeldAnswer {
  const worker = state.workers.get(holder.workerId);
  const isHoldable =
    worker?.endedAt === null &&
    !state.pausedQueues.has(run.queue) &&
    keepWorker(state, worker, holder.leaseMs);
  const [answer = { kind: "created", id: run.id }] = createRuns(state, [run], isHoldable ? holder : null);
  return { ...answer, held: heldFromStart(state, run, holder) };
}

/** Also where an earlier try, whose answer was lost, was the one that counted; not what the worker has claimed since. */
function heldFromStart(state: State, { id, priority }: NewRun, { workerId }: Holder): ClaimedRun | null {
  const run = state.runs.get(id);
  if (run?.room?.kind !== "lease") return null;
  const { room, createdAt } = run;
  const isFirst = room.epoch === firstEpoch && room.lastSeq === 0 && room.claimedAt === createdAt;
  if (room.workerId !== workerId || !isFirst) return null;
  return describeClaimed(run, room, { priority, readyAt: createdAt, runId: id });
}

function addRun(state: State, wanted: NewRun, holder: Holder | null): void {
  const now = state.now();
  const parent = wanted.parent === null ? undefined : state.runs.get(wanted.parent.id);
  const run: Run = {
    id: wanted.id,
    workflow: wanted.workflow,
    version: wanted.version,
    queue: wanted.queue,
    priority: wanted.priority,
    input: wanted.input,
    isRaw: wanted.isRaw,
    key: wanted.key,
    tags: wanted.tags,
    retry: wanted.retry,
    startAt: wanted.startAt,
    expiresAt: wanted.expiresAt,
    deadlineAt: earliest(wanted.deadlineAt, wanted.isDetached ? null : (parent?.deadlineAt ?? null)),
    parentId: wanted.parent?.id ?? null,
    parentRequest: wanted.parent?.request ?? null,
    rootId: parent?.rootId ?? wanted.id,
    depth: parent ? parent.depth + 1 : 0,
    isDetached: wanted.isDetached,
    forkedFrom: wanted.forkedFrom,
    firstId: wanted.id,
    continuedAs: null,
    createdAt: now,
    room: null,
    end: null,
    events: new Map(),
    newestSeq: 0,
    inbox: new Map(),
    unread: new SortedList(compareMessages),
    idempotencyKeys: new Set(),
    childIds: new Set(),
    streams: new Map(),
  };
  listRun(state, run);

  const hasExpired = (earliest(run.expiresAt, run.deadlineAt) ?? Infinity) <= now;
  if (holder !== null && !hasExpired && (run.startAt ?? 0) <= now) {
    const { workerId, crashLimit } = holder;
    const numbers = { ...newNumbers, epoch: firstEpoch };
    moveToLease(state, run, {
      ...numbers,
      workerId,
      claimedAt: now,
      begunAt: now,
      crashLimit,
      told: false,
      looks: 0,
    });
  } else if (wanted.startAt !== null && wanted.startAt > now) {
    moveToParked(state, run, newNumbers, {
      reason: "delayed",
      dueAt: startDueAt(run),
      wants: ["cancel", "pause"],
    });
  } else {
    moveToReady(state, run, newNumbers, false);
  }
}
