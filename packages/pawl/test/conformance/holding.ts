import { describe, expect } from "vitest";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { event, json } from "./world.ts";

export function describeHolding(test: StoreTest): void {
  describe("beginning", () => {
    test("a run that was claimed without beginning begins when its holder says so", async ({ world }) => {
      const lease = await world.hold(await world.start(), { begin: false });
      await world.clock.advance("2s");
      await world.store.begin(lease);
      expect(await world.placeOf(lease.runId)).toMatchObject({ begunAt: await world.now() });
    });

    test("a run that has begun keeps the time when it did", async ({ world }) => {
      const lease = await world.startHeld();
      await world.clock.advance("2s");
      await world.expectUnchanged(() => world.store.begin(lease));
    });
  });

  describe("recording", () => {
    test("a fact is kept as given, with the store's time", async ({ world }) => {
      const lease = await world.startHeld();
      await world.clock.advance("1s");
      const now = await world.now();
      const data = { json: `{"n": 1.50, "big": 12345678901234567890}`, notes: `{"n":["x"]}` };
      const full = event(1, "step_completed", { name: "charge#1", attempt: 3, beganAt: now - 250, data });
      await world.record(lease, [full, event(2, "step_intended", { name: "ship#1" })]);
      expect(await world.history(lease.runId)).toEqual([
        {
          seq: 1,
          kind: "step_completed",
          at: now,
          name: "charge#1",
          attempt: 3,
          beganAt: now - 250,
          dueAt: null,
          workerId: null,
          data,
        },
        {
          seq: 2,
          kind: "step_intended",
          at: now,
          name: "ship#1",
          attempt: null,
          beganAt: null,
          dueAt: null,
          workerId: null,
          data: null,
        },
      ]);
    });

    test("recording leaves the run where it is, with the numbers of its claim", async ({ world }) => {
      const lease = await world.startHeld();
      const before = await world.placeOf(lease.runId);
      await world.record(lease, [event(1, "step_completed"), event(2, "step_completed")]);
      expect(await world.placeOf(lease.runId)).toEqual(before);
    });

    test("a fact whose number is there stays as it is, and the others are added", async ({ world }) => {
      const lease = await world.startHeld();
      await world.record(lease, [event(1, "step_completed", { name: "a", data: json(1) })]);
      const first = await world.history(lease.runId);
      await world.clock.advance("1s");
      await world.record(lease, [
        event(1, "step_failed", { name: "b", data: json(2) }),
        event(2, "step_completed"),
      ]);
      expect(await world.history(lease.runId)).toMatchObject([...first, { seq: 2, at: await world.now() }]);
    });

    test("recording nothing changes nothing and tells the time", async ({ world }) => {
      const lease = await world.startHeld();
      const answer = await world.expectUnchanged(() => world.record(lease, []));
      expect(answer).toEqual({ told: false, dueAt: new Map(), now: await world.now() });
    });

    test("a record answers whether the run was told something, without clearing it", async ({ world }) => {
      const lease = await world.startHeld();
      expect(await world.record(lease, [])).toMatchObject({ told: false });
      await world.tell(lease.runId, "signal:go");
      expect(await world.record(lease, [])).toMatchObject({ told: true });
      expect(await world.record(lease, [])).toMatchObject({ told: true });
    });
  });

  describe("timers", () => {
    test("a timer fires its delay after the store's time, rounded up to a whole ms", async ({ world }) => {
      const lease = await world.startHeld();
      await world.clock.advance(7);
      const now = await world.now();
      const answer = await world.record(lease, [
        event(1, "timer_set", { name: "sleep#1", delayMs: 1_000 }),
        event(2, "timer_set", { name: "sleep#2", delayMs: 0.25 }),
        event(3, "timer_set", { name: "sleep#3", delayMs: 0 }),
        event(4, "timer_set", { name: "sleep#4", delayMs: 86_400_000.5 }),
      ]);
      const dueAt = [now + 1_000, now + 1, now, now + 86_400_001];
      expect(answer.dueAt).toEqual(new Map(dueAt.map((at, index) => [index + 1, at])));
      expect((await world.history(lease.runId)).map((fact) => fact.dueAt)).toEqual(dueAt);
    });

    test("a timer may be set to an instant", async ({ world }) => {
      const lease = await world.startHeld();
      const dueAt = (await world.now()) + 123_456;
      const answer = await world.record(lease, [event(1, "timer_set", { name: "until#1", dueAt })]);
      expect(answer.dueAt).toEqual(new Map([[1, dueAt]]));
      expect(await world.history(lease.runId)).toMatchObject([{ dueAt }]);
    });

    test("a timer that is recorded again keeps its time, and the answer repeats it", async ({ world }) => {
      const lease = await world.startHeld();
      const timer = event(1, "timer_set", { name: "sleep#1", delayMs: 1_000 });
      const first = await world.record(lease, [timer]);
      await world.clock.advance("1m");
      const again = await world.expectUnchanged(() => world.record(lease, [timer]));
      expect(again.dueAt).toEqual(first.dueAt);
    });

    test("only the timers of this recording are answered", async ({ world }) => {
      const lease = await world.startHeld();
      await world.record(lease, [event(1, "timer_set", { delayMs: 1_000 })]);
      const answer = await world.record(lease, [
        event(2, "step_completed"),
        event(3, "timer_set", { delayMs: 5 }),
      ]);
      expect([...answer.dueAt.keys()]).toEqual([3]);
    });
  });

  describe("taking messages", () => {
    test("a fact takes the message it speaks of", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      await world.tell(lease.runId, "signal:b");
      const [a, b] = await world.readInbox(lease);
      await world.record(lease, [event(1, "step_completed"), event(2, "signal_received", { takes: b!.id })]);
      expect(await world.inbox(lease.runId)).toMatchObject([
        { id: a!.id, takenSeq: null },
        { id: b!.id, takenSeq: 2 },
      ]);
      expect(await world.readInbox(lease)).toEqual([a]);
    });

    test("a message is taken once", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      const [message] = await world.readInbox(lease);
      await world.record(lease, [event(1, "signal_received", { takes: message!.id })]);
      await world.record(lease, [event(2, "signal_received", { takes: message!.id })]);
      expect(await world.inbox(lease.runId)).toMatchObject([{ takenSeq: 1 }]);
    });

    test("taking a message does not touch another run's", async ({ world }) => {
      const other = await world.start({ queue: "other" });
      const id = await world.insert(other, "signal:a");
      const lease = await world.startHeld();
      await world.record(lease, [event(1, "signal_received", { takes: id })]);
      expect(await world.inbox(other)).toMatchObject([{ id, takenSeq: null }]);
    });
  });

  describe("children", () => {
    test("a child is created with the fact that speaks of it", async ({ world }) => {
      const lease = await world.startHeld();
      const parent = { id: lease.runId, request: "call:ship#1" };
      const startAt = (await world.now()) + 1_000;
      const child = world.newRun({ parent, queue: "ships", input: json(1) });
      const later = world.newRun({ parent, startAt });
      await world.record(
        lease,
        [event(1, "child_started", { name: "call:ship#1", data: json(child.id) })],
        [child, later],
      );
      expect(await world.placeOf(child.id)).toMatchObject({ room: "ready", epoch: 0, told: false });
      expect(await world.placeOf(later.id)).toMatchObject({
        room: "parked",
        reason: "delayed",
        dueAt: startAt,
      });
      expect(await world.store.getRun(child.id)).toMatchObject({
        parentId: lease.runId,
        rootId: lease.runId,
        depth: 1,
        queue: "ships",
        input: json(1),
      });
    });

    test("a child has no later deadline than its parent", async ({ world }) => {
      const deadlineAt = (await world.now()) + 1_000;
      const lease = await world.startHeld({ deadlineAt });
      const child = world.newRun({ parent: { id: lease.runId, request: "call#1" } });
      await world.record(lease, [], [child]);
      const { runs } = await world.snapshot();
      expect(runs.find(({ id }) => id === child.id)).toMatchObject({ deadlineAt });
    });

    test("a child whose id exists is left alone", async ({ world }) => {
      const lease = await world.startHeld();
      const child = world.newRun({ parent: { id: lease.runId, request: "call#1" }, queue: "children" });
      await world.record(lease, [event(1, "child_started")], [child]);
      await world.hold(child.id);
      await world.expectUnchanged(() => world.record(lease, [event(1, "child_started")], [child]));
    });

    test("listeners hear of a child's queue", async ({ world }) => {
      const lease = await world.startHeld();
      const child = world.newRun({ parent: { id: lease.runId, request: "call#1" }, queue: "children" });
      const hints = await hintsOf(world, () => world.record(lease, [event(1, "child_started")], [child]));
      expect(hints).toEqual([{ kind: "ready", queue: "children" }]);
    });
  });

  describe("reading the inbox", () => {
    test("the holder reads all unread messages, whatever they are about", async ({ world }) => {
      const lease = await world.startHeld();
      const sentAt = await world.now();
      const data = { json: `{"carrier": "dhl"}`, notes: `["x"]` };
      await world.tell(lease.runId, "signal:shipped", { data });
      await world.tell(lease.runId, "update:address");
      await world.tell(lease.runId, "pause");
      await world.tell(lease.runId, "cancel", { data: json({ reason: "user" }) });
      const messages = await world.readInbox(lease);
      const ids = (await world.inbox(lease.runId)).map(({ id }) => id);
      expect(messages).toEqual([
        { id: ids[0], topic: "signal:shipped", name: null, data, sentAt },
        { id: ids[1], topic: "update:address", name: null, data: null, sentAt },
        { id: ids[2], topic: "pause", name: null, data: null, sentAt },
        { id: ids[3], topic: "cancel", name: null, data: json({ reason: "user" }), sentAt },
      ]);
    });

    test("messages are read in the order sent, by id where they were sent at the same instant", async ({
      world,
    }) => {
      const lease = await world.startHeld();
      const ids = [world.nextId(), world.nextId(), world.nextId(), world.nextId()];
      await world.tell(lease.runId, "signal:a", { id: ids[3]! });
      await world.tell(lease.runId, "signal:a", { id: ids[1]! });
      await world.clock.advance(1);
      await world.tell(lease.runId, "signal:a", { id: ids[2]! });
      await world.tell(lease.runId, "signal:a", { id: ids[0]! });
      const messages = await world.readInbox(lease);
      expect(messages.map(({ id }) => id)).toEqual([ids[1], ids[3], ids[0], ids[2]]);
    });

    test("reading clears the lease's told, and takes nothing", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      const messages = await world.readInbox(lease);
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "lease", told: false });
      expect(await world.inbox(lease.runId)).toMatchObject([{ takenSeq: null }]);
      expect(await world.expectUnchanged(() => world.readInbox(lease))).toEqual(messages);
    });

    test("a try that comes late clears nothing: what came in after the first is told", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      await world.readInbox(lease, 1);
      await world.tell(lease.runId, "cancel");
      expect(await world.readInbox(lease, 1)).toMatchObject([{ topic: "signal:a" }, { topic: "cancel" }]);
      expect(await world.record(lease, [])).toMatchObject({ told: true });
      await world.readInbox(lease, 2);
      expect(await world.record(lease, [])).toMatchObject({ told: false });
    });

    test("an empty inbox reads as empty", async ({ world }) => {
      const lease = await world.startHeld();
      expect(await world.readInbox(lease)).toEqual([]);
    });
  });
}
