import { expect } from "vitest";
import type { Lease, Parking, Recording } from "../../src/store/lease.ts";
import { anyLane, event, json, leaseMs, leaseOf, type World } from "../conformance/world.ts";
import {
  ambientMoves,
  claimMove,
  dueMove,
  holderMoves,
  operatorMoves,
  tellMoves,
  userTellMoves,
  workerMoves,
} from "./move-groups.ts";
import { moves, type Move } from "./move.ts";

/** A state of the store, and every move that has something to do with it. */
export interface Scenario {
  readonly name: string;
  build(world: World): Promise<readonly Move[]>;
}

/** A run that has begun, and was given back. */
async function startBegun(world: World): Promise<string> {
  const lease = await world.startHeld();
  await world.release(lease);
  return lease.runId;
}

/** The number of its first fact: where it is taken, by whichever move came first, nothing is done. */
function stepOf(lease: Lease): Recording {
  const step = { ...event(1, "step_completed"), name: "alone", attempt: 1, beganAt: 5, data: json("done") };
  return { lease, events: [step], children: [] };
}

export const readyRun: Scenario = {
  name: "a run that is ready",
  async build(world) {
    const first = await world.worker();
    const second = await world.worker();
    const runId = await startBegun(world);
    await world.tell(runId, "signal:b", { idempotencyKey: "old" });
    return [
      ...tellMoves(world, "it", runId),
      moves.tell("tell it under an old key", [world.message(runId, "signal:a", { idempotencyKey: "old" })]),
      ...userTellMoves(world, "it", runId),
      ...operatorMoves("it", runId),
      ...ambientMoves([runId]),
      claimMove("a worker", first),
      claimMove("another worker", second),
      ...workerMoves(world, "a worker", first, []),
    ];
  },
};

export const packedRuns: Scenario = {
  name: "runs that were started together",
  async build(world) {
    const first = await world.worker();
    const second = await world.worker();
    const runs = [world.newRun(), world.newRun(), world.newRun()];
    await world.store.createRuns(runs);
    const [one, , last] = runs.map(({ id }) => id) as [string, string, string];
    await world.insert(last, "pause");
    return [
      moves.createRuns("start them again", runs),
      moves.tell("tell the last and the first to cancel", [
        world.message(last, "cancel"),
        world.message(one, "cancel"),
      ]),
      ...tellMoves(world, "the first", one),
      ...userTellMoves(world, "the first", one),
      ...operatorMoves("the first", one),
      ...ambientMoves([one, last]),
      claimMove("a worker", first),
      claimMove("another worker", second),
      claimMove("a worker of one slot", second, 1),
    ];
  },
};

export const expiredRun: Scenario = {
  name: "a run that has expired before it began, and its waiting parent",
  async build(world) {
    const workerId = await world.worker();
    const parentId = await world.startParked({ wants: ["child", "signal:a"] }, { queue: "parents" });
    const runId = await world.startChild(parentId, { expiresAt: await world.now() });
    return [
      ...tellMoves(world, "it", runId),
      ...userTellMoves(world, "it", runId),
      ...ambientMoves([runId, parentId]),
      moves.tell("tell its parent signal a", [world.message(parentId, "signal:a")]),
      moves.tell("tell its parent to pause", [world.message(parentId, "pause")]),
      claimMove("a worker", workerId),
      moves.retireWorker("retire the worker", workerId),
    ];
  },
};

export const heldRun: Scenario = {
  name: "a held run",
  async build(world) {
    const runId = await world.start();
    const lease = await world.hold(runId, { begin: false });
    const takes = await world.insert(runId, "signal:a");
    await world.tell(runId, "signal:b", { idempotencyKey: "old" });
    return [
      ...(await holderMoves(world, "it", lease, takes)),
      ...tellMoves(world, "it", runId),
      ...userTellMoves(world, "it", runId),
      ...operatorMoves("it", runId),
      ...ambientMoves([runId]),
      ...workerMoves(world, "its worker", lease.workerId, [lease]),
      claimMove("another worker", await world.worker()),
      claimMove("its worker", lease.workerId),
    ];
  },
};

