import type { RunId } from "../../src/core/ids.ts";
import type { Lease } from "../../src/store/lease.ts";
import { anyLane, event, json, leaseMs, type World } from "../conformance/world.ts";
import { moves, type Move } from "./move.ts";

/** What a holder may do with its run. `takes`: an unread message of it. */
export async function holderMoves(
  world: World,
  run: string,
  lease: Lease,
  takes: string,
): Promise<readonly Move[]> {
  const seq = (await world.history(lease.runId)).length + 1;
  const step = event(seq, "step_completed", { name: "step:a#1", data: json(1) });
  const timer = event(seq, "timer_set", { name: "sleep#1", delayMs: 1_000 });
  const signal = event(seq, "signal_received", { name: "signal:a#1", takes });
  const started = event(seq, "child_started", { name: "call:child#9" });
  const child = world.newRun({ parent: { id: lease.runId, request: "call:child#9" } });
  const failed = event(seq, "attempt_failed", { attempt: 1, data: json("no") });
  const wants = ["signal:a", "child", "cancel", "pause"] as const;
  return [
    moves.begin(`begin ${run}`, [lease]),
    moves.record(`record a step of ${run}`, [{ lease, events: [step], children: [] }]),
    moves.record(`record a child of ${run}`, [{ lease, events: [started], children: [child] }]),
    moves.record(`record a timer of ${run}`, [{ lease, events: [timer], children: [] }]),
    moves.record(`record a signal of ${run}`, [{ lease, events: [signal], children: [] }]),
    moves.readInbox(`read the inbox of ${run}`, [{ lease, look: 1 }]),
    moves.park(`park ${run} for a signal`, [await world.parking(lease, { wants: ["signal:a"] })]),
    moves.park(`park ${run} for a child`, [await world.parking(lease, { wants: ["child", "cancel"] })]),
    moves.park(`park ${run} after taking a signal`, [
      await world.parking(lease, { events: [signal], wants }),
    ]),
    moves.park(`park ${run} with a timer`, [
      await world.parking(lease, { events: [timer], wants: ["cancel"] }),
    ]),
    moves.park(`park ${run} to retry`, [
      await world.parking(lease, {
        events: [failed],
        reason: "retry",
        delayMs: 0,
        attemptFailed: true,
        wants: ["cancel"],
      }),
    ]),
    moves.end(`complete ${run}`, [await world.ending(lease, "completed")]),
    moves.end(`fail ${run}`, [await world.ending(lease, "failed")]),
    moves.end(`end ${run} as cancelled`, [await world.ending(lease, "cancelled")]),
    moves.end(`let ${run} go on as another`, [
      await world.ending(lease, "completed", {
        events: [event(seq, "continued"), event(seq + 1, "completed", { attempt: 1 })],
        next: { id: world.nextId(), version: 1, input: json("next"), isRaw: false },
      }),
    ]),
    moves.release(`release ${run}`, [lease]),
  ];
}

/** What anybody may tell a run. */
export function tellMoves(world: World, run: string, runId: RunId): readonly Move[] {
  return [
    moves.tell(`tell ${run} signal a`, [world.message(runId, "signal:a")]),
    moves.tell(`tell ${run} signal b, which nobody waits for`, [world.message(runId, "signal:b")]),
    moves.tell(`tell ${run} to cancel`, [world.message(runId, "cancel")]),
    moves.tell(`tell ${run} to pause`, [world.message(runId, "pause")]),
    moves.tell(`tell ${run} to resume`, [world.message(runId, "resume")]),
    moves.tell(`tell ${run} under a key`, [world.message(runId, "signal:a", { idempotencyKey: "k" })]),
    moves.tell(`tell ${run} under the same key`, [world.message(runId, "signal:a", { idempotencyKey: "k" })]),
  ];
}

/** What an operator may do to a run. */
export function operatorMoves(run: string, runId: RunId): readonly Move[] {
  return [
    moves.terminate(`terminate ${run}`, runId),
    moves.reschedule(`reschedule ${run}`, { runId, priority: 1, startAt: undefined }),
    moves.reschedule(`put ${run} off`, { runId, priority: undefined, startAt: 4_000_000_000_000 }),
    moves.redrive(`redrive ${run}`, [runId]),
  ];
}

/** What a caller may tell a run in a transaction of its own. */
export function userTellMoves(world: World, run: string, runId: RunId): readonly Move[] {
  const keyed = world.message(runId, "signal:a", { idempotencyKey: "k" });
  return [
    moves.tellInTransaction(
      `tell ${run} signal a in a transaction`,
      world.message(runId, "signal:a"),
      "read committed",
    ),
    moves.tellInTransaction(
      `tell ${run} to cancel in a transaction`,
      world.message(runId, "cancel"),
      "repeatable read",
    ),
    moves.tellInTransaction(`tell ${run} under that key in a transaction`, keyed, "repeatable read"),
  ];
}

/** What workers do beside holding runs. `known`: the leases that a heartbeat names. */
export function workerMoves(
  world: World,
  worker: string,
  workerId: string,
  known: readonly Lease[],
): readonly Move[] {
  return [
    moves.heartbeat(`heartbeat of ${worker}`, {
      workerId,
      held: known,
      claimsKnownTo: Number.POSITIVE_INFINITY,
    }),
    moves.heartbeat(`heartbeat of ${worker}, which knows of nothing`, {
      workerId,
      held: [],
      claimsKnownTo: Number.POSITIVE_INFINITY,
    }),
    moves.heartbeat(`${worker} goes to rest`, {
      workerId,
      held: [],
      claimsKnownTo: null,
      leaseMs: 12 * leaseMs,
    }),
    moves.retireWorker(`retire ${worker}`, workerId),
    moves.registerWorker(`register ${worker} again`, world.newWorker({ id: workerId })),
  ];
}

export function claimMove(worker: string, workerId: string, limit = 10): Move {
  const lanes = [anyLane, { ...anyLane, queue: "parents" }];
  return moves.claimRuns(`claim for ${worker}`, {
    workerId,
    lanes,
    limit,
    suspects: false,
    begin: true,
    leaseMs,
  });
}

/** What such a worker does when something is due. */
export function dueMove(worker: string, workerId: string): Move {
  const lanes = [anyLane, { ...anyLane, queue: "parents" }];
  return moves.wakeDue(`wake who is due for ${worker}`, { workerId, lanes, leaseMs });
}

/** What happens on its own, to any run. */
export function ambientMoves(runIds: readonly RunId[]): readonly Move[] {
  return [moves.wakeTold("wake who is told", runIds), moves.wakeDue("wake who is due"), moves.sweep("sweep")];
}
