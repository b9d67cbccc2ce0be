import { PawlError } from "../core/error.ts";
import type { Claim, ClaimRequest, ClaimedRun, Lane, Lease, Mark } from "../store/lease.ts";
import { heldRun } from "./fence.ts";
import { compareMarks, laneOf, moveToLease, numbersOf } from "./rooms.ts";
import { runOf, type State } from "./state.ts";

export function claimRuns(state: State, request: ClaimRequest): Claim {
  const worker = state.workers.get(request.workerId);
  if (!worker || worker.endedAt !== null) {
    throw new PawlError(
      "WORKER_EXPIRED",
      `Worker ${request.workerId} is unknown or has ended: start a new one.`,
      {
        workerId: request.workerId,
      },
    );
  }

  const lanes = request.lanes.filter((lane) => !state.pausedQueues.has(lane.queue));
  const limit = request.suspects ? Math.min(request.limit, 1) : request.limit;
  const places = lanes
    .flatMap((lane) =>
      laneOf(state, lane, request.suspects)
        .list(lane.after, limit)
        .map((mark) => ({ mark, lane })),
    )
    .sort((a, b) => compareMarks(a.mark, b.mark))
    .slice(0, limit);

  return {
    runs: places.map(({ mark, lane }) => claimRun(state, request, lane, mark)),
    suspectsWaiting: lanes.some((lane) => laneOf(state, lane, true).size > 0),
    now: state.now(),
  };
}

function claimRun(state: State, request: ClaimRequest, lane: Lane, mark: Mark): ClaimedRun {
  const run = runOf(state, mark.runId);
  if (run.room?.kind !== "ready") {
    throw new PawlError("INTERNAL", `Run ${run.id} is listed as ready but is not: please report this.`);
  }
  const { told } = run.room;
  const now = state.now();
  const numbers = { ...numbersOf(run.room), epoch: run.room.epoch + 1 };
  moveToLease(state, run, {
    ...numbers,
    workerId: request.workerId,
    claimedAt: now,
    begunAt: request.begin ? now : null,
    crashLimit: lane.crashLimit,
    told,
  });
  return {
    runId: run.id,
    epoch: numbers.epoch,
    workflow: run.workflow,
    version: run.version,
    queue: run.queue,
    key: run.key,
    parentId: run.parentId,
    rootId: run.rootId,
    depth: run.depth,
    input: run.input,
    lastSeq: numbers.lastSeq,
    attempt: numbers.attempt,
    failures: numbers.failures,
    retry: run.retry,
    told,
    createdAt: run.createdAt,
    deadlineAt: run.deadlineAt,
    mark,
  };
}

export function begin(state: State, lease: Lease): void {
  const { room } = heldRun(state, lease);
  room.begunAt ??= state.now();
}
