import { describe, expect } from "vitest";
import { endStatuses } from "../../src/core/run-status.ts";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { event, json, type World } from "./world.ts";

/** A held child of a parent that is parked and wants to hear of it. */
async function startFamily(
  world: World,
): Promise<{ parentId: string; child: Awaited<ReturnType<World["hold"]>> }> {
  const parentId = await world.startParked({ wants: ["child"] }, { queue: "parents" });
  const child = await world.hold(await world.startChild(parentId));
  return { parentId, child };
}

export function describeEnding(test: StoreTest): void {
  describe("ending", () => {
    for (const status of endStatuses) {
      test(`a run can end as ${status}, with its result and the time`, async ({ world }) => {
        const lease = await world.startHeld();
        await world.record(lease, [event(1, "step_completed")]);
        await world.clock.advance("1s");
        const isCompleted = status === "completed";
        const output = isCompleted ? { json: `{"total": 1.50}`, notes: `["x"]` } : null;
        const error = isCompleted ? null : json({ name: "Error", message: "no" }, `["y"]`);
        await world.end(lease, status, { output, error });
        expect(await world.store.getRun(lease.runId)).toMatchObject({
          status,
          output,
          error,
          endedAt: await world.now(),
          epoch: 1,
          attempt: 1,
          workerId: null,
        });
        expect(await world.placeOf(lease.runId)).toEqual({ room: "ended" });
        expect(await world.kinds(lease.runId)).toEqual(["step_completed", status]);
      });
    }

    test("an ending run takes messages and may leave children behind", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      const [message] = await world.readInbox(lease);
      const child = world.newRun({ parent: { id: lease.runId, request: "start#1" }, queue: "children" });
      const events = [
        event(1, "signal_received", { takes: message!.id }),
        event(2, "child_started"),
        event(3, "completed", { attempt: 1 }),
      ];
      await world.end(lease, "completed", { events, children: [child] });
      expect(await world.inbox(lease.runId)).toMatchObject([{ takenSeq: 1 }]);
      expect(await world.placeOf(child.id)).toMatchObject({ room: "ready" });
    });

    test("an ended run never changes again", async ({ world }) => {
      const now = await world.now();
      const lease = await world.startHeld({ expiresAt: now + 1, deadlineAt: now + 1, key: "k" });
      await world.tell(lease.runId, "signal:a");
      await world.end(lease);
      await world.clock.advance("1h");
      await world.sweep();
      await world.expectUnchanged(async () => {
        for (const topic of ["signal:a", "cancel", "pause", "resume"] as const)
          await world.tell(lease.runId, topic);
        await world.store.wakeTold([lease.runId]);
        await world.store.wakeDue(10);
        await world.sweep();
        await world.store.createRuns([world.newRun({ key: "k" })]);
      });
    });

    test("listeners hear that a run has ended", async ({ world }) => {
      const lease = await world.startHeld();
      const hints = await hintsOf(world, () => world.end(lease));
      expect(hints).toEqual([{ kind: "ended", runId: lease.runId }]);
    });
  });

  describe("a child's end", () => {
    test("wakes a parent that waits for it", async ({ world }) => {
      const { parentId, child } = await startFamily(world);
      await world.clock.advance("1s");
      await world.end(child);
      expect(await world.placeOf(parentId)).toMatchObject({
        room: "ready",
        told: true,
        readyAt: await world.now(),
        expiresAt: null,
        epoch: 1,
        attempt: 1,
      });
    });

    test("is a message to its parent, with the request it answers and how it ended", async ({ world }) => {
      const { parentId, child } = await startFamily(world);
      await world.end(child, "completed", {
        output: { json: `{ "n": 12345678901234567890 }`, notes: `["x"]` },
      });
      const parent = await world.hold(parentId);
      const messages = await world.readInbox(parent);
      expect(messages).toMatchObject([
        {
          id: child.runId,
          topic: "child",
          name: "call:child#1",
          sentAt: await world.now(),
        },
      ]);
      expect(JSON.parse(messages[0]!.data!.notes!)).toEqual({ output: ["x"], error: null });
      const text = messages[0]!.data!.json;
      expect(text).toContain("12345678901234567890");
      expect(JSON.parse(text)).toEqual({
        id: child.runId,
        status: "completed",
        output: { n: Number("12345678901234567890") },
        error: null,
      });
    });

    test("carries the error of a child that failed", async ({ world }) => {
      const { parentId, child } = await startFamily(world);
      const error = json({ name: "Error", message: "no stock" });
      await world.end(child, "failed", { error });
      const [message] = await world.readInbox(await world.hold(parentId));
      expect(JSON.parse(message!.data!.json)).toEqual({
        id: child.runId,
        status: "failed",
        error: { name: "Error", message: "no stock" },
      });
      expect(message!.data!.notes).toBe(null);
    });

    test("carries the notes on the error", async ({ world }) => {
      const { parentId, child } = await startFamily(world);
      await world.end(child, "failed", { error: json("sealed", `{"codec":"c"}`) });
      const [message] = await world.readInbox(await world.hold(parentId));
      expect(JSON.parse(message!.data!.json)).toMatchObject({ error: "sealed" });
      expect(JSON.parse(message!.data!.notes!)).toEqual({ output: null, error: { codec: "c" } });
    });

    test("tells null from no output", async ({ world }) => {
      const outputs: unknown[] = [];
      for (const output of [json(null), null]) {
        const { parentId, child } = await startFamily(world);
        await world.end(child, "completed", { output });
        const [message] = await world.readInbox(await world.hold(parentId));
        outputs.push(JSON.parse(message!.data!.json));
      }
      expect(outputs).toMatchObject([{ output: null }, expect.not.objectContaining({ output: null })]);
    });

    test("tells a parent that is held, and leaves it there", async ({ world }) => {
      const parent = await world.startHeld({ queue: "parents" });
      const child = await world.hold(await world.startChild(parent.runId));
      const hints = await hintsOf(world, () => world.end(child));
      expect(await world.placeOf(parent.runId)).toMatchObject({ room: "lease", told: true });
      expect(new Set(hints)).toEqual(
        new Set([
          { kind: "ended", runId: child.runId },
          { kind: "told", runId: parent.runId },
        ]),
      );
    });

    test("tells a parent that is ready", async ({ world }) => {
      const parentId = await world.start({ queue: "parents" });
      await world.end(await world.hold(await world.startChild(parentId)));
      expect(await world.placeOf(parentId)).toMatchObject({ room: "ready", told: true });
    });

    test("leaves a parent parked that waits for something else, and is found when it asks", async ({
      world,
    }) => {
      const parentId = await world.startParked({ wants: ["signal:a"] }, { queue: "parents" });
      const child = await world.hold(await world.startChild(parentId));
      await world.end(child);
      expect(await world.placeOf(parentId)).toMatchObject({ room: "parked" });
      await world.tell(parentId, "signal:a");
      const parent = await world.hold(parentId);
      expect(await world.park(parent, { wants: ["child"] })).toMatchObject({
        outcome: "told",
        messages: [{ id: child.runId, topic: "child" }, { topic: "signal:a" }],
      });
    });

    test("is not told to a parent that has ended", async ({ world }) => {
      const parent = await world.startHeld({ queue: "parents" });
      const child = await world.hold(await world.startChild(parent.runId));
      await world.end(parent);
      await world.end(child);
      expect(await world.inbox(parent.runId)).toEqual([]);
    });

    test("is told to its parent only, not to its root", async ({ world }) => {
      const root = await world.startParked({ wants: ["child"] }, { queue: "roots" });
      const middle = await world.startChild(root, { queue: "parents" });
      await world.end(await world.hold(await world.startChild(middle)));
      expect(await world.inbox(root)).toEqual([]);
      expect(await world.placeOf(root)).toMatchObject({ room: "parked" });
    });

    test("of each child is one message, in the order of their ends", async ({ world }) => {
      const parentId = await world.startParked({ wants: ["child"] }, { queue: "parents" });
      const first = await world.hold(await world.startChild(parentId));
      const second = await world.hold(await world.startChild(parentId));
      await world.end(second);
      await world.clock.advance(1);
      await world.end(first, "failed");
      const messages = await world.readInbox(await world.hold(parentId));
      expect(messages.map(({ id }) => id)).toEqual([second.runId, first.runId]);
    });
  });

  describe("the children of a run that was stopped", () => {
    for (const status of ["cancelled", "timed_out"] as const) {
      test(`that have not begun end at once when it is ${status}`, async ({ world }) => {
        const parent = await world.startHeld({ queue: "parents" });
        const waiting = await world.startChild(parent.runId);
        const delayed = await world.startChild(parent.runId, { startAt: (await world.now()) + 1_000 });
        const hints = await hintsOf(world, () => world.end(parent, status));
        for (const childId of [waiting, delayed]) {
          const child = await world.store.getRun(childId);
          expect(child).toMatchObject({ status: "cancelled", output: null });
          expect(JSON.parse(child!.error!.json)).toMatchObject({ code: "RUN_CANCELLED", message: "parent" });
          expect(await world.history(childId)).toMatchObject([
            { seq: 1, kind: "cancel_requested", data: { json: expect.stringContaining("parent") } },
            { seq: 2, kind: "cancelled", data: null },
          ]);
        }
        expect(new Set(hints)).toEqual(
          new Set([parent.runId, waiting, delayed].map((runId) => ({ kind: "ended", runId }))),
        );
        expect(await world.inbox(parent.runId)).toEqual([]);
      });
    }

    test("get a message that says why", async ({ world }) => {
      const parent = await world.startHeld({ queue: "parents" });
      const child = await world.startHeld({ parent: { id: parent.runId, request: "call#1" } });
      await world.end(parent, "cancelled");
      const messages = await world.readInbox(child);
      const id = child.runId.slice(0, 24) + parent.runId.slice(24);
      expect(messages).toMatchObject([{ id, topic: "cancel", name: null, sentAt: await world.now() }]);
      expect(messages[0]!.data!.notes).toBeNull();
      expect(JSON.parse(messages[0]!.data!.json)).toEqual({ reason: "parent" });
    });

    test("are told where they are: held, ready or parked", async ({ world }) => {
      const parent = await world.startHeld({ queue: "parents" });
      const family = { parent: { id: parent.runId, request: "call#1" } };
      const held = await world.startHeld({ ...family, queue: "held" });
      const released = await world.startHeld({ ...family, queue: "released" });
      await world.release(released);
      const wanting = await world.startParked(
        { wants: ["cancel", "signal:a"] },
        { ...family, queue: "wanting" },
      );
      const deaf = await world.startParked({ wants: ["signal:a"] }, { ...family, queue: "deaf" });
      const hints = await hintsOf(world, () => world.end(parent, "cancelled"));
      expect(await world.placeOf(held.runId)).toMatchObject({ room: "lease", told: true });
      expect(await world.placeOf(released.runId)).toMatchObject({ room: "ready", told: true });
      expect(await world.placeOf(wanting)).toMatchObject({ room: "ready", told: true });
      expect(await world.placeOf(deaf)).toMatchObject({ room: "parked" });
      expect(await world.inbox(deaf)).toMatchObject([{ topic: "cancel", takenSeq: null }]);
      expect(new Set(hints)).toEqual(
        new Set([
          { kind: "ended", runId: parent.runId },
          { kind: "told", runId: held.runId },
          { kind: "ready", queue: "wanting" },
        ]),
      );
    });

    test("that have ended are left alone", async ({ world }) => {
      const parent = await world.startHeld({ queue: "parents" });
      const child = await world.startHeld({ parent: { id: parent.runId, request: "call#1" } });
      await world.end(child);
      await world.end(parent, "cancelled");
      expect(await world.inbox(child.runId)).toEqual([]);
      expect(await world.store.getRun(child.runId)).toMatchObject({ status: "completed" });
    });

    test("pass it on to their own children when they end", async ({ world }) => {
      const parent = await world.startHeld({ queue: "parents" });
      const child = await world.startHeld({
        parent: { id: parent.runId, request: "call#1" },
        queue: "children",
      });
      const grandchild = await world.startChild(child.runId);
      await world.end(parent, "cancelled");
      expect(await world.placeOf(grandchild)).toMatchObject({ room: "ready" });
      await world.end(child, "cancelled");
      expect(await world.store.getRun(grandchild)).toMatchObject({ status: "cancelled" });
    });

    for (const status of ["cancelled", "timed_out", "failed"] as const) {
      test(`are asked to stop when it is ${status}, unless they are detached`, async ({ world }) => {
        const parent = await world.startHeld({ queue: "parents" });
        const child = await world.startChild(parent.runId);
        const detached = await world.startChild(parent.runId, { isDetached: true });
        await world.end(parent, status);
        expect(await world.store.getRun(child)).toMatchObject({ status: "cancelled" });
        expect(await world.placeOf(detached)).toMatchObject({ room: "ready", told: false });
        expect(await world.inbox(detached)).toEqual([]);
      });
    }

    for (const status of ["completed", "expired"] as const) {
      test(`live on when it is ${status}`, async ({ world }) => {
        const parent = await world.startHeld({ queue: "parents" });
        const child = await world.startChild(parent.runId);
        await world.end(parent, status);
        expect(await world.placeOf(child)).toMatchObject({ room: "ready", told: false });
        expect(await world.inbox(child)).toEqual([]);
      });
    }
  });

  describe("releasing", () => {
    test("a released run is claimable at once, with no attempt spent", async ({ world }) => {
      const lease = await world.startHeld();
      await world.record(lease, [event(1, "step_completed"), event(2, "step_completed")]);
      await world.clock.advance("1s");
      await world.release(lease);
      expect(await world.placeOf(lease.runId)).toEqual({
        room: "ready",
        runId: lease.runId,
        epoch: 1,
        lastSeq: 2,
        attempt: 1,
        failures: 0,
        crashes: 0,
        suspicion: 0,
        told: true,
        readyAt: await world.now(),
        expiresAt: null,
      });
    });

    test("a release counts the facts in the history, also those whose answer was lost", async ({ world }) => {
      const lease = await world.startHeld();
      await world.record(lease, [event(1, "step_completed")]);
      await world.store.release(lease);
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "ready", lastSeq: 1 });
    });

    test("a released suspect stays one", async ({ world }) => {
      const { runId } = await world.startHeld();
      await world.crash();
      await world.release(await world.hold(runId, { suspects: true }));
      expect(await world.placeOf(runId)).toMatchObject({
        room: "ready",
        crashes: 1,
        suspicion: 2,
        attempt: 2,
      });
    });

    test("listeners hear of a released run's queue", async ({ world }) => {
      const lease = await world.startHeld({ queue: "here" });
      const hints = await hintsOf(world, () => world.release(lease));
      expect(hints).toEqual([{ kind: "ready", queue: "here" }]);
    });
  });
}