/** Three runs that were started together and claimed together, and a run that the worker held before. */
async function holdTogether(world: World): Promise<{
  readonly loose: Lease;
  readonly together: readonly [Lease, Lease, Lease];
}> {
  const loose = await world.startHeld({ workflow: "other" });
  const { workerId } = loose;
  await world.store.createRuns([world.newRun(), world.newRun(), world.newRun()]);
  const { runs } = await world.claim(workerId);
  expect(runs).toHaveLength(3);
  return { loose, together: runs.map((run) => leaseOf(workerId, run)) as [Lease, Lease, Lease] };
}

export const heldTogether: Scenario = {
  name: "runs that were claimed together",
  async build(world) {
    const { loose, together } = await holdTogether(world);
    const [one, two, three] = together;
    const takes = await world.insert(one.runId, "signal:a");
    await world.insert(three.runId, "pause");
    const completed = await Promise.all(together.map((lease) => world.ending(lease)));
    const record = (leases: readonly Lease[]) => leases.map((lease) => ({ lease, events: [], children: [] }));
    return [
      ...(await holderMoves(world, "the first", one, takes)),
      moves.end("complete all", completed),
      moves.end("complete all, the other way round", completed.toReversed()),
      moves.end("complete two of them", completed.slice(0, 2)),
      moves.end("complete all, and a run of its own", [...completed, await world.ending(loose)]),
      moves.end("complete two and fail one", [...completed.slice(0, 2), await world.ending(three, "failed")]),
      moves.record("record for a run of its own and the last", record([loose, three])),
      moves.record("record for all", record(together)),
      moves.release("release a run of its own and the last", [loose, three]),
      moves.release("release the second", [two]),
      moves.tell("tell the last and the first to cancel", [
        world.message(three.runId, "cancel"),
        world.message(one.runId, "cancel"),
      ]),
      moves.tell("tell the last, and a run of its own", [
        world.message(three.runId, "signal:a"),
        world.message(loose.runId, "signal:a"),
      ]),
      ...userTellMoves(world, "the first", one.runId),
      ...operatorMoves("the first", one.runId),
      ...ambientMoves([one.runId, three.runId, loose.runId]),
      ...workerMoves(world, "their worker", one.workerId, [...together, loose]),
      claimMove("another worker", await world.worker()),
    ];
  },
};

export const deadTogether: Scenario = {
  name: "runs that were claimed together by a worker that is dead",
  async build(world) {
    const { loose, together } = await holdTogether(world);
    const [one, , three] = together;
    await world.insert(three.runId, "cancel");
    await world.clock.advance(leaseMs);
    const completed = await Promise.all(together.map((lease) => world.ending(lease)));
    return [
      moves.end("complete all", completed),
      moves.end("complete two of them", completed.slice(1)),
      moves.record("record for a run of its own and the last", [
        { lease: loose, events: [], children: [] },
        { lease: three, events: [], children: [] },
      ]),
      ...tellMoves(world, "the first", one.runId),
      ...operatorMoves("the first", one.runId),
      ...ambientMoves([one.runId, three.runId]),
      ...workerMoves(world, "their worker", one.workerId, [...together, loose]),
      claimMove("another worker", await world.worker()),
    ];
  },
};

/** A timer fires a moment later. */
async function dueSoon(world: World): Promise<Pick<Parking, "dueAt" | "fires">> {
  return { dueAt: (await world.now()) + 1, fires: "sleep:sleep#1" };
}

