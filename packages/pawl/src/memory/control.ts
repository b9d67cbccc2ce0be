import { cancelError } from "../core/cancel-error.ts";
import { cancelFromParentId } from "../core/child-end.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { Rescheduling, RunEnd } from "../store/run-record.ts";
import type { RedriveAnswer, RedriveTerms } from "../store/store.ts";
import { closeRun, tellParent } from "./close-run.ts";
import { dismissMessage, hasUnread, putMessage, removeMessage, takeMessage } from "./inbox.ts";
import { errorCodeOf } from "./read.ts";
import { appendEvent } from "./record.ts";
import { earliest, moveToParked, moveToReady, numbersOf } from "./rooms.ts";
import { reopenStreams } from "./showing.ts";
import { compareText } from "./sorted-list.ts";
import { runOf, type EndedRun, type Room, type Run, type State } from "./state.ts";
import { wake } from "./wake.ts";

export function terminate(
  state: State,
  runId: RunId,
  data: Payload | null,
): "terminated" | "ended" | "missing" {
  const run = state.runs.get(runId);
  if (!run) return "missing";
  const { room } = run;
  if (!room) return "ended";
  const seq = run.newestSeq + 1;
  const begun = room.kind === "lease" && room.begunAt !== null ? room : null;
  const attempt = begun === null ? {} : { attempt: begun.attempt, beganAt: begun.begunAt ?? 0 };
  appendEvent(state, run, { seq, kind: "cancel_requested", name: null, data });
  appendEvent(
    state,
    run,
    { seq: seq + 1, kind: "cancelled", name: null, ...attempt, data: null },
    begun?.workerId ?? null,
  );
  wake(state, closeRun(state, run, { status: "cancelled", output: null, error: cancelError(data) }));
  if (room.kind === "lease") state.hints.add({ kind: "told", runId });
  return "terminated";
}

export function redrive(
  state: State,
  runIds: readonly RunId[],
  terms: RedriveTerms = {},
): ReadonlyMap<RunId, RedriveAnswer> {
  const ends = new Map<Run, EndedRun>();
  const answers = new Map<RunId, RedriveAnswer>();
  for (const runId of new Set(runIds)) {
    const run = state.runs.get(runId);
    const answer = answerRedrive(run, terms);
    answers.set(runId, answer);
    if (answer !== "redriven" || !run?.end) continue;
    ends.set(run, run.end);
    run.end = null;
  }
  // Only now: a child may be among them.
  for (const run of ends.keys()) forgetOrders(state, run);
  for (const [run, end] of ends) revive(state, run, end, terms.from === "start");
  return answers;
}

function answerRedrive(run: Run | undefined, { from, endedAt }: RedriveTerms): RedriveAnswer {
  if (!run) return "missing";
  if (!run.end) return "live";
  // One that went on as another has nothing to begin anew: its chain is where the other is.
  if (run.end.status === "completed" && (from !== "start" || run.continuedAs !== null)) return "completed";
  return run.end.endedAt === (endedAt?.get(run.id) ?? run.end.endedAt) ? "redriven" : "live";
}

/** What was asked of its last life does not concern this one. */
function forgetOrders(state: State, run: Run): void {
  for (const { id, topic } of run.unread.list()) {
    if (topic === "cancel" || topic === "pause" || topic === "resume") takeMessage(state, run, id, 0);
  }
  if (run.parentId !== null) dismissMessage(state, run, cancelFromParentId(run.id, run.parentId));
}

function revive(state: State, run: Run, end: EndedRun, isFresh: boolean): void {
  run.startAt = null;
  run.expiresAt = null;
  if (run.deadlineAt !== null && run.deadlineAt <= state.now()) run.deadlineAt = null;
  if (isFresh) {
    forgetChildren(state, run);
    reopenStreams(run);
  } else hearChildren(state, run);
  const seq = run.newestSeq + 1;
  const data = isFresh ? { json: `{"from":"start"}`, notes: null } : null;
  appendEvent(state, run, { seq, kind: "redriven", name: null, data });
  moveToReady(
    state,
    run,
    {
      epoch: end.epoch,
      lastSeq: seq,
      attempt: end.attempt + (end.epoch > 0 ? 1 : 0),
      failures: 0,
      crashes: 0,
      suspicion: errorCodeOf(end.error) === "WORKER_CRASHED" ? 2 : 0,
    },
    true,
  );
}

