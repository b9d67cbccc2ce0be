import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { byteLength } from "../core/name.ts";
import type { Claim, ClaimRequest, ClaimedRun, Lane, Lease, Mark } from "../store/lease.ts";
import { heldRun, server } from "./fence.ts";
import { compareMarks, laneOf, moveToLease, numbersOf } from "./rooms.ts";
import { runOf, type LeaseRoom, type Run, type State } from "./state.ts";
import { keepWorker } from "./workers.ts";

/** One answer carries no more than this of inputs. */
const mostInputBytes = 8_000_000;

export function claimRuns(state: State, request: ClaimRequest): Claim {
  const worker = state.workers.get(request.workerId);
  if (!worker || worker.endedAt !== null) throw expired(request.workerId);

  // Usually nothing has expired, and then there is no need to look further than the limit.
  const hasLate = (state.expiring.first?.at ?? Infinity) <= state.now();
  const lanes = request.lanes.filter((lane) => !state.pausedQueues.has(lane.queue));
  const limit = request.suspects ? Math.min(request.limit, 1) : request.limit;
  const places = lanes
    .flatMap((lane) =>
      laneOf(state, lane, request.suspects)
        .list(lane.after, hasLate ? undefined : limit)
        .filter((mark) => !hasLate || !hasExpired(state, mark.runId))
        .slice(0, limit)
        .map((mark) => ({ mark, lane })),
    )
    .sort((a, b) => compareMarks(a.mark, b.mark))
    .slice(0, limit);

  if (places.length > 0 && !keepWorker(state, worker, request.leaseMs)) throw expired(request.workerId);
  let bytes = 0;
  const runs = places.map(({ mark, lane }): ClaimedRun => {
    const run = claimRun(state, request, lane, mark);
    bytes += byteLength(run.input?.json ?? "") + byteLength(run.input?.notes ?? "");
    return bytes > mostInputBytes ? { ...run, input: null, isInputLeftOut: true } : run;
  });
  return {
    runs,
    suspectsWaiting: lanes.some((lane) => laneOf(state, lane, true).size > 0),
    now: state.now(),
  };
}

function expired(workerId: string): PawlError {
  const message = `Worker ${workerId} is unknown or has ended: start a new one.`;
  return new PawlError("WORKER_EXPIRED", message, { workerId });
}

function claimRun(state: State, request: ClaimRequest, lane: Lane, mark: Mark): ClaimedRun {
  const run = runOf(state, mark.runId);
  if (run.room?.kind !== "ready") {
    throw new PawlError("INTERNAL", `Run ${run.id} is listed as ready but is not: please report this.`);
  }
  const now = state.now();
  const lease = {
    ...numbersOf(run.room),
    epoch: run.room.epoch + 1,
    workerId: request.workerId,
    claimedAt: now,
    begunAt: request.begin && lane.crashLimit > 0 ? now : null,
    crashLimit: lane.crashLimit,
    told: run.room.told,
    looks: 0,
  };
  moveToLease(state, run, lease);
  return describeClaimed(run, lease, mark);
}

/** A run as its holder is told of it. */
export function describeClaimed(run: Run, lease: Omit<LeaseRoom, "kind">, mark: Mark): ClaimedRun {
  return {
    runId: run.id,
    epoch: lease.epoch,
    workflow: run.workflow,
    version: run.version,
    queue: run.queue,
    key: run.key,
    parentId: run.parentId,
    rootId: run.rootId,
    depth: run.depth,
    input: run.input,
    isInputLeftOut: false,
    isRaw: run.isRaw,
    tags: run.tags,
    retry: run.retry,
    lastSeq: lease.lastSeq,
    attempt: lease.attempt,
    failures: lease.failures,
    suspicion: lease.suspicion,
    told: lease.told,
    createdAt: run.createdAt,
    deadlineAt: run.deadlineAt,
    claimedAt: lease.claimedAt,
    mark,
    server,
  };
}

/** Nobody began it in time: the sweep ends it. */
function hasExpired(state: State, runId: RunId): boolean {
  const { room } = runOf(state, runId);
  return room?.kind === "ready" && room.expiresAt !== null && room.expiresAt <= state.now();
}

export function begin(state: State, lease: Lease): void {
  const { room } = heldRun(state, lease);
  room.begunAt ??= state.now();
}