export const waitingRun: Scenario = {
  name: "a run that waits for a signal, and is due",
  async build(world) {
    const wants = ["signal:a", "cancel", "pause"] as const;
    const runId = await world.startParked({ wants, ...(await dueSoon(world)) });
    await world.tell(runId, "signal:b", { idempotencyKey: "old" });
    await world.clock.advance(1);
    const workerId = await world.worker();
    return [
      ...tellMoves(world, "it", runId),
      moves.tell("tell it under an old key", [world.message(runId, "signal:a", { idempotencyKey: "old" })]),
      ...userTellMoves(world, "it", runId),
      ...operatorMoves("it", runId),
      ...ambientMoves([runId]),
      claimMove("a worker", workerId),
      dueMove("a worker", workerId),
    ];
  },
};

export const quietRun: Scenario = {
  name: "a run that waits for a time that has come, with no message so far",
  async build(world) {
    const runId = await world.startParked({ wants: ["signal:a", "pause"], ...(await dueSoon(world)) });
    await world.clock.advance(1);
    const workerId = await world.worker();
    return [
      ...tellMoves(world, "it", runId),
      ...userTellMoves(world, "it", runId),
      ...ambientMoves([runId]),
      claimMove("a worker", workerId),
      dueMove("a worker", workerId),
    ];
  },
};

export const pausedRun: Scenario = {
  name: "a paused run",
  async build(world) {
    const runId = await startBegun(world);
    await world.tell(runId, "pause");
    await world.clock.advance(1);
    const workerId = await world.worker();
    return [
      ...tellMoves(world, "it", runId),
      moves.tell("tell it to resume again", [world.message(runId, "resume")]),
      ...userTellMoves(world, "it", runId),
      moves.tellInTransaction(
        "tell it to resume in a transaction",
        world.message(runId, "resume"),
        "repeatable read",
      ),
      ...operatorMoves("it", runId),
      ...ambientMoves([runId]),
      claimMove("a worker", workerId),
      dueMove("a worker", workerId),
    ];
  },
};

export const delayedChild: Scenario = {
  name: "a child that is to be cancelled before it began, and its held parent",
  async build(world) {
    const parent = await world.startHeld({ queue: "parents" });
    const takes = await world.insert(parent.runId, "signal:b");
    const runId = await world.startChild(parent.runId, { startAt: (await world.now()) + 1 });
    await world.clock.advance(1);
    await world.insert(runId, "cancel");
    const workerId = await world.worker();
    return [
      ...tellMoves(world, "it", runId),
      ...userTellMoves(world, "it", runId),
      ...(await holderMoves(world, "its parent", parent, takes)),
      ...operatorMoves("it", runId),
      moves.terminate("terminate its parent", parent.runId),
      ...ambientMoves([runId]),
      claimMove("a worker", workerId),
      dueMove("a worker", workerId),
      moves.retireWorker("retire its parent's worker", parent.workerId),
    ];
  },
};

export const waitingParent: Scenario = {
  name: "a parent that waits for its held children",
  async build(world) {
    const workerId = await world.worker();
    const parentId = await world.startParked(
      { wants: ["child", "cancel"], delayMs: 1 },
      { queue: "parents" },
    );
    const child = await world.hold(await world.startChild(parentId), { workerId });
    const sibling = await world.hold(await world.startChild(parentId), { workerId });
    const takes = await world.insert(child.runId, "signal:a");
    await world.clock.advance(1);
    const other = await world.worker();
    return [
      ...(await holderMoves(world, "a child", child, takes)),
      moves.end("complete its sibling", [await world.ending(sibling)]),
      moves.end("complete both", [await world.ending(sibling), await world.ending(child, "failed")]),
      ...tellMoves(world, "the parent", parentId),
      ...userTellMoves(world, "the parent", parentId),
      moves.tell("tell the child to cancel", [world.message(child.runId, "cancel")]),
      moves.terminate("terminate the child", child.runId),
      moves.terminate("terminate the parent", parentId),
      ...ambientMoves([child.runId, parentId]),
      ...workerMoves(world, "the worker", workerId, [child]),
      claimMove("another worker", other),
      dueMove("another worker", other),
    ];
  },
};