/** Children that ended while it did not live could not tell. What failed then belongs to its earlier life. */
function hearChildren(state: State, run: Run): void {
  for (const childId of [...run.childIds].sort(compareText)) {
    const child = runOf(state, childId);
    // It went on as another, which is a child too.
    if (child.continuedAs !== null) continue;
    const end = child.end ?? (isStopping(child, run.id) ? cancelled : null);
    if (end !== null) tellParent(state, run, child, end);
    const message = run.inbox.get(childId);
    if (message === undefined || message.takenSeq !== null) continue;
    const { name, data } = message;
    const seq = run.newestSeq + 1;
    if (end === null) removeMessage(state, run, childId);
    else if (end.status !== "completed")
      appendEvent(state, run, { seq, kind: "child_ended", name, data, takes: childId });
  }
}

/** What a child counts as that was asked to stop with its parent, and has not ended when its parent lives again. */
const cancelled: RunEnd = { status: "cancelled", output: null, error: null };

function isStopping(child: Run, parentId: RunId): boolean {
  const asked = child.inbox.get(cancelFromParentId(child.id, parentId));
  return asked !== undefined && asked.takenSeq !== 0;
}

/** Keeps what its children have told, and will tell, from a life that has not started them. */
function forgetChildren(state: State, run: Run): void {
  for (const id of run.childIds) {
    const name = runOf(state, id).parentRequest;
    putMessage(state, run, { id, topic: "child", name, data: null, idempotencyKey: null });
    takeMessage(state, run, id, 0);
  }
}

export function reschedule(
  state: State,
  { runId, priority, startAt }: Rescheduling,
): "rescheduled" | "begun" | "ended" | "missing" {
  const run = state.runs.get(runId);
  if (!run) return "missing";
  const { room } = run;
  if (!room) return "ended";
  const isTimed = startAt !== undefined;
  if (room.kind === "lease" || (isTimed && !canBeTimed(room))) return "begun";

  const now = state.now();
  const seq = room.lastSeq + 1;
  appendEvent(state, run, { seq, kind: "rescheduled", name: null, data: describe(priority, startAt) });
  // The room is listed under the old priority.
  const numbers = { ...numbersOf(room), lastSeq: seq };
  if (room.kind === "parked") moveToParked(state, run, numbers, room);
  else moveToParked(state, run, numbers, { reason: "delayed", dueAt: null, wants: [] });
  run.priority = priority ?? run.priority;
  if (isTimed && room.epoch === 0) run.startAt = startAt ?? now;

  if (room.kind === "parked" && room.reason !== "delayed" && room.reason !== "retry") return "rescheduled";
  const dueAt = isTimed
    ? earliest(startAt ?? now, earliest(room.epoch > 0 ? null : run.expiresAt, run.deadlineAt))
    : room.kind === "parked"
      ? room.dueAt
      : null;
  if (dueAt !== null && dueAt > now) {
    const { reason, wants } = room.kind === "parked" ? room : delayed;
    moveToParked(state, run, numbers, { reason, dueAt, wants });
  } else if (room.kind === "ready")
    moveToReady(state, run, numbers, room.told || hasUnread(run), room.mark.readyAt);
  else moveToReady(state, run, numbers, hasUnread(run));
  return "rescheduled";
}

const delayed = { reason: "delayed", wants: ["cancel", "pause"] } as const;

function canBeTimed(room: Room): boolean {
  return room.epoch === 0 || (room.kind === "parked" && room.reason === "retry");
}

function describe(priority: number | undefined, startAt: number | null | undefined): Payload {
  return { json: JSON.stringify({ priority, startAt }), notes: null };
}
