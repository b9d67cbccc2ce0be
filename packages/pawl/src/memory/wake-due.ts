import type { ClaimedRun, DueAnswer, Lane, Waker } from "../store/lease.ts";
import { describeClaimed } from "./claim.ts";
import { hasUnread } from "./inbox.ts";
import { appendEvent } from "./record.ts";
import { compareMarks, earliest, isSuspect, moveToLease, moveToReady, numbersOf } from "./rooms.ts";
import { runOf, type ParkedRoom, type Run, type State } from "./state.ts";
import { keepWorker } from "./workers.ts";

/** Makes parked runs whose time has come claimable, earliest first. What the waker's worker could claim now it holds at once. */
export function wakeDue(state: State, limit: number, waker?: Waker): DueAnswer {
  const now = state.now();
  const due = state.due.list(null, limit).filter(({ at }) => at <= now);
  const holder = due.length > 0 && waker !== undefined && canHold(state, waker) ? waker.workerId : null;
  const held: ClaimedRun[] = [];
  let spared = 0;
  let sparedUntil: number | null = null;
  for (const { runId, at } of due) {
    const run = runOf(state, runId);
    const { room } = run;
    if (room?.kind !== "parked") continue;
    const lane = waker?.lanes.find((each) => isOf(each, run));
    const spares = waker === undefined || lane !== undefined ? 0 : (waker.sparesMs ?? 0);
    if (at > now - spares) {
      spared++;
      sparedUntil = earliest(sparedUntil, at + spares);
      continue;
    }
    if (holder !== null && lane !== undefined && mayHold(state, run, room, lane))
      held.push(hold(state, run, room, lane, holder));
    else moveToReady(state, run, room, hasUnread(run));
  }
  held.sort((a, b) => compareMarks(a.mark, b.mark));
  const hasMore = due.length === limit;
  const next = state.due.list(null, spared + 1)[hasMore ? 0 : spared]?.at ?? null;
  const nextDueAt = hasMore ? next : earliest(sparedUntil, next);
  return { woken: due.length - spared, held, hasMore, nextDueAt, now };
}

function isOf(lane: Lane, run: Run): boolean {
  return lane.queue === run.queue && lane.workflow === run.workflow && lane.version === run.version;
}

function canHold(state: State, { workerId, leaseMs }: Waker): boolean {
  const worker = workerId === null ? undefined : state.workers.get(workerId);
  return worker?.endedAt === null && keepWorker(state, worker, leaseMs);
}

function mayHold(state: State, run: Run, room: ParkedRoom, { crashLimit }: Lane): boolean {
  const expiresAt = room.epoch === 0 ? earliest(run.expiresAt, run.deadlineAt) : null;
  if (isSuspect(room) || (expiresAt ?? Infinity) <= state.now()) return false;
  return crashLimit > 0 && !state.pausedQueues.has(run.queue);
}

function hold(state: State, run: Run, room: ParkedRoom, { crashLimit }: Lane, workerId: string): ClaimedRun {
  const now = state.now();
  const told = hasUnread(run);
  const fires = told || (run.deadlineAt ?? Infinity) <= now ? null : room.fires;
  const seq = room.lastSeq + 1;
  const fired =
    fires === null
      ? undefined
      : appendEvent(state, run, { seq, kind: "timer_fired", name: fires, data: null });
  const lease = {
    ...numbersOf(room),
    epoch: room.epoch + 1,
    lastSeq: fired?.seq ?? room.lastSeq,
    workerId,
    claimedAt: now,
    begunAt: now,
    crashLimit,
    told,
    looks: 0,
  };
  moveToLease(state, run, lease);
  const mark = { priority: run.priority, readyAt: room.dueAt ?? now, runId: run.id };
  const claimed = describeClaimed(run, lease, mark);
  return fired === undefined ? claimed : { ...claimed, fired };
}
