import { describe, expect } from "vitest";
import type { ParkReason } from "../../src/core/run-status.ts";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { event, json } from "./world.ts";

const pausedPlace = { room: "parked", reason: "paused", dueAt: null, wants: ["cancel", "resume"] };

export function describeControl(test: StoreTest): void {
  describe("cancelling a run that has not begun", () => {
    test("ends it at once, with the request and the end in its history", async ({ world }) => {
      const runId = await world.start();
      await world.clock.advance("1s");
      const at = await world.now();
      const message = world.message(runId, "cancel", { data: json({ reason: "user" }, `["x"]`) });
      expect(await world.store.tell(message)).toBe("accepted");
      const nothing = { name: null, attempt: null, beganAt: null, dueAt: null, workerId: null };
      expect(await world.history(runId)).toEqual([
        { seq: 1, kind: "cancel_requested", at, ...nothing, data: json({ reason: "user" }, `["x"]`) },
        { seq: 2, kind: "cancelled", at, ...nothing, data: null },
      ]);
      const run = await world.store.getRun(runId);
      expect(run).toMatchObject({ status: "cancelled", output: null, endedAt: at });
      expect(JSON.parse(run!.error!.json)).toEqual({
        name: "PawlError",
        code: "RUN_CANCELLED",
        message: "user",
      });
      expect(await world.inbox(runId)).toMatchObject([{ id: message.id, takenSeq: 1 }]);
    });

    for (const data of [
      null,
      "user",
      7,
      ["reason"],
      {},
      { reason: null },
      { reason: 7 },
      { reason: { a: 1 } },
    ]) {
      test(`gives it no error without a reason in words: ${JSON.stringify(data)}`, async ({ world }) => {
        const runId = await world.start();
        await world.store.tell(world.message(runId, "cancel", { data: data === null ? null : json(data) }));
        expect(await world.store.getRun(runId)).toMatchObject({ status: "cancelled", error: null });
      });
    }

    test("ends several at once, each with its own reason", async ({ world }) => {
      const runs = await Promise.all([world.start(), world.start(), world.start()]);
      const reasons = ["one", null, 'quote " and \\u0001'];
      await Promise.all(
        runs.map((runId, index) =>
          world.store.tell(world.message(runId, "cancel", { data: json({ reason: reasons[index] }) })),
        ),
      );
      const ended = await Promise.all(runs.map((runId) => world.store.getRun(runId)));
      expect(ended.map((run) => (run?.error ? JSON.parse(run.error.json).message : null))).toEqual(reasons);
    });

    test("ends it also while it waits for its start", async ({ world }) => {
      const runId = await world.start({ startAt: (await world.now()) + 1_000 });
      await world.tell(runId, "cancel");
      expect(await world.store.getRun(runId)).toMatchObject({ status: "cancelled" });
      expect(await world.kinds(runId)).toEqual(["cancel_requested", "cancelled"]);
    });

    test("ends it also while it is paused", async ({ world }) => {
      const runId = await world.start();
      await world.tell(runId, "pause");
      await world.tell(runId, "cancel");
      expect(await world.store.getRun(runId)).toMatchObject({ status: "cancelled" });
      expect(await world.kinds(runId)).toEqual(["paused", "cancel_requested", "cancelled"]);
    });

    test("tells its parent like any child's end", async ({ world }) => {
      const parentId = await world.startParked({ wants: ["child"] }, { queue: "parents" });
      const childId = await world.startChild(parentId);
      const hints = await hintsOf(world, () => world.tell(childId, "cancel"));
      expect(await world.placeOf(parentId)).toMatchObject({ room: "ready", told: true });
      expect(await world.inbox(parentId)).toMatchObject([
        {
          id: childId,
          topic: "child",
          name: "call:child#1",
          data: { value: { id: childId, status: "cancelled", error: null } },
        },
      ]);
      expect(new Set(hints)).toEqual(
        new Set([
          { kind: "ended", runId: childId },
          { kind: "ready", queue: "parents" },
        ]),
      );
    });

    test("takes the oldest request and leaves everything else unread", async ({ world }) => {
      const runId = await world.start();
      const signal = await world.insert(runId, "signal:a");
      const second = world.nextId();
      const first = world.nextId();
      await world.insert(runId, "cancel", { id: first });
      await world.clock.advance(1);
      await world.insert(runId, "cancel", { id: second });
      const pause = await world.insert(runId, "pause");
      const resume = await world.insert(runId, "resume");
      await world.store.wakeTold([runId]);
      expect(await world.kinds(runId)).toEqual(["cancel_requested", "cancelled"]);
      const taken = new Map((await world.inbox(runId)).map(({ id, takenSeq }) => [id, takenSeq]));
      expect(taken).toEqual(
        new Map([
          [signal, null],
          [second, null],
          [first, 1],
          [pause, null],
          [resume, null],
        ]),
      );
    });

    test("is no longer possible once it was claimed, even if it was given back before it began", async ({
      world,
    }) => {
      const runId = await world.start();
      const lease = await world.hold(runId, { begin: false });
      await world.tell(runId, "cancel");
      expect(await world.placeOf(runId)).toMatchObject({ room: "lease", told: true });
      await world.release(lease);
      await world.tell(runId, "cancel");
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", told: true });
      expect(await world.kinds(runId)).toEqual([]);
    });
  });

  describe("cancelling a run that has begun", () => {
    test("wakes it if it wants to hear of it", async ({ world }) => {
      const runId = await world.startParked({ wants: ["cancel"] });
      await world.tell(runId, "cancel");
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", told: true });
      expect(await world.inbox(runId)).toMatchObject([{ takenSeq: null }]);
      expect(await world.kinds(runId)).toEqual([]);
    });

    test("waits for it if it does not", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] });
      await world.tell(runId, "cancel");
      expect(await world.placeOf(runId)).toMatchObject({ room: "parked" });
    });

    test("is told to its holder", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "cancel");
      expect(await world.record(lease, [])).toMatchObject({ told: true });
    });
  });

  describe("pausing", () => {
    test("parks a ready run, with one event, and leaves the request unread", async ({ world }) => {
      const runId = await world.start();
      await world.clock.advance("1s");
      await world.tell(runId, "pause", { data: json("by me") });
      expect(await world.placeOf(runId)).toMatchObject({ ...pausedPlace, epoch: 0, lastSeq: 1, attempt: 1 });
      const at = await world.now();
      const nothing = { name: null, attempt: null, beganAt: null, dueAt: null, workerId: null, data: null };
      expect(await world.history(runId)).toEqual([{ seq: 1, kind: "paused", at, ...nothing }]);
      expect(await world.inbox(runId)).toMatchObject([{ topic: "pause", takenSeq: null }]);
    });

    test("parks a ready run that has begun, with its numbers kept", async ({ world }) => {
      const lease = await world.startHeld();
      await world.park(lease, {
        events: [event(1, "attempt_failed")],
        reason: "retry",
        delayMs: 0,
        attemptFailed: true,
      });
      await world.store.wakeDue(1);
      await world.tell(lease.runId, "pause");
      const numbers = { epoch: 1, lastSeq: 2, attempt: 2, failures: 1 };
      expect(await world.placeOf(lease.runId)).toMatchObject({ ...pausedPlace, ...numbers });
      expect(await world.kinds(lease.runId)).toEqual(["attempt_failed", "paused"]);
    });

    for (const reason of ["waiting", "retry", "blocked"] as const satisfies readonly ParkReason[]) {
      test(`a run parked as ${reason} is paused where it is, whatever it wants, and is no longer due`, async ({
        world,
      }) => {
        const runId = await world.startParked({ reason, delayMs: 1_000, wants: ["signal:a"] });
        await world.tell(runId, "pause");
        expect(await world.placeOf(runId)).toMatchObject({ ...pausedPlace, epoch: 1, lastSeq: 1 });
        await world.clock.advance("2s");
        expect(await world.store.wakeDue(10)).toMatchObject({ woken: 0, nextDueAt: null });
      });
    }

    test("a run that waits for its start can be paused", async ({ world }) => {
      const runId = await world.start({ startAt: (await world.now()) + 1_000 });
      await world.tell(runId, "pause");
      expect(await world.placeOf(runId)).toMatchObject({ ...pausedPlace, epoch: 0 });
    });

    test("a held run is left to its holder", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "pause");
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "lease", told: true });
      expect(await world.kinds(lease.runId)).toEqual([]);
    });

    test("pausing twice is one pause", async ({ world }) => {
      const runId = await world.start();
      await world.tell(runId, "pause");
      const before = await world.placeOf(runId);
      await world.tell(runId, "pause");
      expect(await world.placeOf(runId)).toEqual(before);
      expect(await world.kinds(runId)).toEqual(["paused"]);
    });

    test("a paused run is not claimed, and what it is told meanwhile is kept", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a", "child"] });
      await world.tell(runId, "pause");
      await world.tell(runId, "signal:a");
      expect(await world.placeOf(runId)).toMatchObject(pausedPlace);
      expect(await world.claim(await world.worker())).toMatchObject({ runs: [] });
      await world.tell(runId, "resume");
      const messages = await world.readInbox(await world.hold(runId));
      expect(messages).toMatchObject([{ topic: "signal:a" }]);
    });

    test("listeners hear nothing of a pause", async ({ world }) => {
      const runId = await world.start();
      expect(await hintsOf(world, () => world.tell(runId, "pause"))).toEqual([]);
    });
  });

  describe("resuming", () => {
    test("makes a paused run ready, with one event, and spends the requests without one", async ({
      world,
    }) => {
      const runId = await world.startParked({ wants: ["signal:a"], events: [event(1, "step_completed")] });
      await world.tell(runId, "pause");
      await world.tell(runId, "pause");
      await world.clock.advance("1s");
      await world.tell(runId, "resume");
      const at = await world.now();
      expect(await world.placeOf(runId)).toEqual({
        room: "ready",
        runId,
        epoch: 1,
        lastSeq: 3,
        attempt: 1,
        failures: 0,
        crashes: 0,
        suspicion: 0,
        told: true,
        readyAt: at,
        expiresAt: null,
      });
      expect(await world.kinds(runId)).toEqual(["step_completed", "paused", "resumed"]);
      const nothing = { name: null, attempt: null, beganAt: null, dueAt: null, workerId: null, data: null };
      expect((await world.history(runId)).at(-1)).toEqual({ seq: 3, kind: "resumed", at, ...nothing });
      expect((await world.inbox(runId)).map(({ takenSeq }) => takenSeq)).toEqual([0, 0, 0]);
    });

    test("wakes a run that its holder parked as paused", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "pause");
      await world.readInbox(lease);
      const parking = { reason: "paused", wants: ["cancel", "resume"] } as const;
      await world.park(lease, { ...parking, events: [event(1, "paused")] });
      expect(await world.placeOf(lease.runId)).toMatchObject(pausedPlace);
      await world.tell(lease.runId, "resume");
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "ready", told: true, lastSeq: 2 });
      expect(await world.kinds(lease.runId)).toEqual(["paused", "resumed"]);
      expect((await world.inbox(lease.runId)).map(({ takenSeq }) => takenSeq)).toEqual([0, 0]);
    });

    test("a run whose holder took the pause is not resumed by a cancel", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "pause");
      const [pause] = await world.readInbox(lease);
      const events = [event(1, "paused", { takes: pause!.id })];
      await world.park(lease, { reason: "paused", wants: ["cancel", "resume"], events });
      await world.tell(lease.runId, "cancel");
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "ready", told: true, lastSeq: 1 });
      expect(await world.kinds(lease.runId)).toEqual(["paused"]);
    });

    test("a resume that finds nothing paused is spent, and changes nothing else", async ({ world }) => {
      const ready = await world.start();
      const parked = await world.startParked({ wants: ["signal:a"] }, { queue: "parked" });
      for (const runId of [ready, parked]) {
        const before = await world.placeOf(runId);
        await world.tell(runId, "resume");
        expect(await world.placeOf(runId)).toEqual(before);
        expect(await world.kinds(runId)).toEqual([]);
        expect(await world.inbox(runId)).toMatchObject([{ topic: "resume", takenSeq: 0 }]);
      }
    });

    test("a held run's resume is left to its holder", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "pause");
      await world.tell(lease.runId, "resume");
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "lease", told: true });
      expect(await world.readInbox(lease)).toMatchObject([{ topic: "pause" }, { topic: "resume" }]);
    });

    test("a resume makes the pauses before it void, not those after", async ({ world }) => {
      const runId = await world.start();
      const ids = [
        await world.insert(runId, "pause"),
        await world.insert(runId, "resume"),
        await world.insert(runId, "resume"),
        await world.insert(runId, "pause"),
      ];
      await world.store.wakeTold([runId]);
      expect(await world.placeOf(runId)).toMatchObject(pausedPlace);
      expect(await world.kinds(runId)).toEqual(["paused"]);
      expect(await world.inbox(runId)).toMatchObject([
        { id: ids[0], takenSeq: 0 },
        { id: ids[1], takenSeq: 0 },
        { id: ids[2], takenSeq: 0 },
        { id: ids[3], takenSeq: null },
      ]);
    });

    test("a pause and a later resume that are seen together change nothing", async ({ world }) => {
      const runId = await world.start();
      const before = await world.placeOf(runId);
      await world.insert(runId, "pause");
      await world.insert(runId, "resume");
      await world.store.wakeTold([runId]);
      expect(await world.placeOf(runId)).toEqual(before);
      expect(await world.kinds(runId)).toEqual([]);
    });

    test("a paused run that is resumed and paused again stays paused, and its history says so", async ({
      world,
    }) => {
      const runId = await world.start();
      await world.tell(runId, "pause");
      await world.insert(runId, "resume");
      await world.insert(runId, "pause");
      await world.store.wakeTold([runId]);
      expect(await world.placeOf(runId)).toMatchObject({ ...pausedPlace, lastSeq: 3 });
      expect(await world.kinds(runId)).toEqual(["paused", "resumed", "paused"]);
    });

    test("a run can be paused and resumed again and again", async ({ world }) => {
      const runId = await world.start();
      for (const topic of ["pause", "resume", "pause", "resume"] as const) {
        await world.tell(runId, topic);
        await world.clock.advance(1);
      }
      expect(await world.kinds(runId)).toEqual(["paused", "resumed", "paused", "resumed"]);
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", epoch: 0, told: true });
    });
  });

  describe("cancelling and pausing together", () => {
    test("a cancel wakes a paused run that has begun", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] });
      await world.tell(runId, "pause");
      await world.tell(runId, "cancel");
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", told: true });
      expect(await world.kinds(runId)).toEqual(["paused"]);
    });

    test("a run that is to be cancelled is not paused again", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] });
      await world.tell(runId, "pause");
      const cancel = world.message(runId, "cancel");
      await world.store.tell(cancel);
      await world.expectUnchanged(() => world.store.tell(cancel));
      await world.tell(runId, "pause");
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", told: true });
      expect(await world.kinds(runId)).toEqual(["paused"]);
    });
  });
}