export const heldFamily: Scenario = {
  name: "a held parent with children in every room",
  async build(world) {
    const parent = await world.startHeld({ queue: "parents" });
    const { workerId } = parent;
    const takes = await world.insert(parent.runId, "signal:a");
    const held = await world.hold(await world.startChild(parent.runId), { workerId });
    const waiting = await world.hold(await world.startChild(parent.runId), { workerId });
    await world.park(waiting, { wants: ["cancel", "pause"] });
    const unbegun = await world.startChild(parent.runId);
    return [
      ...(await holderMoves(world, "the parent", parent, takes)),
      moves.complete("complete the parent by itself", await world.ending(parent)),
      moves.recordStep("record a step of the parent by itself", stepOf(parent)),
      moves.record("record a step of the child", [{ lease: held, events: [], children: [] }]),
      moves.park("park the child", [await world.parking(held, { wants: ["signal:a", "cancel"] })]),
      moves.end("complete the child", [await world.ending(held)]),
      moves.end("end the child as cancelled", [await world.ending(held, "cancelled")]),
      moves.release("release the child", [held]),
      moves.tell("tell the parent to cancel", [world.message(parent.runId, "cancel")]),
      moves.tell("tell the held child to cancel", [world.message(held.runId, "cancel")]),
      moves.tell("tell the waiting child to pause", [world.message(waiting.runId, "pause")]),
      moves.tell("tell the unbegun child to cancel", [world.message(unbegun, "cancel")]),
      moves.tell("tell the unbegun child to pause", [world.message(unbegun, "pause")]),
      moves.terminate("terminate the parent", parent.runId),
      moves.terminate("terminate the unbegun child", unbegun),
      ...ambientMoves([parent.runId, held.runId, waiting.runId, unbegun]),
      claimMove("another worker", await world.worker()),
      moves.retireWorker("retire the worker", workerId),
    ];
  },
};

export const deadWorker: Scenario = {
  name: "a dead worker's runs",
  async build(world) {
    const parentId = await world.startParked({ wants: ["child", "signal:a"] }, { queue: "parents" });
    const workerId = await world.worker();
    const child = await world.hold(await world.startChild(parentId), { workerId, crashLimit: 0 });
    await world.store.begin(child);
    const other = await world.hold(await world.start(), { workerId });
    const unbegun = await world.hold(await world.start(), { workerId, begin: false });
    const takes = await world.insert(child.runId, "signal:a");
    await world.clock.advance(leaseMs);
    const living = await world.worker();
    return [
      ...(await holderMoves(world, "a failing run", child, takes)),
      moves.begin("begin an unbegun run", [unbegun]),
      moves.record("record a step of another run", [{ lease: other, events: [], children: [] }]),
      moves.end("complete another run", [await world.ending(other)]),
      moves.release("release an unbegun run", [unbegun]),
      moves.tell("tell the failing run to cancel", [world.message(child.runId, "cancel")]),
      moves.tell("tell its parent signal a", [world.message(parentId, "signal:a")]),
      moves.tell("tell its parent to pause", [world.message(parentId, "pause")]),
      moves.tellInTransaction(
        "tell its parent in a transaction",
        world.message(parentId, "signal:a"),
        "repeatable read",
      ),
      moves.terminate("terminate the failing run", child.runId),
      ...ambientMoves([parentId, child.runId]),
      ...workerMoves(world, "the dead worker", workerId, [child, other]),
      claimMove("the dead worker", workerId),
      claimMove("a living worker", living),
    ];
  },
};

