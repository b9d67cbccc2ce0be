import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { SweepAnswer, SweepRequest } from "../store/worker-record.ts";
import { closeRun, leaveForGood, stopChildren } from "./close-run.ts";
import { isTold } from "./inbox.ts";
import { appendEvent } from "./record.ts";
import { earliest, giveBack, moveToReady, numbersOf } from "./rooms.ts";
import { runOf, type LeaseRoom, type Run, type State } from "./state.ts";
import { wake } from "./wake.ts";
import { allLeases, isOverdue } from "./workers.ts";

/** How many unread messages one sweep looks at. */
const messagesPerSweep = 1_000;

export function sweep(state: State, { limit, after }: SweepRequest): SweepAnswer {
  const expiredWorkers = endOverdueWorkers(state);
  const { recovered, failed } = recoverRuns(state, limit);
  const expiredRuns = expireRuns(state, limit);
  const overlooked = wakeOverlooked(state, after);
  return {
    expiredWorkers,
    recovered,
    failed,
    expiredRuns,
    rescued: overlooked.rescued,
    after: overlooked.after,
    more: recovered + failed === limit || expiredRuns === limit,
  };
}

function endOverdueWorkers(state: State): number {
  const overdue = [...state.workers.values()].filter(
    (worker) => worker.endedAt === null && isOverdue(state, worker),
  );
  if (overdue.length === 0) return 0;
  const begun = allLeases(state).filter(({ room }) => room.begunAt !== null);
  for (const worker of overdue) {
    worker.endedAt = state.now();
    worker.heldAtEnd = begun.filter(({ room }) => room.workerId === worker.id).length;
  }
  return overdue.length;
}

function recoverRuns(state: State, limit: number): { readonly recovered: number; readonly failed: number } {
  const orphans = allLeases(state)
    .filter(({ room }) => state.workers.get(room.workerId)?.endedAt !== null)
    .toSorted((a, b) => Number(isSpent(state, a.room)) - Number(isSpent(state, b.room)))
    .slice(0, limit);
  let failed = 0;
  const told: Run[] = [];
  for (const { run, room } of orphans) {
    if (room.begunAt === null) giveBack(state, run, room);
    else told.push(...recoverCrashed(state, run, room, room.begunAt));
    if (run.end) failed += 1;
  }
  for (const { run } of orphans) told.push(...stopChildren(state, run));
  // Now that all have left their dead holders: a parent may be among them.
  wake(state, told);
  return { recovered: orphans.length - failed, failed };
}

/**
 * Its code may have run when its worker died: the crash is written down, and counts against it if it was alone.
 * Answers those who were told that it has failed.
 */
function recoverCrashed(state: State, run: Run, room: LeaseRoom, beganAt: number): readonly Run[] {
  const isAlone = wasAlone(state, room);
  const crashes = room.crashes + (isAlone ? 1 : 0);
  const suspicion = Math.max(room.suspicion + 1, isAlone ? 2 : 0);
  const seq = run.newestSeq + 1;
  const data = { json: JSON.stringify({ workerId: room.workerId, alone: isAlone }), notes: null };
  appendEvent(
    state,
    run,
    { seq, kind: "attempt_crashed", name: null, attempt: room.attempt, beganAt, data },
    room.workerId,
  );

  if (isSpent(state, room)) {
    appendEvent(state, run, { seq: seq + 1, kind: "failed", name: null, data: crashedError });
    return leaveForGood(state, run, { status: "failed", output: null, error: crashedError });
  }
  const numbers = { ...numbersOf(room), lastSeq: seq, attempt: room.attempt + 1, crashes, suspicion };
  moveToReady(state, run, numbers, true);
  return [];
}

function wasAlone(state: State, room: LeaseRoom): boolean {
  return state.workers.get(room.workerId)?.heldAtEnd === 1;
}

/** Whether this crash is one too many. A limit of 0 is always reached: alone or not. */
function isSpent(state: State, room: LeaseRoom): boolean {
  return room.begunAt !== null && room.crashes + (wasAlone(state, room) ? 1 : 0) >= room.crashLimit;
}

const crashedError: Payload = {
  json: JSON.stringify({
    name: "PawlError",
    code: "WORKER_CRASHED",
    message: "The worker died while it ran this, as often as the crash limit allows.",
  }),
  notes: null,
};

function expireRuns(state: State, limit: number): number {
  const expired = state.expiring.list(null, limit).filter(({ at }) => at <= state.now());
  for (const { runId } of expired) {
    const run = runOf(state, runId);
    const seq = (run.room?.lastSeq ?? 0) + 1;
    const status = earliest(run.expiresAt, run.deadlineAt) === run.expiresAt ? "expired" : "timed_out";
    appendEvent(state, run, { seq, kind: status, name: null, data: null });
    wake(state, closeRun(state, run, { status, output: null, error: null }));
  }
  return expired.length;
}

const controlTopics = ["cancel", "pause", "resume"];

/** The safety net: parked runs that are told and yet still parked, and control messages that nobody has passed on. */
function wakeOverlooked(
  state: State,
  after: RunId | null,
): { readonly rescued: number; readonly after: RunId | null } {
  const overlooked: Run[] = [];
  let rescued = 0;
  let seen = 0;
  let stoppedAt: RunId | null = null;
  for (const runId of state.withUnread.list(after)) {
    const run = runOf(state, runId);
    if (run.room?.kind === "parked" && isTold(run, run.room.wants)) {
      overlooked.push(run);
      rescued++;
    } else if (
      run.room !== null &&
      run.room.kind !== "parked" &&
      !run.room.told &&
      isTold(run, controlTopics)
    ) {
      overlooked.push(run);
    }
    seen += run.unread.size;
    if (seen >= messagesPerSweep) {
      stoppedAt = runId;
      break;
    }
  }
  wake(state, overlooked);
  return { rescued, after: stoppedAt };
}
