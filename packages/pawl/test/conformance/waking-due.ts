import { describe, expect } from "vitest";
import { server } from "../../src/memory/fence.ts";
import type { NewEvent, Waker } from "../../src/store/lease.ts";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { anyLane, event, json, leaseMs, leaseOf, type World } from "./world.ts";

async function holderIn(world: World, crashLimit = 3): Promise<Waker & { readonly workerId: string }> {
  return { workerId: await world.worker(), leaseMs, lanes: [{ ...anyLane, crashLimit }] };
}

const timer = { fires: "sleep:sleep#1" };

export function describeWakingDue(test: StoreTest): void {
  describeWakingHeld(test);
  describe("waking runs that are due", () => {
    test("a run wakes at its instant and not before, with its numbers as they were", async ({ world }) => {
      const lease = await world.startHeld();
      const events = [event(1, "attempt_failed")];
      await world.park(lease, { events, reason: "retry", delayMs: 1_000, attemptFailed: true });
      await world.clock.advance(999);
      const now = await world.now();
      const early = await world.expectUnchanged(() => world.store.wakeDue(10));
      expect(early).toEqual({
        woken: 0,
        held: [],
        hasMore: false,
        isRenewed: false,
        nextDueAt: now + 1,
        now,
      });
      await world.clock.advance(1);
      expect(await world.store.wakeDue(10)).toEqual({
        woken: 1,
        held: [],
        hasMore: false,
        isRenewed: false,
        nextDueAt: null,
        now: now + 1,
      });
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

/** Runs that whoever wakes them holds at once. */
function describeWakingHeld(test: StoreTest): void {
  describe("waking runs for a worker that would hold them", () => {
    test("a run is held as if it had been claimed", async ({ world }) => {
      const createdAt = await world.now();
      const deadlineAt = createdAt + 9_999;
      const lease = await world.startHeld({ input: json({ a: 1 }), tags: ["red"], priority: 4, deadlineAt });
      const events = [event(1, "attempt_failed")];
      await world.park(lease, { events, reason: "retry", delayMs: 1_000, attemptFailed: true });
      await world.clock.advance(1_500);
      const holder = await holderIn(world);
      const now = await world.now();
      const { runId } = lease;
      expect(await world.store.wakeDue(10, holder)).toEqual({
        woken: 1,
        held: [
          {
            runId,
            epoch: 2,
            workflow: "checkout",
            version: 1,
            queue: "default",
            key: null,
            parentId: null,
            rootId: runId,
            depth: 0,
            input: json({ a: 1 }),
            isInputLeftOut: false,
            isRaw: false,
            tags: ["red"],
            retry: null,
            lastSeq: 1,
            attempt: 2,
            failures: 1,
            suspicion: 0,
            told: false,
            createdAt,
            deadlineAt,
            claimedAt: now,
            mark: { priority: 4, readyAt: createdAt + 1_000, runId },
            server,
            history: await world.store.loadHistory(runId, 0),
          },
        ],
        hasMore: false,
        isRenewed: true,
        nextDueAt: null,
        now,
      });
      expect(await world.placeOf(runId)).toMatchObject({
        room: "lease",
        workerId: holder.workerId,
        epoch: 2,
        claimedAt: now,
        begunAt: now,
        crashLimit: 3,
        told: false,
      });
    });

    test("a history comes along where its facts are few and small", async ({ world }) => {
      const facts = (count: number, bytes: number): readonly NewEvent[] =>
        Array.from({ length: count }, (_, index) =>
          event(index + 1, "step_completed", {
            name: `step#${index}`,
            data: { json: JSON.stringify("é".repeat(bytes / 2 - 1)), notes: null },
          }),
        );
      const noted = { json: "1", notes: JSON.stringify("n".repeat(499)) };
      const histories = [
        facts(1, 10),
        facts(8, 500),
        facts(9, 10),
        [...facts(3, 10), ...facts(4, 502).slice(3)],
        facts(2, 200_000),
        [event(1, "step_completed", { name: "noted", data: noted })],
        [event(1, "signal_received", { name: "nothing" })],
      ];
      const leases = [];
      for (const events of histories) {
        const lease = await world.startHeld();
        await world.park(lease, { events, dueAt: (await world.now()) + 1_000 });
        leases.push(lease);
      }
      await world.clock.advance(1_500);
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      const isAlong = [true, true, false, false, false, false, true];
      for (const [index, { runId }] of leases.entries()) {
        const run = held.find((each) => each.runId === runId);
        const loaded = await world.store.loadHistory(runId, 0);
        expect(run?.lastSeq).toBe(loaded.length);
        expect(run?.history).toEqual(isAlong[index] === true ? loaded : undefined);
      }
    });

    test("a history stays where it is for a worker that wants none", async ({ world }) => {
      const lease = await world.startHeld();
      const events = [event(1, "timer_set", { name: "later", delayMs: 20 })];
      await world.park(lease, { events });
      await world.clock.advance(1_000);
      const { held } = await world.store.wakeDue(10, { ...(await holderIn(world)), histories: false });
      expect(held).toHaveLength(1);
      expect(held[0]).not.toHaveProperty("history");
    });

    test("a timer that is all it waits for has fired by that", async ({ world }) => {
      const runId = await world.startParked({
        events: [event(1, "timer_set", { name: "sleep:sleep#1", delayMs: 10 })],
      });
      await world.clock.advance(15);
      const now = await world.now();
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      const history = await world.history(runId);
      expect(history[1]).toMatchObject({ seq: 2, kind: "timer_fired", name: "sleep:sleep#1", at: now });
      expect(held).toMatchObject([{ runId, lastSeq: 2, fired: history[1], history }]);
      expect(await world.placeOf(runId)).toMatchObject({ room: "lease", lastSeq: 2 });
    });

    test("of several timers the earliest fires, and what its holder says comes before those just set", async ({
      world,
    }) => {
      const events = [
        event(1, "timer_set", { name: "later", delayMs: 20 }),
        event(2, "timer_set", { name: "as soon", delayMs: 10 }),
      ];
      const dueAt = (await world.now()) + 10;
      const known = await world.startParked({ events, dueAt, fires: "known" });
      const unknown = await world.startParked({ events });
      await world.clock.advance(30);
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      expect(held.find(({ runId }) => runId === known)?.fired?.name).toBe("known");
      expect(held.find(({ runId }) => runId === unknown)?.fired?.name).toBe("as soon");
    });

    test("nothing fires where the holder has something else to do then", async ({ world }) => {
      const events = [event(1, "timer_set", { name: "later", delayMs: 20 })];
      const dueAt = (await world.now()) + 10;
      await world.startParked({ events, dueAt });
      await world.clock.advance(30);
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      expect(held).toMatchObject([{ lastSeq: 1 }]);
      expect(held[0]).not.toHaveProperty("fired");
    });

    test("nothing fires where the holder has kept that to itself", async ({ world }) => {
      const events = [event(1, "timer_set", { name: "later", delayMs: 20 })];
      await world.startParked({ events, fires: null });
      await world.clock.advance(30);
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      expect(held).toMatchObject([{ lastSeq: 1 }]);
    });

    test("nothing fires for a run that is told something, and it is held", async ({ world }) => {
      const runId = await world.startParked({ delayMs: null, dueAt: (await world.now()) + 10, ...timer });
      await world.tell(runId, "signal:a");
      await world.clock.advance(10);
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      expect(held).toMatchObject([{ runId, told: true, lastSeq: 0 }]);
      expect(await world.kinds(runId)).toEqual([]);
    });

    test("nothing fires once the run's deadline has passed, and it is held", async ({ world }) => {
      const now = await world.now();
      const runId = await world.startParked({ dueAt: now + 10, ...timer }, { deadlineAt: now + 20 });
      await world.clock.advance(20);
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      expect(held).toMatchObject([{ runId, lastSeq: 0 }]);
      expect(await world.kinds(runId)).toEqual([]);
    });

    test("nothing fires for a run that was paused meanwhile", async ({ world }) => {
      const now = await world.now();
      const runId = await world.startParked(
        { dueAt: now + 10, wants: ["pause"], ...timer },
        { deadlineAt: now + 20 },
      );
      await world.tell(runId, "pause");
      await world.clock.advance(20);
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      expect(held).toMatchObject([{ runId, told: true }]);
      expect(await world.kinds(runId)).toEqual(["paused"]);
    });

    test("a run whose priority was changed keeps its timer", async ({ world }) => {
      const runId = await world.startParked({ dueAt: (await world.now()) + 10, ...timer });
      expect(await world.store.reschedule({ runId, priority: 3, startAt: undefined })).toBe("rescheduled");
      await world.clock.advance(10);
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      expect(held).toMatchObject([{ runId, lastSeq: 2, mark: { priority: 3 } }]);
      expect(await world.kinds(runId)).toEqual(["rescheduled", "timer_fired"]);
    });

    test("a run that starts later is held at its time, and begins", async ({ world }) => {
      const runId = await world.start({ startAt: (await world.now()) + 1_000 });
      await world.clock.advance(1_000);
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      expect(held).toMatchObject([{ runId, epoch: 1, lastSeq: 0 }]);
    });

    test("what it could not claim becomes claimable", async ({ world }) => {
      const now = await world.now();
      const startAt = now + 10;
      const others = [
        await world.start({ startAt, queue: "other" }),
        await world.start({ startAt, workflow: "other" }),
        await world.start({ startAt, version: 2 }),
        await world.start({ startAt: now + 20, expiresAt: now + 15 }),
      ];
      const own = await world.start({ startAt });
      await world.clock.advance(20);
      const { woken, held } = await world.store.wakeDue(10, await holderIn(world));
      expect({ woken, held }).toMatchObject({ woken: 5, held: [{ runId: own }] });
      for (const runId of others) expect(await world.placeOf(runId)).toMatchObject({ room: "ready" });
    });

    test("what is of none of its lanes is left to others for a while", async ({ world }) => {
      const now = await world.now();
      const other = await world.start({ startAt: now + 10, queue: "other" });
      await world.start({ startAt: now + 5_000 });
      const own = await world.start({ startAt: now + 20 });
      await world.clock.advance(30);
      const waker = { ...(await holderIn(world)), sparesMs: 1_000 };
      const first = await world.store.wakeDue(10, waker);
      expect(first).toMatchObject({
        woken: 1,
        held: [{ runId: own }],
        hasMore: false,
        nextDueAt: now + 1_010,
      });
      await world.clock.advance(979);
      expect(await world.expectUnchanged(() => world.store.wakeDue(10, waker))).toMatchObject({ woken: 0 });
      await world.clock.advance(1);
      const last = await world.store.wakeDue(10, waker);
      expect(last).toMatchObject({ woken: 1, held: [], hasMore: false, nextDueAt: now + 5_000 });
      expect(await world.placeOf(other)).toMatchObject({ room: "ready" });
    });

    test("who holds nothing spares what is of none of its lanes, too", async ({ world }) => {
      const now = await world.now();
      const other = await world.start({ startAt: now + 10, queue: "other" });
      const own = await world.start({ startAt: now + 10 });
      await world.clock.advance(10);
      const waker = { ...(await holderIn(world)), workerId: null, sparesMs: 1_000 };
      expect(await world.store.wakeDue(10, waker)).toMatchObject({ woken: 1, held: [] });
      expect(await world.placeOf(own)).toMatchObject({ room: "ready" });
      expect(await world.placeOf(other)).toMatchObject({ room: "parked" });
    });

    test("it looks at no more than it is to, spared or not, and says that there may be more", async ({
      world,
    }) => {
      const now = await world.now();
      for (const at of [10, 11]) await world.start({ startAt: now + at, queue: "other" });
      const own = await world.start({ startAt: now + 12 });
      await world.clock.advance(20);
      const waker = { ...(await holderIn(world)), sparesMs: 1_000 };
      expect(await world.store.wakeDue(2, waker)).toMatchObject({
        woken: 0,
        hasMore: true,
        isRenewed: false,
        nextDueAt: now + 10,
      });
      expect(await world.store.wakeDue(3, waker)).toMatchObject({
        woken: 1,
        held: [{ runId: own }],
        hasMore: true,
        isRenewed: true,
      });
    });

    test("it holds no more than it is to, and looks further than that where it spares others", async ({
      world,
    }) => {
      const now = await world.now();
      for (const at of [10, 11]) await world.start({ startAt: now + at, queue: "other" });
      const own = await world.start({ startAt: now + 12 });
      const more = await world.start({ startAt: now + 13 });
      await world.clock.advance(20);
      const waker = { ...(await holderIn(world)), most: 1, sparesMs: 1_000 };
      const first = await world.store.wakeDue(10, waker);
      expect(first).toMatchObject({ woken: 1, held: [{ runId: own }], hasMore: true, nextDueAt: now + 10 });
      expect(await world.placeOf(more)).toMatchObject({ room: "parked" });
      const second = await world.store.wakeDue(10, waker);
      expect(second).toMatchObject({ held: [{ runId: more }], hasMore: false, nextDueAt: now + 1_010 });
    });

    test("what is left to others leaves a worker's lease as it was", async ({ world }) => {
      await world.start({ startAt: (await world.now()) + 10, queue: "other" });
      await world.clock.advance(5_000);
      const waker = { ...(await holderIn(world)), leaseMs: 60_000, sparesMs: 10_000 };
      const answer = await world.expectUnchanged(() => world.store.wakeDue(10, waker));
      expect(answer).toMatchObject({ woken: 0, isRenewed: false });
    });

    test.for(["a paused queue", "a crash limit of 0", "a worker that has ended", "a worker nobody knows"])(
      "nothing is held with %s",
      async (why, { world }) => {
        const runId = await world.startParked({ dueAt: (await world.now()) + 10, ...timer });
        await world.clock.advance(10);
        const holder = await holderIn(world, why === "a crash limit of 0" ? 0 : 3);
        if (why === "a paused queue") await world.setQueuePaused("default", true);
        if (why === "a worker that has ended") await world.store.retireWorker(holder.workerId);
        const unknown = { ...holder, workerId: world.nextId() };
        const answer = await world.store.wakeDue(10, why === "a worker nobody knows" ? unknown : holder);
        expect(answer).toMatchObject({ woken: 1, held: [] });
        expect(await world.placeOf(runId)).toMatchObject({ room: "ready", epoch: 1, lastSeq: 0 });
        expect(await world.kinds(runId)).toEqual([]);
      },
    );

    test("those of higher priority come first, then those that were due first", async ({ world }) => {
      const now = await world.now();
      const late = await world.start({ startAt: now + 20 });
      const early = await world.start({ startAt: now + 10 });
      const urgent = await world.start({ startAt: now + 30, priority: -1 });
      await world.clock.advance(30);
      const { held } = await world.store.wakeDue(10, await holderIn(world));
      expect(held.map(({ runId }) => runId)).toEqual([urgent, early, late]);
    });

    test("the lease is fenced, given back and recovered as any other", async ({ world }) => {
      const runId = await world.startParked({ dueAt: (await world.now()) + 10, ...timer });
      await world.clock.advance(10);
      const holder = await holderIn(world);
      const { held } = await world.store.wakeDue(10, holder);
      const lease = leaseOf(holder.workerId, held[0]!);
      await expect(world.record({ ...lease, epoch: 1 }, [event(2, "patched")])).rejects.toMatchObject({
        code: "LEASE_LOST",
      });
      const beat = { workerId: holder.workerId, held: [], claimsKnownTo: await world.now() };
      expect(await world.store.heartbeat(beat)).toMatchObject({ returned: 1 });
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", epoch: 2, lastSeq: 1 });
      const again = await world.hold(runId);
      expect(again.epoch).toBe(3);
      expect(await world.crash()).toMatchObject({ recovered: 1 });
      expect(await world.kinds(runId)).toEqual(["timer_fired", "attempt_crashed"]);
    });

    test("a repeated call wakes nothing again, and the answer that was lost is given back", async ({
      world,
    }) => {
      await world.startParked({ dueAt: (await world.now()) + 10, ...timer });
      await world.clock.advance(10);
      const holder = await holderIn(world);
      await world.store.wakeDue(10, holder);
      const again = await world.expectUnchanged(() => world.store.wakeDue(10, holder));
      expect(again).toMatchObject({ woken: 0, held: [] });
    });

    test("many at the same moment hold a run once", async ({ world }) => {
      const runId = await world.startParked({ dueAt: (await world.now()) + 10, ...timer });
      await world.clock.advance(10);
      const holders = await Promise.all([1, 2, 3, 4].map(() => holderIn(world)));
      const answers = await Promise.all(holders.map((holder) => world.store.wakeDue(10, holder)));
      expect(answers.flatMap(({ held }) => held)).toMatchObject([{ runId, epoch: 2 }]);
      expect(await world.kinds(runId)).toEqual(["timer_fired"]);
    });
  });
}