export const crashedAlone: Scenario = {
  name: "the only run of a dead worker, and its held parent",
  async build(world) {
    const parent = await world.startHeld({ queue: "parents" });
    const takes = await world.insert(parent.runId, "signal:b");
    const workerId = await world.worker();
    const child = await world.hold(await world.startChild(parent.runId), { workerId, crashLimit: 1 });
    await world.clock.advance(leaseMs - 1);
    await world.store.heartbeat({
      workerId: parent.workerId,
      held: [parent],
      claimsKnownTo: Number.POSITIVE_INFINITY,
    });
    await world.clock.advance(1);
    return [
      ...(await holderMoves(world, "the parent", parent, takes)),
      moves.complete("complete the parent by itself", await world.ending(parent)),
      moves.recordStep("record a step of the parent by itself", stepOf(parent)),
      moves.record("record a step of it", [{ lease: child, events: [], children: [] }]),
      moves.end("complete it", [await world.ending(child)]),
      moves.release("release it", [child]),
      moves.tell("tell it to cancel", [world.message(child.runId, "cancel")]),
      moves.tell("tell the parent signal a", [world.message(parent.runId, "signal:a")]),
      ...ambientMoves([parent.runId, child.runId]),
      moves.heartbeat("heartbeat of the dead worker", {
        workerId,
        held: [child],
        claimsKnownTo: Number.POSITIVE_INFINITY,
      }),
      moves.retireWorker("retire the dead worker", workerId),
      claimMove("the parent's worker", parent.workerId),
    ];
  },
};

export const failedFamily: Scenario = {
  name: "a failed run with a held child and a waiting parent",
  async build(world) {
    const grandparentId = await world.startParked({ wants: ["child", "cancel"] }, { queue: "parents" });
    const lease = await world.hold(await world.startChild(grandparentId));
    const { runId } = lease;
    const child = await world.hold(await world.startChild(runId));
    const unbegun = await world.startChild(runId, { isDetached: true });
    await world.end(lease, "failed", { error: json({ name: "Error", message: "no", code: "E" }) });
    return [
      moves.redrive("redrive it", [runId]),
      moves.redrive("redrive it again", [runId]),
      moves.redrive("redrive it from the start", [runId], { from: "start" }),
      moves.redrive("redrive all", [unbegun, child.runId, runId]),
      moves.terminate("terminate it", runId),
      moves.terminate("terminate the unbegun child", unbegun),
      moves.end("complete it once more", [await world.ending(lease)]),
      moves.complete("complete it by itself once more", await world.ending(lease)),
      moves.recordStep("record a step of it by itself once more", stepOf(lease)),
      moves.end("complete the child", [await world.ending(child)]),
      moves.end("fail the child", [await world.ending(child, "failed")]),
      moves.end("end the child as cancelled", [await world.ending(child, "cancelled")]),
      ...tellMoves(world, "it", runId),
      moves.tell("tell the unbegun child to cancel", [world.message(unbegun, "cancel")]),
      moves.reschedule("put it off", { runId, priority: 2, startAt: 4_000_000_000_000 }),
      ...ambientMoves([runId, grandparentId, unbegun]),
      claimMove("a worker", await world.worker()),
    ];
  },
};

