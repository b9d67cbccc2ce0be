import { describe, expect } from "vitest";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { event } from "./world.ts";

export function describeWakingDue(test: StoreTest): void {
  describe("waking runs that are due", () => {
    test("a run wakes at its instant and not before, with its numbers as they were", async ({ world }) => {
      const lease = await world.startHeld();
      const events = [event(1, "attempt_failed")];
      await world.park(lease, { events, reason: "retry", delayMs: 1_000, attemptFailed: true });
      await world.clock.advance(999);
      const now = await world.now();
      const early = await world.expectUnchanged(() => world.store.wakeDue(10));
      expect(early).toEqual({ woken: 0, nextDueAt: now + 1, now });
      await world.clock.advance(1);
      expect(await world.store.wakeDue(10)).toEqual({ woken: 1, nextDueAt: null, now: now + 1 });
      expect(await world.placeOf(lease.runId)).toEqual({
        room: "ready",
        runId: lease.runId,
        epoch: 1,
        lastSeq: 1,
        attempt: 2,
        failures: 1,
        crashes: 0,
        suspicion: 0,
        told: false,
        readyAt: now + 1,
        expiresAt: null,
      });
      expect(await world.kinds(lease.runId)).toEqual(["attempt_failed"]);
    });

    test("a run that starts later becomes claimable, not begun", async ({ world }) => {
      const runId = await world.start({ startAt: (await world.now()) + 1_000 });
      await world.clock.advance("1s");
      await world.store.wakeDue(10);
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", epoch: 0, told: false });
      expect((await world.hold(runId)).epoch).toBe(1);
    });

    test("the earliest wake first, no more than the limit, and the answer says when the next is due", async ({
      world,
    }) => {
      const now = await world.now();
      const late = await world.start({ startAt: now + 30 });
      const early = await world.start({ startAt: now + 10 });
      const middle = await world.start({ startAt: now + 20 });
      const far = await world.start({ startAt: now + 99 });
      await world.clock.advance(50);
      expect(await world.store.wakeDue(2)).toMatchObject({ woken: 2, nextDueAt: now + 30 });
      expect(await world.placeOf(early)).toMatchObject({ room: "ready" });
      expect(await world.placeOf(middle)).toMatchObject({ room: "ready" });
      expect(await world.placeOf(late)).toMatchObject({ room: "parked" });
      expect(await world.store.wakeDue(2)).toMatchObject({ woken: 1, nextDueAt: now + 99 });
      expect(await world.placeOf(far)).toMatchObject({ room: "parked" });
    });

    test("a run that wakes with unread messages is told", async ({ world }) => {
      const runId = await world.startParked({ delayMs: 10, wants: [] });
      await world.tell(runId, "signal:a");
      await world.clock.advance(10);
      await world.store.wakeDue(10);
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", told: true });
    });

    test("many at the same moment wake a run once", async ({ world }) => {
      await world.startParked({ delayMs: 10 });
      await world.clock.advance(10);
      const answers = await Promise.all([1, 2, 3, 4].map(() => world.store.wakeDue(10)));
      expect(answers.reduce((sum, { woken }) => sum + woken, 0)).toBe(1);
    });

    test("listeners hear of the queues of the runs that woke", async ({ world }) => {
      await world.startParked({ delayMs: 10 }, { queue: "here" });
      await world.clock.advance(10);
      expect(await hintsOf(world, () => world.store.wakeDue(10))).toEqual([{ kind: "ready", queue: "here" }]);
      expect(await hintsOf(world, () => world.store.wakeDue(10))).toEqual([]);
    });
  });
}
