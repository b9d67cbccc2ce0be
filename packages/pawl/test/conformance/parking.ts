import { describe, expect } from "vitest";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { event, json, leaseOf } from "./world.ts";

export function describeParking(test: StoreTest): void {
  describe("parking", () => {
    test("a parked run gives up its lease and keeps its numbers", async ({ world }) => {
      const lease = await world.startHeld();
      const now = await world.now();
      const answer = await world.park(lease, {
        events: [event(1, "step_completed"), event(2, "timer_set", { delayMs: 500 })],
        wants: ["signal:b", "signal:a", "cancel"],
      });
      expect(answer).toEqual({
        outcome: "parked",
        messages: [],
        told: false,
        dueAt: new Map([[2, now + 500]]),
        now,
      });
      expect(await world.placeOf(lease.runId)).toEqual({
        room: "parked",
        runId: lease.runId,
        epoch: 1,
        lastSeq: 2,
        attempt: 1,
        failures: 0,
        crashes: 0,
        suspicion: 0,
        reason: "waiting",
        dueAt: now + 500,
        wants: ["cancel", "signal:a", "signal:b"],
        fires: null,
      });
    });

    test("parking records facts, takes messages and creates children in the same step", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      const [message] = await world.readInbox(lease);
      const child = world.newRun({ parent: { id: lease.runId, request: "call#1" } });
      await world.park(lease, {
        events: [
          event(1, "signal_received", { takes: message!.id, data: json(1) }),
          event(2, "child_started"),
        ],
        children: [child],
        wants: ["child", "signal:a"],
      });
      expect(await world.kinds(lease.runId)).toEqual(["signal_received", "child_started"]);
      expect(await world.inbox(lease.runId)).toMatchObject([{ takenSeq: 1 }]);
      expect(await world.placeOf(child.id)).toMatchObject({ room: "ready" });
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "parked", lastSeq: 2 });
    });

    test("a failed attempt counts as one more attempt and one more failure", async ({ world }) => {
      const lease = await world.startHeld();
      await world.park(lease, {
        events: [event(1, "attempt_failed")],
        reason: "retry",
        delayMs: 1_000,
        attemptFailed: true,
      });
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "parked", attempt: 2, failures: 1 });
    });

    test("a run that parks without failing counts no attempt, however often", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] });
      for (let round = 1; round <= 3; round += 1) {
        await world.tell(runId, "signal:a");
        const lease = await world.hold(runId);
        const [message] = await world.readInbox(lease);
        await world.park(lease, {
          events: [event(round, "signal_received", { takes: message!.id })],
          wants: ["signal:a"],
        });
      }
      expect(await world.placeOf(runId)).toMatchObject({ room: "parked", epoch: 4, attempt: 1, failures: 0 });
    });

    test("parking clears suspicion", async ({ world }) => {
      const runIds = [await world.start(), await world.start()];
      await world.claim(await world.worker());
      await world.crash();
      const workerId = await world.worker();
      const { runs } = await world.claim(workerId);
      for (const runId of runIds)
        expect(await world.placeOf(runId)).toMatchObject({ room: "lease", suspicion: 1 });
      await world.park(leaseOf(workerId, runs[0]!));
      expect(await world.placeOf(runs[0]!.runId)).toMatchObject({ room: "parked", suspicion: 0, attempt: 2 });
      expect(await world.placeOf(runs[1]!.runId)).toMatchObject({ room: "lease", suspicion: 1 });
    });

    test("parking clears the crashes of a run", async ({ world }) => {
      const { runId } = await world.startHeld();
      await world.crash();
      const lease = await world.hold(runId, { suspects: true });
      expect(await world.placeOf(runId)).toMatchObject({ crashes: 1, suspicion: 2 });
      await world.park(lease);
      expect(await world.placeOf(runId)).toMatchObject({
        room: "parked",
        crashes: 0,
        suspicion: 0,
        attempt: 2,
      });
    });

    test("listeners hear of the children of a parking run, and nothing of the parking itself", async ({
      world,
    }) => {
      const lease = await world.startHeld();
      const child = world.newRun({ parent: { id: lease.runId, request: "call#1" }, queue: "children" });
      const hints = await hintsOf(world, () =>
        world.park(lease, { events: [event(1, "child_started")], children: [child], wants: ["child"] }),
      );
      expect(hints).toEqual([{ kind: "ready", queue: "children" }]);
    });
  });

  describe("when a parked run is due", () => {
    test("without an instant, a delay or a timer it is never due", async ({ world }) => {
      const lease = await world.startHeld();
      await world.park(lease);
      expect(await world.placeOf(lease.runId)).toMatchObject({ dueAt: null });
      await world.clock.advance("520w");
      expect(await world.store.wakeDue(10)).toMatchObject({ woken: 0, nextDueAt: null });
    });

    for (const [what, atMs, delayMs, timerMs] of [
      ["the instant given", 10, 20, 30],
      ["the delay given", 20, 10, 30],
      ["the timer set", 30, 20, 10],
    ] as const) {
      test(`the earliest counts: ${what}`, async ({ world }) => {
        const lease = await world.startHeld();
        const now = await world.now();
        const events = [
          event(1, "timer_set", { delayMs: timerMs }),
          event(2, "timer_set", { dueAt: now + 99 }),
          event(3, "step_completed"),
        ];
        await world.park(lease, { events, dueAt: now + atMs, delayMs });
        expect(await world.placeOf(lease.runId)).toMatchObject({ dueAt: now + 10 });
      });
    }

    test("a delay is rounded up to a whole ms", async ({ world }) => {
      const lease = await world.startHeld();
      const now = await world.now();
      await world.park(lease, { delayMs: 99.01 });
      expect(await world.placeOf(lease.runId)).toMatchObject({ dueAt: now + 100 });
    });

    test("a timer that was recorded before counts with its first time when it is recorded again", async ({
      world,
    }) => {
      const lease = await world.startHeld();
      const timer = event(1, "timer_set", { delayMs: 1_000 });
      const { dueAt } = await world.record(lease, [timer]);
      await world.clock.advance(400);
      const answer = await world.park(lease, { events: [timer] });
      expect(answer.dueAt).toEqual(dueAt);
      expect(await world.placeOf(lease.runId)).toMatchObject({ dueAt: dueAt.get(1) });
    });

    test("timers of earlier recordings count only if the holder says so", async ({ world }) => {
      const lease = await world.startHeld();
      await world.record(lease, [event(1, "timer_set", { delayMs: 1_000 })]);
      await world.park(lease);
      expect(await world.placeOf(lease.runId)).toMatchObject({ dueAt: null });
    });
  });

  describe("parking a run that is told", () => {
    test("a wanted message keeps the run held, and all unread messages are answered in order", async ({
      world,
    }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:other");
      await world.tell(lease.runId, "signal:wanted", { data: json(7) });
      const answer = await world.park(lease, {
        events: [event(1, "step_completed")],
        wants: ["signal:wanted"],
      });
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "lease", epoch: 1, told: false });
      const messages = await world.readInbox(lease);
      expect(messages.map(({ topic }) => topic)).toEqual(["signal:other", "signal:wanted"]);
      expect(answer).toEqual({
        outcome: "told",
        messages,
        told: false,
        dueAt: new Map(),
        now: await world.now(),
      });
      expect(await world.kinds(lease.runId)).toEqual(["step_completed"]);
    });

    test("a message that nobody wants does not keep the run from parking", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:other");
      expect(await world.park(lease, { wants: ["signal:wanted"] })).toMatchObject({
        outcome: "parked",
        messages: [],
      });
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "parked" });
    });

    test("a message that was taken before does not count", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      const [message] = await world.readInbox(lease);
      await world.record(lease, [event(1, "signal_received", { takes: message!.id })]);
      expect(await world.park(lease, { wants: ["signal:a"] })).toMatchObject({ outcome: "parked" });
    });

    test("a message that came in without a wake-up is found all the same", async ({ world }) => {
      const lease = await world.startHeld();
      const id = await world.insert(lease.runId, "signal:a");
      expect(await world.park(lease, { wants: ["signal:a"] })).toMatchObject({
        outcome: "told",
        messages: [{ id }],
      });
    });

    test("being told goes before being due", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      expect(await world.park(lease, { delayMs: 0, wants: ["signal:a"] })).toMatchObject({ outcome: "told" });
    });

    const rooms = [
      { topic: "cancel", place: { room: "ready", told: true } },
      { topic: "signal:a", place: { room: "ready", told: true } },
      { topic: "pause", place: { room: "parked", reason: "paused" } },
    ] as const;

    test.for(rooms)("a failed attempt is over, and counts: $topic", async ({ topic, place }, { world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, topic);
      const answer = await world.park(lease, {
        events: [event(1, "attempt_failed")],
        reason: "retry",
        delayMs: 10,
        wants: ["cancel", "pause", "signal:a"],
        attemptFailed: true,
      });
      expect(answer).toMatchObject({ outcome: "parked", told: false });
      expect(await world.placeOf(lease.runId)).toMatchObject({ ...place, attempt: 2, failures: 1 });
    });
  });

  test("a park that comes after its holder has gone on is refused, and changes nothing", async ({
    world,
  }) => {
    const lease = await world.startHeld();
    await world.record(lease, [event(1, "step_completed", { name: "a" })]);
    await world.record(lease, [event(2, "step_completed", { name: "b" })]);
    await world.expectUnchanged(() =>
      expect(
        world.park(lease, { events: [event(1, "step_completed", { name: "a" })], lastSeq: 1 }),
      ).rejects.toMatchObject({ code: "LEASE_LOST" }),
    );
    expect(await world.park(lease, { lastSeq: 2 })).toMatchObject({ outcome: "parked" });
  });

  test("an earlier try of a park that was told clears nothing: what came in since is told", async ({
    world,
  }) => {
    const lease = await world.startHeld();
    await world.tell(lease.runId, "signal:a");
    const parking = await world.parking(lease, { wants: ["signal:a"] });
    expect(await world.store.park(parking)).toMatchObject({ outcome: "told", told: false });
    await world.tell(lease.runId, "cancel");
    expect(await world.store.park(parking)).toMatchObject({ outcome: "told", told: true });
    expect(await world.record(lease, [])).toMatchObject({ told: true });
  });

  describe("parking a run that is due", () => {
    test("the run stays held, with its facts recorded", async ({ world }) => {
      const lease = await world.startHeld();
      const now = await world.now();
      const events = [event(1, "timer_set", { delayMs: 0 })];
      const answer = await world.park(lease, { events });
      expect(answer).toEqual({ outcome: "due", messages: [], told: false, dueAt: new Map([[1, now]]), now });
      expect(await world.kinds(lease.runId)).toEqual(["timer_set"]);
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "lease", epoch: 1 });
    });

    test("an instant that has come, or has passed, is due; one ahead is not", async ({ world }) => {
      const lease = await world.startHeld();
      const now = await world.now();
      expect(await world.park(lease, { dueAt: now - 1 })).toMatchObject({ outcome: "due" });
      expect(await world.park(lease, { dueAt: now })).toMatchObject({ outcome: "due" });
      expect(await world.park(lease, { dueAt: now + 1 })).toMatchObject({ outcome: "parked" });
    });

    test("the answer says whether there are unread messages, though none is wanted", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:other");
      expect(await world.park(lease, { delayMs: 0 })).toMatchObject({
        outcome: "due",
        told: true,
        messages: [],
      });
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "lease", told: true });
    });

    for (const [what, parking] of [
      ["a failed attempt", { reason: "retry", attemptFailed: true }],
      ["a paused run", { reason: "paused" }],
      ["a blocked run", { reason: "blocked" }],
    ] as const) {
      test(`${what} parks even if it is due, and wakes at once`, async ({ world }) => {
        const lease = await world.startHeld();
        expect(await world.park(lease, { ...parking, delayMs: 0 })).toMatchObject({ outcome: "parked" });
        expect(await world.placeOf(lease.runId)).toMatchObject({ room: "parked", dueAt: await world.now() });
        expect(await world.store.wakeDue(10)).toMatchObject({ woken: 1 });
        expect(await world.placeOf(lease.runId)).toMatchObject({ room: "ready" });
      });
    }
  });
}
