import { describe, expect } from "vitest";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { event, json } from "./world.ts";

export function describeTelling(test: StoreTest): void {
  describe("telling", () => {
    test("a message is stored as given, with the store's time", async ({ world }) => {
      const runId = await world.start();
      await world.clock.advance("1s");
      const data = { json: `{"n": 1.0}`, notes: `["x"]` };
      const message = world.message(runId, "signal:shipped", { data, idempotencyKey: "hook:1" });
      expect(await world.store.tell(message)).toBe("accepted");
      expect(await world.inbox(runId)).toEqual([
        {
          runId,
          id: message.id,
          topic: "signal:shipped",
          name: null,
          data: { value: { n: 1 }, notes: ["x"] },
          idempotencyKey: "hook:1",
          sentAt: await world.now(),
          sentTo: null,
          takenSeq: null,
          answerSeq: null,
        },
      ]);
      expect(await world.readInbox(await world.hold(runId))).toMatchObject([{ data }]);
    });

    test("a run that is not there is missing", async ({ world }) => {
      const answer = await world.expectUnchanged(() => world.tell(world.nextId(), "signal:a"));
      expect(answer).toBe("missing");
    });

    test("a run that has ended takes no more messages", async ({ world }) => {
      const lease = await world.startHeld();
      await world.end(lease);
      expect(await world.expectUnchanged(() => world.tell(lease.runId, "signal:a"))).toBe("ended");
    });

    test("a message whose id is there was accepted before, and stays as it is", async ({ world }) => {
      const runId = await world.start();
      const message = world.message(runId, "signal:a", { data: json(1) });
      await world.store.tell(message);
      await world.clock.advance("1s");
      const again = { ...message, topic: "signal:b" as const, data: json(2) };
      expect(await world.expectUnchanged(() => world.store.tell(again))).toBe("accepted");
    });

    test("a second message with an idempotency key is a duplicate", async ({ world }) => {
      const runId = await world.start();
      await world.tell(runId, "signal:a", { idempotencyKey: "k", data: json(1) });
      const answer = await world.expectUnchanged(() =>
        world.tell(runId, "signal:b", { idempotencyKey: "k", data: json(2) }),
      );
      expect(answer).toBe("duplicate");
    });

    test("an idempotency key holds after its message was taken", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a", { idempotencyKey: "k" });
      const [message] = await world.readInbox(lease);
      await world.record(lease, [event(1, "signal_received", { takes: message!.id })]);
      expect(await world.tell(lease.runId, "signal:a", { idempotencyKey: "k" })).toBe("duplicate");
      expect(await world.inbox(lease.runId)).toHaveLength(1);
    });

    test("an idempotency key is one run's alone", async ({ world }) => {
      const [one, two] = [await world.start(), await world.start()];
      expect(await world.tell(one, "signal:a", { idempotencyKey: "k" })).toBe("accepted");
      expect(await world.tell(two, "signal:a", { idempotencyKey: "k" })).toBe("accepted");
    });

    test("messages without an idempotency key are all different", async ({ world }) => {
      const runId = await world.start();
      await world.tell(runId, "signal:a", { data: json(1) });
      await world.tell(runId, "signal:a", { data: json(1) });
      expect(await world.inbox(runId)).toHaveLength(2);
    });

    test("what is known of a message goes before the end of its run", async ({ world }) => {
      const lease = await world.startHeld();
      const message = world.message(lease.runId, "signal:a", { idempotencyKey: "k" });
      await world.store.tell(message);
      await world.end(lease);
      expect(await world.expectUnchanged(() => world.store.tell(message))).toBe("accepted");
      const other = { ...message, id: world.nextId() };
      expect(await world.expectUnchanged(() => world.store.tell(other))).toBe("duplicate");
    });

    test("the same id goes before the same idempotency key", async ({ world }) => {
      const runId = await world.start();
      await world.tell(runId, "signal:a", { idempotencyKey: "k" });
      const other = world.message(runId, "signal:a", { idempotencyKey: "l" });
      await world.store.tell(other);
      expect(await world.expectUnchanged(() => world.store.tell({ ...other, idempotencyKey: "k" }))).toBe(
        "accepted",
      );
    });

    test("of many tellings with one idempotency key at the same moment, one is stored", async ({ world }) => {
      const runId = await world.start();
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => world.tell(runId, "signal:a", { idempotencyKey: "k" })),
      );
      expect(answers.filter((answer) => answer === "accepted")).toHaveLength(1);
      expect(answers.filter((answer) => answer === "duplicate")).toHaveLength(19);
      expect(await world.inbox(runId)).toHaveLength(1);
    });
  });

  describe("whom a message wakes", () => {
    test("a parked run that wants it, with its numbers as they were", async ({ world }) => {
      const lease = await world.startHeld();
      await world.park(lease, {
        events: [event(1, "attempt_failed")],
        reason: "retry",
        delayMs: 60_000,
        wants: ["signal:a", "cancel"],
        attemptFailed: true,
      });
      await world.clock.advance("1s");
      await world.tell(lease.runId, "signal:a");
      expect(await world.placeOf(lease.runId)).toEqual({
        room: "ready",
        runId: lease.runId,
        epoch: 1,
        lastSeq: 1,
        attempt: 2,
        failures: 1,
        crashes: 0,
        suspicion: 0,
        told: true,
        readyAt: await world.now(),
        expiresAt: null,
      });
    });

    test("not a parked run that wants something else, for which it is kept", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:wanted", "child"] });
      const before = await world.placeOf(runId);
      for (const topic of ["signal:want", "signal:wanted2", "signal:Wanted", "update:wanted"] as const) {
        await world.tell(runId, topic);
      }
      expect(await world.placeOf(runId)).toEqual(before);
      expect(await world.inbox(runId)).toHaveLength(4);
    });

    test("not a parked run that wants nothing", async ({ world }) => {
      const runId = await world.startParked({ wants: [] });
      await world.tell(runId, "signal:a");
      expect(await world.placeOf(runId)).toMatchObject({ room: "parked" });
    });

    test("a ready run is told, and stays where it stands", async ({ world }) => {
      const runId = await world.start();
      const before = await world.placeOf(runId);
      await world.clock.advance("1s");
      await world.tell(runId, "signal:a");
      expect(await world.placeOf(runId)).toEqual({ ...before, told: true });
    });

    test("a held run is told, and its holder with it", async ({ world }) => {
      const lease = await world.startHeld();
      const before = await world.placeOf(lease.runId);
      const hints = await hintsOf(world, () => world.tell(lease.runId, "signal:a"));
      expect(await world.placeOf(lease.runId)).toEqual({ ...before, told: true });
      expect(hints).toEqual([{ kind: "told", runId: lease.runId }]);
    });

    test("listeners hear of the queue of a run that was woken, and nothing of one that was not", async ({
      world,
    }) => {
      const wanting = await world.startParked({ wants: ["signal:a"] }, { queue: "here" });
      const deaf = await world.startParked({ wants: [] });
      expect(await hintsOf(world, () => world.tell(wanting, "signal:a"))).toEqual([
        { kind: "ready", queue: "here" },
      ]);
      expect(await hintsOf(world, () => world.tell(deaf, "signal:a"))).toEqual([]);
    });

    test("a message that is told again wakes a run that has parked for it since", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] });
      const message = world.message(runId, "signal:a");
      await world.insertMessage(message);
      expect(await world.placeOf(runId)).toMatchObject({ room: "parked" });
      expect(await world.store.tell(message)).toBe("accepted");
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", told: true });
    });

    test("a duplicate wakes the run for the message that was there first", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] });
      await world.insert(runId, "signal:a", { idempotencyKey: "k" });
      expect(await world.tell(runId, "signal:a", { idempotencyKey: "k" })).toBe("duplicate");
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", told: true });
    });

    test("many messages at the same moment wake a run once, and all are there", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] });
      await Promise.all(Array.from({ length: 20 }, () => world.tell(runId, "signal:a")));
      const lease = await world.hold(runId);
      expect(lease.epoch).toBe(2);
      expect(await world.readInbox(lease)).toHaveLength(20);
    });
  });

  describe("messages stored in a caller's transaction", () => {
    test("wake nobody by themselves, and leave a hint", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] });
      const hints = await hintsOf(world, () => world.insert(runId, "signal:a"));
      expect(hints).toEqual([{ kind: "sent", runId }]);
      expect(await world.placeOf(runId)).toMatchObject({ room: "parked" });
    });

    test("wake the runs that want them when somebody looks again", async ({ world }) => {
      const wanting = await world.startParked({ wants: ["signal:a"] });
      const deaf = await world.startParked({ wants: ["signal:b"] });
      const silent = await world.startParked({ wants: ["signal:a"] });
      await world.insert(wanting, "signal:a");
      await world.insert(deaf, "signal:a");
      await world.clock.advance("1s");
      await world.store.wakeTold([wanting, deaf, silent]);
      expect(await world.placeOf(wanting)).toMatchObject({
        room: "ready",
        told: true,
        readyAt: await world.now(),
        expiresAt: null,
      });
      expect(await world.placeOf(deaf)).toMatchObject({ room: "parked" });
      expect(await world.placeOf(silent)).toMatchObject({ room: "parked" });
    });

    test("are told to runs that are ready or held when somebody looks again", async ({ world }) => {
      const held = await world.startHeld();
      const ready = await world.start();
      await world.insert(ready, "signal:a");
      await world.insert(held.runId, "signal:a");
      expect(await world.placeOf(held.runId)).toMatchObject({ told: false });
      const hints = await hintsOf(world, () => world.store.wakeTold([held.runId, ready]));
      expect(await world.placeOf(ready)).toMatchObject({ room: "ready", told: true });
      expect(await world.placeOf(held.runId)).toMatchObject({ room: "lease", told: true });
      expect(hints).toEqual([{ kind: "told", runId: held.runId }]);
    });

    test("can cancel a run that has not begun when somebody looks again", async ({ world }) => {
      const runId = await world.start();
      await world.insert(runId, "cancel");
      await world.store.wakeTold([runId]);
      expect(await world.store.getRun(runId)).toMatchObject({ status: "cancelled" });
    });

    test("looking at runs that are not there, have ended or were told nothing changes nothing", async ({
      world,
    }) => {
      const lease = await world.startHeld();
      await world.insert(lease.runId, "signal:a");
      await world.end(lease);
      const silent = await world.start();
      await world.expectUnchanged(() => world.store.wakeTold([world.nextId(), lease.runId, silent]));
      await world.expectUnchanged(() => world.store.wakeTold([]));
    });
  });
}
