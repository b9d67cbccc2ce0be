import type { RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import { byteLength } from "../core/name.ts";
import {
  mostBytesAlong,
  mostFactsAlong,
  type ClaimedRun,
  type DueAnswer,
  type Lane,
  type Waker,
} from "../store/lease.ts";
import { describeClaimed } from "./claim.ts";
import { hasUnread } from "./inbox.ts";
import { loadHistory } from "./read.ts";
import { appendEvent } from "./record.ts";
import { compareMarks, earliest, isSuspect, moveToLease, moveToReady, numbersOf } from "./rooms.ts";
import { runOf, type ParkedRoom, type Run, type State } from "./state.ts";
import { keepWorker } from "./workers.ts";

/** Makes parked runs whose time has come claimable, earliest first. What the waker's worker could claim now it holds at once. */
export function wakeDue(state: State, limit: number, waker?: Waker): DueAnswer {
  const now = state.now();
  const { due, spared, lookedAt, holder } = lookAtDue(state, limit, waker);
  const most = waker?.most ?? limit;
  const held: ClaimedRun[] = [];
  let woken = 0;
  let tooMany = 0;
  for (const { run, room, lane } of due) {
    const isHeld = holder !== null && lane !== undefined && mayHold(state, run, room, lane);
    if (isHeld && held.length === most) {
      tooMany++;
      continue;
    }
    woken++;
    if (isHeld) held.push(hold(state, run, room, lane, holder, waker?.histories !== false));
    else moveToReady(state, run, room, hasUnread(run));
  }
  held.sort((a, b) => compareMarks(a.mark, b.mark));
  const hasMore = due.length + spared.length === lookedAt || tooMany > 0;
  const next = state.due.list(null, spared.length + 1)[hasMore ? 0 : spared.length]?.at ?? null;
  const sparedUntil = spared[0] === undefined ? null : spared[0].at + (waker?.sparesMs ?? 0);
  const nextDueAt = hasMore ? next : earliest(sparedUntil, next);
  return { woken, held, hasMore, isRenewed: holder !== null, nextDueAt, now };
}

interface DueRun {
  readonly run: Run;
  readonly room: ParkedRoom;
  readonly at: number;
  readonly lane: Lane | undefined;
}

interface DueRuns {
  readonly due: readonly DueRun[];
  /** Left to others. */
  readonly spared: readonly DueRun[];
  readonly lookedAt: number;
  /** Who can hold some of them. */
  readonly holder: string | null;
}

/** Where the worker gets none of what is looked at first, its own may be behind that. */
function lookAtDue(state: State, limit: number, waker: Waker | undefined): DueRuns {
  const now = state.now();
  const isSpared = ({ lane, at }: DueRun): boolean =>
    waker !== undefined && lane === undefined && at > now - (waker.sparesMs ?? 0);
  const first = waker === undefined || waker.workerId === null ? limit : Math.min(waker.most ?? limit, limit);
  for (let lookedAt = first; ; lookedAt = limit) {
    const all = state.due
      .list(null, lookedAt)
      .flatMap(({ runId, at }) => describeDue(state, runId, at, waker));
    const hasHoldable = all.some(
      ({ run, room, lane }) => lane !== undefined && mayHold(state, run, room, lane),
    );
    const holder = hasHoldable && waker !== undefined && canHold(state, waker) ? waker.workerId : null;
    if (holder === null && all.length === lookedAt && lookedAt < limit) continue;
    const spared = all.filter(isSpared);
    return { due: all.filter((each) => !isSpared(each)), spared, lookedAt, holder };
  }
}

function describeDue(state: State, runId: RunId, at: number, waker: Waker | undefined): readonly DueRun[] {
  const run = runOf(state, runId);
  const { room } = run;
  if (at > state.now() || room?.kind !== "parked") return [];
  return [{ run, room, at, lane: waker?.lanes.find((each) => isOf(each, run)) }];
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

function hold(
  state: State,
  run: Run,
  room: ParkedRoom,
  { crashLimit }: Lane,
  workerId: string,
  isHistoryWanted: boolean,
): ClaimedRun {
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
  const history = isHistoryWanted ? historyAlong(state, run, room.lastSeq) : null;
  return {
    ...claimed,
    ...(fired !== undefined && { fired }),
    ...(history !== null && { history }),
  };
}

/** Null where it is too long, or was none before. */
function historyAlong(state: State, run: Run, lastSeq: number): readonly RunEvent[] | null {
  if (lastSeq < 1 || lastSeq > mostFactsAlong) return null;
  const history = loadHistory(state, run.id, 0);
  return history.every(({ seq, data }) => seq > lastSeq || isSmall(data)) ? history : null;
}

function isSmall(data: Payload | null): boolean {
  return byteLength(data?.json ?? "") <= mostBytesAlong && byteLength(data?.notes ?? "") <= mostBytesAlong;
}
