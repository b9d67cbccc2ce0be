import type { RunId } from "../core/ids.ts";
import type {
  Heartbeat,
  HeartbeatAnswer,
  NewWorker,
  WorkerFilter,
  WorkerRecord,
} from "../store/worker-record.ts";
import { giveBack, moveToParked } from "./rooms.ts";
import { compareText } from "./sorted-list.ts";
import { runOf, type LeaseRoom, type Run, type State, type Worker } from "./state.ts";

export function registerWorker(state: State, worker: NewWorker): void {
  if (state.workers.has(worker.id)) return;
  const { id, leaseMs } = worker;
  const now = state.now();
  state.workers.set(id, {
    id,
    leaseMs,
    asRegistered: worker,
    startedAt: now,
    heardAt: now,
    longSteps: [],
    sample: null,
    endedAt: null,
    heldAtEnd: null,
  });
  retryBlocked(state, worker);
}

const mostBlocked = 1_000;

/** A worker that is new may have the code that blocked runs wait for. */
function retryBlocked(state: State, { queues, workflows = [] }: NewWorker): void {
  const now = state.now();
  const blocked = state.due
    .list()
    .map(({ runId }) => runOf(state, runId))
    .filter(({ room }) => room?.kind === "parked" && room.reason === "blocked")
    .sort((a, b) => compareText(a.id, b.id))
    .slice(0, mostBlocked);
  for (const run of blocked) {
    const { room, workflow, version, queue } = run;
    if (room?.kind !== "parked" || (room.dueAt ?? 0) <= now) continue;
    if (!workflows.includes(`${workflow}@${version}`) || !queues.includes(queue)) continue;
    moveToParked(state, run, room, { reason: "blocked", dueAt: now, wants: room.wants });
  }
}

export function heartbeat(state: State, beat: Heartbeat): HeartbeatAnswer {
  const { workerId, held, claimsKnownTo } = beat;
  const now = state.now();
  const worker = state.workers.get(workerId);
  if (!worker || worker.endedAt !== null || isOverdue(state, worker)) {
    return { alive: false, leaseMs: null, told: [], lost: [], returned: 0, now };
  }
  worker.heardAt = now;
  const { leaseMs = worker.leaseMs } = beat;
  if (leaseMs <= worker.leaseMs || leasesOf(state, workerId).length === 0) worker.leaseMs = leaseMs;
  worker.longSteps = beat.longSteps ?? [];
  if (beat.sample !== undefined) worker.sample = { at: now, ...beat.sample };

  const knownTo = claimsKnownTo ?? Number.NEGATIVE_INFINITY;
  const leases = leasesOf(state, workerId);
  const known = new Set(held.map(nameOf));
  const unknown = leases.filter(
    ({ run, room }) => !known.has(nameOf({ runId: run.id, epoch: room.epoch })) && room.claimedAt <= knownTo,
  );
  for (const { run, room } of unknown) giveBack(state, run, room);

  const rooms = new Map(leases.map(({ run, room }) => [nameOf({ runId: run.id, epoch: room.epoch }), room]));
  return {
    alive: true,
    leaseMs: worker.leaseMs,
    told: held.filter((entry) => rooms.get(nameOf(entry))?.told).map(({ runId }) => runId),
    lost: held.filter((entry) => !rooms.has(nameOf(entry))).map(({ runId }) => runId),
    returned: unknown.length,
    now,
  };
}

/** One claim of one run. */
function nameOf({ runId, epoch }: { readonly runId: RunId; readonly epoch: number }): string {
  return `${runId}:${epoch}`;
}

export function retireWorker(state: State, workerId: string): void {
  const worker = state.workers.get(workerId);
  if (!worker) return;
  worker.endedAt ??= state.now();
  for (const { run, room } of leasesOf(state, workerId)) giveBack(state, run, room);
}

export function listWorkers(state: State, { endedWithinMs, limit }: WorkerFilter): readonly WorkerRecord[] {
  const since = state.now() - endedWithinMs;
  return [...state.workers.values()]
    .filter(({ endedAt }) => endedAt === null || endedAt >= since)
    .toSorted((a, b) => b.startedAt - a.startedAt || compareText(b.id, a.id))
    .slice(0, limit)
    .map((worker) => {
      const { host, pid, queues, concurrency, workflows = [], settings = {} } = worker.asRegistered;
      const { id, leaseMs, startedAt, heardAt, endedAt, longSteps, sample } = worker;
      const isAlive = endedAt === null && !isOverdue(state, worker);
      const seen = { startedAt, heardAt, endedAt, isAlive, longSteps, sample };
      return { id, host, pid, queues, workflows, concurrency, leaseMs, settings, ...seen };
    });
}

/** It rests no longer: what it holds now must not outlive it by more than its own lease. False: it was not heard in time. */
export function keepWorker(state: State, worker: Worker, leaseMs = worker.leaseMs): boolean {
  if (worker.leaseMs === leaseMs) return true;
  if (isOverdue(state, worker)) return false;
  worker.heardAt = state.now();
  worker.leaseMs = leaseMs;
  return true;
}

export function isOverdue(state: State, worker: Worker): boolean {
  return worker.heardAt <= state.now() - worker.leaseMs;
}

/** In order of run id. */
function leasesOf(
  state: State,
  workerId: string,
): readonly { readonly run: Run; readonly room: LeaseRoom }[] {
  return allLeases(state).filter(({ room }) => room.workerId === workerId);
}

/** In order of run id. */
export function allLeases(state: State): readonly { readonly run: Run; readonly room: LeaseRoom }[] {
  return state.leased.list().flatMap((runId) => {
    const run = runOf(state, runId);
    return run.room?.kind === "lease" ? [{ run, room: run.room }] : [];
  });
}
