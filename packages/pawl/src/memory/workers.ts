import type { RunId } from "../core/ids.ts";
import type { Heartbeat, HeartbeatAnswer, NewWorker } from "../store/worker-record.ts";
import { giveBack } from "./rooms.ts";
import { runOf, type LeaseRoom, type Run, type State, type Worker } from "./state.ts";

export function registerWorker(state: State, worker: NewWorker): void {
  if (state.workers.has(worker.id)) return;
  const { id, host, pid, leaseMs } = worker;
  state.workers.set(id, { id, host, pid, leaseMs, heardAt: state.now(), endedAt: null, heldAtEnd: null });
}

export function heartbeat(state: State, { workerId, held, claimsKnownTo }: Heartbeat): HeartbeatAnswer {
  const now = state.now();
  const worker = state.workers.get(workerId);
  if (!worker || worker.endedAt !== null || isOverdue(state, worker)) {
    return { alive: false, told: [], lost: [], returned: 0, now };
  }
  worker.heardAt = now;

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
