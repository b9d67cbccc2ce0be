import { describe, expect } from "vitest";
import type { Lease } from "../../src/store/lease.ts";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { event, json, type World } from "./world.ts";

const error = json({ name: "Error", message: "no", code: "E" });

async function fail(world: World, lease: Lease): Promise<void> {
  await world.end(lease, "failed", { error });
}

/** What operators do to runs. */
export function describeOperating(test: StoreTest): void {
  describe("terminating", () => {
    for (const [room, start] of [
      ["ready", (world: World) => world.start()],
      ["parked", (world: World) => world.startParked({ wants: ["signal:a"] })],
      ["paused", (world: World) => startPaused(world)],
      ["lease", async (world: World) => (await world.startHeld()).runId],
    ] as const) {
      test(`ends a run in ${room} at once, with the request and the end in its history`, async ({
        world,
      }) => {
        const runId = await start(world);
        await world.clock.advance("1s");
        expect(await world.store.terminate(runId, json({ reason: "stop" }))).toBe("terminated");
        const run = await world.store.getRun(runId);
        expect(run).toMatchObject({ status: "cancelled", endedAt: await world.now(), workerId: null });
        expect((await world.history(runId)).slice(-2)).toMatchObject([
          { kind: "cancel_requested", data: json({ reason: "stop" }) },
          { kind: "cancelled" },
        ]);
        expect(await world.placeOf(runId)).toEqual({ room: "ended" });
        expect((await world.snapshot()).stopped).toMatchObject([{ runId, status: "cancelled" }]);
      });
    }

    test("takes the lease from its holder, whose attempt is written down", async ({ world }) => {
      const lease = await world.startHeld();
      await world.record(lease, [event(1, "step_completed", { name: "a" })]);
      await world.store.terminate(lease.runId, null);
      await expect(world.end(lease)).rejects.toMatchObject({ code: "LEASE_LOST" });
      const attempts = await world.store.listAttempts(lease.runId);
      expect(attempts).toMatchObject([
        { attempt: 1, outcome: "cancelled", workerId: lease.workerId, host: "here", pid: 7 },
      ]);
    });

    test("tells the holder, the parent and the children", async ({ world }) => {
      const parentId = await world.startParked({ wants: ["child"] }, { queue: "parents" });
      const runId = await world.startChild(parentId);
      await world.hold(runId);
      const childId = await world.startChild(runId, { queue: "children" });
      const hints = await hintsOf(world, () => world.store.terminate(runId, null));
      expect(hints).toContainEqual({ kind: "told", runId });
      expect(hints).toContainEqual({ kind: "ended", runId });
      expect(await world.placeOf(parentId)).toMatchObject({ room: "ready", told: true });
      expect(await world.store.getRun(childId)).toMatchObject({ status: "cancelled" });
    });

    test("does nothing to a run that has ended, or that is not there", async ({ world }) => {
      const lease = await world.startHeld();
      await world.end(lease);
      await world.expectUnchanged(async () => {
        expect(await world.store.terminate(lease.runId, null)).toBe("ended");
        expect(await world.store.terminate(world.nextId(), null)).toBe("missing");
      });
    });
  });

  describe("redriving", () => {
    test("gives a failed run another life: limits from zero, history and epoch go on", async ({ world }) => {
      const lease = await world.startHeld({ key: "k" });
      await world.record(lease, [event(1, "step_completed", { name: "a" })]);
      await fail(world, lease);
      await world.clock.advance("1s");
      const answers = await world.store.redrive([lease.runId]);
      expect(answers).toEqual(new Map([[lease.runId, "redriven"]]));
      expect(await world.placeOf(lease.runId)).toMatchObject({
        room: "ready",
        epoch: 1,
        attempt: 2,
        failures: 0,
        crashes: 0,
        suspicion: 0,
        lastSeq: 3,
        told: true,
        readyAt: await world.now(),
      });
      expect(await world.kinds(lease.runId)).toEqual(["step_completed", "failed", "redriven"]);
      expect(await world.store.getRun(lease.runId)).toMatchObject({
        status: "pending",
        error: null,
        endedAt: null,
      });
      expect((await world.snapshot()).stopped).toEqual([]);
    });

    test("a zombie of the last life writes nothing in this one", async ({ world }) => {
      const lease = await world.startHeld();
      await fail(world, lease);
      await world.store.redrive([lease.runId]);
      const next = await world.hold(lease.runId, { workerId: lease.workerId });
      expect(next.epoch).toBe(2);
      await world.expectUnchanged(() =>
        expect(fail(world, lease)).rejects.toMatchObject({ code: "LEASE_LOST" }),
      );
    });

    for (const status of ["cancelled", "timed_out"] as const) {
      test(`a run that ended as ${status} can live again, without its old orders and deadline`, async ({
        world,
      }) => {
        const lease = await world.startHeld({ deadlineAt: (await world.now()) + 500 });
        await world.tell(lease.runId, "cancel");
        await world.end(lease, status);
        await world.clock.advance("1s");
        await world.store.redrive([lease.runId]);
        expect(await world.placeOf(lease.runId)).toMatchObject({ room: "ready", expiresAt: null });
        expect(await world.store.getRun(lease.runId)).toMatchObject({ deadlineAt: null });
        expect(await world.inbox(lease.runId)).toMatchObject([{ topic: "cancel", takenSeq: 0 }]);
      });
    }

    test("a run that expired can live again, unbegun, and does not expire", async ({ world }) => {
      const runId = await world.start({ expiresAt: await world.now() });
      await world.sweep();
      await world.store.redrive([runId]);
      expect(await world.placeOf(runId)).toMatchObject({
        room: "ready",
        epoch: 0,
        attempt: 1,
        expiresAt: null,
      });
    });

    test("a run that crashed its workers is tried alone", async ({ world }) => {
      const runId = await world.start();
      await world.hold(runId, { crashLimit: 1 });
      await world.crash();
      await world.store.redrive([runId]);
      expect(await world.placeOf(runId)).toMatchObject({
        room: "ready",
        suspicion: 2,
        crashes: 0,
        attempt: 2,
      });
    });

    test("children that ended meanwhile are heard of", async ({ world }) => {
      const lease = await world.startHeld({ queue: "parents" });
      const childId = await world.startChild(lease.runId, { isDetached: true });
      await fail(world, lease);
      await world.end(await world.hold(childId), "completed", { output: json(7) });
      expect(await world.inbox(lease.runId)).toEqual([]);
      await world.store.redrive([lease.runId]);
      expect(await world.inbox(lease.runId)).toMatchObject([
        { id: childId, topic: "child", data: { value: { status: "completed", output: 7 } } },
      ]);
    });

    test("how children failed meanwhile belongs to the life before", async ({ world }) => {
      const lease = await world.startHeld({ queue: "parents" });
      const childId = await world.startChild(lease.runId);
      await world.end(lease, "cancelled");
      expect(await world.store.getRun(childId)).toMatchObject({ status: "cancelled" });
      await world.store.redrive([lease.runId]);
      expect(await world.kinds(lease.runId)).toEqual(["cancelled", "child_ended", "redriven"]);
      expect((await world.history(lease.runId))[1]).toMatchObject({ name: "call:child#1" });
      expect(await world.inbox(lease.runId)).toMatchObject([{ id: childId, takenSeq: 2 }]);
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "ready", lastSeq: 3 });
    });

    test("a child that lives again tells only how that ends", async ({ world }) => {
      const lease = await world.startHeld({ queue: "parents" });
      const childId = await world.startChild(lease.runId);
      await fail(world, await world.hold(childId));
      await fail(world, lease);
      await world.store.redrive([lease.runId, childId]);
      expect(await world.inbox(lease.runId)).toEqual([]);
      await world.end(await world.hold(childId));
      expect(await world.inbox(lease.runId)).toMatchObject([
        { id: childId, takenSeq: null, data: { value: { status: "completed" } } },
      ]);
    });

    test("a parent that has not read how its child ended hears how it ended in the end", async ({
      world,
    }) => {
      const lease = await world.startHeld({ queue: "parents" });
      const childId = await world.startChild(lease.runId);
      await fail(world, await world.hold(childId));
      await world.store.redrive([childId]);
      await world.end(await world.hold(childId));
      expect(await world.inbox(lease.runId)).toMatchObject([
        { id: childId, takenSeq: null, data: { value: { status: "completed" } } },
      ]);
    });

    test("a parent that was cancelled twice cancels its child twice", async ({ world }) => {
      const lease = await world.startHeld({ queue: "parents" });
      const childId = await world.startChild(lease.runId);
      await world.end(lease, "cancelled");
      await world.store.redrive([lease.runId, childId]);
      const child = await world.hold(childId);
      await world.end(await world.hold(lease.runId), "cancelled");
      expect(await world.placeOf(childId)).toMatchObject({ room: "lease", told: true });
      expect(await world.readInbox(child)).toMatchObject([{ topic: "cancel" }]);
    });

    test("a child that lives again with its parent is asked to stop again", async ({ world }) => {
      const parentId = await world.start({ queue: "parents" });
      const childId = await world.startChild(parentId);
      const stopParent = async (): Promise<void> => {
        await world.store.terminate(parentId, null);
        expect(await world.store.getRun(childId)).toMatchObject({ status: "cancelled" });
      };
      await stopParent();
      await world.store.redrive([parentId, childId]);
      expect(await world.store.getRun(childId)).toMatchObject({ status: "pending" });
      await world.clock.advance("1s");
      await stopParent();
      expect(await world.inbox(childId)).toMatchObject([
        { topic: "cancel", sentAt: await world.now(), takenSeq: 4 },
      ]);
    });

    test("a child that still has to stop counts as cancelled, and is not heard any more", async ({
      world,
    }) => {
      const lease = await world.startHeld({ queue: "parents" });
      const childId = await world.startChild(lease.runId);
      const child = await world.hold(childId);
      await fail(world, lease);
      await world.store.redrive([lease.runId]);
      expect(await world.kinds(lease.runId)).toEqual(["failed", "child_ended", "redriven"]);
      const [, heard] = await world.history(lease.runId);
      expect(JSON.parse(heard!.data!.json)).toEqual({ id: childId, status: "cancelled", error: null });
      await world.end(child, "cancelled");
      expect(await world.inbox(lease.runId)).toMatchObject([{ id: childId, takenSeq: 2 }]);
    });

    test("a child that was redriven by itself goes on when its parent lives again", async ({ world }) => {
      const lease = await world.startHeld({ queue: "parents" });
      const childId = await world.startChild(lease.runId);
      const child = await world.hold(childId);
      await fail(world, lease);
      await world.end(child, "cancelled");
      await world.store.redrive([childId]);
      await world.store.redrive([lease.runId]);
      expect(await world.kinds(lease.runId)).toEqual(["failed", "redriven"]);
      await world.end(await world.hold(childId));
      expect(await world.inbox(lease.runId)).toMatchObject([{ id: childId, takenSeq: null }]);
    });

    test("is done once for an end, however often it is asked for", async ({ world }) => {
      const lease = await world.startHeld();
      await fail(world, lease);
      const endedAt = new Map([[lease.runId, await world.now()]]);
      const redrive = async () => (await world.store.redrive([lease.runId], { endedAt })).get(lease.runId);
      expect(await redrive()).toBe("redriven");
      expect(await redrive()).toBe("live");
      await world.clock.advance("1s");
      await fail(world, await world.hold(lease.runId));
      await world.expectUnchanged(async () => expect(await redrive()).toBe("live"));
    });

    for (const status of ["completed", "failed", "cancelled"] as const) {
      test(`from the start, a run that is ${status} lives again, and its history says so`, async ({
        world,
      }) => {
        const lease = await world.startHeld({ key: "k" });
        await world.record(lease, [event(1, "step_completed", { name: "a" })]);
        await world.end(lease, status, { output: json(1) });
        expect(await world.store.redrive([lease.runId], { from: "start" })).toEqual(
          new Map([[lease.runId, "redriven"]]),
        );
        expect(await world.placeOf(lease.runId)).toMatchObject({ room: "ready", lastSeq: 3, attempt: 2 });
        expect((await world.history(lease.runId)).at(-1)).toMatchObject({
          kind: "redriven",
          data: json({ from: "start" }),
        });
        expect(await world.store.getRun(lease.runId)).toMatchObject({ output: null, key: "k" });
        expect((await world.snapshot()).stopped).toEqual([]);
      });
    }

    test("from the start, a run hears nothing of the children that it had", async ({ world }) => {
      const lease = await world.startHeld({ queue: "parents" });
      const told = await world.startChild(lease.runId, { queue: "told" });
      await world.end(await world.hold(told));
      const live = await world.startChild(lease.runId);
      await world.end(lease);
      await world.store.redrive([lease.runId], { from: "start" });
      expect(await world.kinds(lease.runId)).toEqual(["completed", "redriven"]);
      await world.end(await world.hold(live));
      const inbox = await world.inbox(lease.runId);
      expect(inbox.map(({ takenSeq }) => takenSeq)).toEqual([0, 0]);
    });

    test("from the start, a run has published nothing, and its streams are open at their ends", async ({
      world,
    }) => {
      const lease = await world.startHeld();
      const { runId } = lease;
      const publish = (seq: number, value: number) =>
        event(seq, "published", { name: "publish:a", data: json(value) });
      const item = (name: string, position: number, isClosing = false) => ({
        name,
        position,
        data: json(position),
        step: null,
        attempt: null,
        isFirst: false,
        isClosing,
      });
      const written = [item("a", 1), item("a", 2, true), item("b", 1), item("c", 1, true)];
      const other = event(2, "published", { name: "publish:b", data: json(0) });
      await world.store.record({ lease, events: [publish(1, 1), other], children: [], written });
      await fail(world, lease);
      const positions = () => world.store.lastPositions(runId, ["a", "b", "c"]);
      const published = () => world.store.readPublished(runId, null);

      await world.store.redrive([runId]);
      expect(await positions()).toEqual(new Map(Object.entries({ a: 2, b: 1, c: 1 })));
      expect(await published()).toHaveLength(2);

      await fail(world, await world.hold(runId));
      await world.store.redrive([runId], { from: "start" });
      expect(await positions()).toEqual(new Map(Object.entries({ a: 1, b: 1 })));
      expect(await published()).toEqual([]);
      expect(await world.store.readPublished(runId, "a")).toEqual([]);

      const again = await world.hold(runId);
      const { lastSeq } = (await world.placeOf(runId)) as { lastSeq: number };
      await world.store.record({
        lease: again,
        events: [publish(lastSeq + 1, 2)],
        children: [],
        written: [item("a", 2)],
      });
      expect(await published()).toMatchObject([{ key: "a", data: json(2) }]);
      expect(await positions()).toEqual(new Map(Object.entries({ a: 2, b: 1 })));
    });

    test("a child that lives again from the start is not heard twice", async ({ world }) => {
      const lease = await world.startHeld({ queue: "parents" });
      const childId = await world.startChild(lease.runId);
      await world.end(await world.hold(childId));
      await world.record(lease, [event(1, "child_ended", { name: "call:child#1", takes: childId })]);
      await world.store.redrive([childId], { from: "start" });
      await world.end(await world.hold(childId), "failed");
      expect(await world.inbox(lease.runId)).toMatchObject([{ id: childId, takenSeq: 1 }]);
    });

    test("leaves runs alone that live, have completed, or are not there", async ({ world }) => {
      const live = await world.start();
      const lease = await world.startHeld({ queue: "other" });
      await world.end(lease);
      const missing = world.nextId();
      const answers = await world.expectUnchanged(() => world.store.redrive([live, lease.runId, missing]));
      expect(answers).toEqual(
        new Map([
          [live, "live"],
          [lease.runId, "completed"],
          [missing, "missing"],
        ]),
      );
    });
  });

  describe("rescheduling", () => {
    test("changes the priority of a ready run, which keeps its age", async ({ world }) => {
      const runId = await world.start();
      const readyAt = await world.now();
      await world.clock.advance("1s");
      expect(await world.store.reschedule({ runId, priority: -5, startAt: undefined })).toBe("rescheduled");
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", readyAt, lastSeq: 1 });
      const { runs } = await world.claim(await world.worker());
      expect(runs).toMatchObject([{ mark: { priority: -5, readyAt } }]);
      expect(await world.history(runId)).toMatchObject([
        { kind: "rescheduled", data: json({ priority: -5 }) },
      ]);
    });

    test("puts a ready run off, and brings a delayed one forward", async ({ world }) => {
      const runId = await world.start();
      const startAt = (await world.now()) + 5_000;
      await world.store.reschedule({ runId, priority: undefined, startAt });
      expect(await world.placeOf(runId)).toMatchObject({ room: "parked", reason: "delayed", dueAt: startAt });
      const hints = await hintsOf(world, () =>
        world.store.reschedule({ runId, priority: undefined, startAt: null }),
      );
      expect(hints).toEqual([{ kind: "ready", queue: "default" }]);
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", epoch: 0, lastSeq: 2 });
    });

    test("changes when a run is tried again, but not beyond its deadline", async ({ world }) => {
      const deadlineAt = (await world.now()) + 9_000;
      const runId = await world.startParked(
        { reason: "retry", delayMs: 60_000, attemptFailed: true, wants: ["cancel"] },
        { deadlineAt },
      );
      await world.store.reschedule({ runId, priority: undefined, startAt: (await world.now()) + 20_000 });
      expect(await world.placeOf(runId)).toMatchObject({ reason: "retry", dueAt: deadlineAt, attempt: 2 });
      await world.store.reschedule({ runId, priority: undefined, startAt: null });
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", attempt: 2 });
    });

    test("a paused run that has not begun waits for its new start once it is resumed", async ({ world }) => {
      const runId = await startPaused(world);
      const startAt = (await world.now()) + 5_000;
      await world.store.reschedule({ runId, priority: 3, startAt });
      expect(await world.placeOf(runId)).toMatchObject({ reason: "paused" });
      await world.tell(runId, "resume");
      expect(await world.placeOf(runId)).toMatchObject({ reason: "delayed", dueAt: startAt });
    });

    test("is too late for a run that is held, and for the time of one that has begun", async ({ world }) => {
      const lease = await world.startHeld();
      const runId = await world.startParked({ wants: ["signal:a"] }, { queue: "other" });
      await world.expectUnchanged(async () => {
        expect(await world.store.reschedule({ runId: lease.runId, priority: 1, startAt: undefined })).toBe(
          "begun",
        );
        expect(await world.store.reschedule({ runId, priority: 1, startAt: null })).toBe("begun");
      });
      expect(await world.store.reschedule({ runId, priority: 1, startAt: undefined })).toBe("rescheduled");
      expect(await world.placeOf(runId)).toMatchObject({ reason: "waiting", wants: ["signal:a"] });
    });
  });

  describe("time limits of runs that nobody holds", () => {
    test("a run whose deadline passes before it began ends as timed_out", async ({ world }) => {
      const now = await world.now();
      const runId = await world.start({ deadlineAt: now + 1_000, expiresAt: now + 2_000 });
      await world.clock.advance("1s");
      expect((await world.claim(await world.worker())).runs).toEqual([]);
      expect(await world.sweep()).toMatchObject({ expiredRuns: 1 });
      expect(await world.store.getRun(runId)).toMatchObject({ status: "timed_out" });
      expect(await world.kinds(runId)).toEqual(["timed_out"]);
    });

    for (const [limit, status] of [
      ["deadlineAt", "timed_out"],
      ["expiresAt", "expired"],
    ] as const) {
      const wait = async (world: World, runId: string): Promise<void> => {
        await world.clock.advance("1s");
        expect(await world.store.wakeDue(10)).toMatchObject({ woken: 1 });
        expect((await world.claim(await world.worker())).runs).toEqual([]);
        await world.sweep();
        expect(await world.store.getRun(runId)).toMatchObject({ status, endedAt: await world.now() });
      };

      test(`a delayed run ends as ${status} when it is time, not when it would have begun`, async ({
        world,
      }) => {
        const now = await world.now();
        const runId = await world.start({ startAt: now + 60_000, [limit]: now + 1_000 });
        await wait(world, runId);
      });

      test(`a run that is put off ends as ${status} when it is time`, async ({ world }) => {
        const now = await world.now();
        const runId = await world.start({ [limit]: now + 1_000 });
        await world.store.reschedule({ runId, priority: undefined, startAt: now + 60_000 });
        await wait(world, runId);
      });

      test(`a delayed run that is paused and resumed ends as ${status} when it is time`, async ({
        world,
      }) => {
        const now = await world.now();
        const runId = await world.start({ startAt: now + 60_000, [limit]: now + 1_000 });
        await world.tell(runId, "pause");
        await world.tell(runId, "resume");
        await wait(world, runId);
      });
    }

    test("a run that has expired is not claimed, before the sweep has been there", async ({ world }) => {
      await world.start({ expiresAt: (await world.now()) + 1_000 });
      const fresh = await world.start({ expiresAt: (await world.now()) + 1_001 });
      await world.clock.advance("1s");
      const { runs } = await world.claim(await world.worker());
      expect(runs.map(({ runId }) => runId)).toEqual([fresh]);
    });

    test("a pause does not stop the deadline", async ({ world }) => {
      const deadlineAt = (await world.now()) + 1_000;
      const runId = await world.start({ deadlineAt });
      await world.tell(runId, "pause");
      expect(await world.placeOf(runId)).toMatchObject({ reason: "paused", dueAt: deadlineAt });
      await world.clock.advance("1s");
      await world.store.wakeDue(10);
      await world.sweep();
      expect(await world.store.getRun(runId)).toMatchObject({ status: "timed_out" });
    });

    test("a delayed run that is paused and resumed still waits for its start", async ({ world }) => {
      const startAt = (await world.now()) + 5_000;
      const runId = await world.start({ startAt });
      await world.tell(runId, "pause");
      await world.clock.advance("1s");
      await world.tell(runId, "resume");
      expect(await world.placeOf(runId)).toMatchObject({ reason: "delayed", dueAt: startAt, lastSeq: 2 });
    });
  });

  describe("a run whose first crash fails it", () => {
    test("has not begun when it is claimed, and so its crash costs nothing yet", async ({ world }) => {
      const runId = await world.start();
      await world.hold(runId, { crashLimit: 0 });
      expect(await world.placeOf(runId)).toMatchObject({ begunAt: null });
      expect(await world.crash()).toMatchObject({ recovered: 1, failed: 0 });
    });
  });
}

async function startPaused(world: World): Promise<string> {
  const runId = await world.start();
  await world.tell(runId, "pause");
  return runId;
}