export const starts: Scenario = {
  name: "starts with and without keys",
  async build(world) {
    const workerId = await world.worker();
    const input = json({ a: 1 });
    const taken = await world.start({ key: "taken", input });
    const run = (key: string | null, more = input) => world.newRun({ key, input: more });
    const first = run("a");
    const signalling = (key: string) => {
      const { runId: _, ...message } = world.message(taken, "signal:a");
      return { run: run(key), message, boundTo: null };
    };
    const forked = { ...event(1, "forked"), at: null, attempt: null, beganAt: null, dueAt: null };
    const delayed = world.newRun({ startAt: (await world.now()) + 1_000 });
    return [
      moves.createRuns("start a run", [world.newRun()]),
      moves.createRuns("start a run twice", [delayed, delayed]),
      moves.createRuns("start it later", [delayed]),
      moves.createRuns("start under a key", [first]),
      moves.createRuns("start under that key again", [first]),
      moves.createRuns("start an equal run under that key", [run("a")]),
      moves.createRuns("start another run under that key", [run("a", json(2))]),
      moves.createRuns("start under two keys", [run("a"), run("b")]),
      moves.createRuns("start under two keys, the other way round", [run("b"), run("a"), run(null)]),
      moves.createRuns("start under a key that is taken", [run("taken"), run("taken", json(3))]),
      moves.createInTransaction("start in a transaction", [run("a")], "read committed"),
      moves.createInTransaction("start in a repeatable transaction", [run("a"), run("b")], "repeatable read"),
      moves.createInTransaction("start without a key in a transaction", [run(null)], "repeatable read"),
      moves.signalOrStart("signal or start under that key", signalling("a")),
      moves.signalOrStart("signal or start under that key too", signalling("a")),
      moves.signalOrStart("signal or start under the taken key", signalling("taken")),
      moves.signalOrStartInTransaction("signal or start in a transaction", signalling("a"), "read committed"),
      moves.signalOrStartInTransaction(
        "signal or start under the taken key in a transaction",
        signalling("taken"),
        "repeatable read",
      ),
      moves.fork("fork under that key", run("a"), [forked]),
      moves.tell("tell the new run to cancel", [world.message(first.id, "cancel")]),
      moves.tell("tell the old run to cancel", [world.message(taken, "cancel")]),
      ...ambientMoves([first.id, taken]),
      claimMove("a worker", workerId),
      moves.registerWorker("register a worker", world.newWorker()),
    ];
  },
};

export const batches: Scenario = {
  name: "many calls in one",
  async build(world) {
    const parent = await world.startHeld({ queue: "parents" });
    const { workerId } = parent;
    const child = await world.hold(await world.startChild(parent.runId), { workerId });
    const other = await world.startHeld({ workflow: "other" });
    await world.release(other);
    const foreign = await world.worker();
    const loose = await world.hold(other.runId, { workerId });
    const unbegun = await world.startChild(loose.runId);
    const wants = ["child", "signal:a", "cancel"] as const;
    const parkBoth = [await world.parking(parent, { wants }), await world.parking(child, { wants })];
    const endBoth = [await world.ending(parent, "cancelled"), await world.ending(child)];
    const tellBoth = () => [world.message(child.runId, "cancel"), world.message(parent.runId, "signal:a")];
    const recordBoth = [parent, child, loose].map((lease) => ({ lease, events: [], children: [] }));
    return [
      moves.park("park both", parkBoth),
      moves.park("park both, the other way round", parkBoth.toReversed()),
      moves.park("park the parent", parkBoth.slice(0, 1)),
      moves.end("end both", endBoth),
      moves.end("end both, the other way round", endBoth.toReversed()),
      moves.end("end the child", endBoth.slice(1)),
      moves.end("end the child and a stranger", [...endBoth.slice(1), await world.ending(loose)]),
      moves.record("record for all", recordBoth),
      moves.record("record for all, the other way round", recordBoth.toReversed()),
      moves.readInbox(
        "read all inboxes",
        [child, parent, loose].map((lease) => ({ lease, look: 1 })),
      ),
      moves.release("release all", [loose, child, parent]),
      moves.release("release the child", [child]),
      moves.tell("tell both", tellBoth()),
      moves.tell("tell both, the other way round", tellBoth().toReversed()),
      moves.terminate("terminate the child", child.runId),
      moves.terminate("terminate the parent", parent.runId),
      moves.tell("tell a stranger's unbegun child to cancel, and the parent", [
        world.message(unbegun, "cancel"),
        world.message(parent.runId, "signal:a"),
      ]),
      moves.tell("tell both to pause", [
        world.message(parent.runId, "pause"),
        world.message(child.runId, "pause"),
      ]),
      ...ambientMoves([child.runId, parent.runId, loose.runId]),
      ...workerMoves(world, "their worker", workerId, [parent, child]),
      moves.claimRuns("claim all", {
        workerId: foreign,
        lanes: [anyLane, { ...anyLane, queue: "parents" }, { ...anyLane, workflow: "other" }],
        limit: 10,
        suspects: false,
        begin: false,
      }),
    ];
  },
};
