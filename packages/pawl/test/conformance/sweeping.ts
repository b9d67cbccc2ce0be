import { describe, expect } from "vitest";
import type { Lease } from "../../src/store/lease.ts";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { event, json, leaseMs, leaseOf, type World } from "./world.ts";

const nothing = {
  expiredWorkers: 0,
  recovered: 0,
  failed: 0,
  expiredRuns: 0,
  rescued: 0,
  after: null,
  more: false,
};

/** One worker that holds this many begun runs. */
async function holdTogether(world: World, count: number, crashLimit = 3): Promise<readonly Lease[]> {
  const workerId = await world.worker();
  const leases: Lease[] = [];
  for (let n = 0; n < count; n += 1)
    leases.push(await world.hold(await world.start(), { workerId, crashLimit }));
  return leases;
}

export function describeSweeping(test: StoreTest): void {
  describe("sweeping", () => {
    test("finds nothing to do where all is well", async ({ world }) => {
      await world.startHeld();
      await world.start();
      await world.startParked({ wants: ["signal:a"] }, { queue: "parked" });
      await world.clock.advance(leaseMs - 1);
      expect(await world.expectUnchanged(() => world.sweep())).toEqual(nothing);
    });

    test("ends workers that were not heard for their whole lease", async ({ world }) => {
      const dead = await world.worker();
      await world.clock.advance(1);
      const alive = await world.worker();
      await world.clock.advance(leaseMs - 1);
      expect(await world.sweep()).toEqual({ ...nothing, expiredWorkers: 1 });
      const { workers } = await world.snapshot();
      expect(workers).toMatchObject([
        { id: dead, endedAt: await world.now(), heldAtEnd: 0 },
        { id: alive, endedAt: null, heldAtEnd: null },
      ]);
    });

    test("a second sweep finds nothing more", async ({ world }) => {
      await holdTogether(world, 2);
      await world.start({ expiresAt: await world.now() });
      await world.crash();
      await world.clock.advance("1s");
      expect(await world.expectUnchanged(() => world.sweep())).toEqual(nothing);
    });

    test("many sweeps at the same moment do the work once", async ({ world }) => {
      const leases = await holdTogether(world, 4);
      await world.clock.advance(leaseMs);
      const answers = await Promise.all([1, 2, 3, 4].map(() => world.sweep()));
      expect(answers.reduce((sum, { expiredWorkers }) => sum + expiredWorkers, 0)).toBe(1);
      expect(answers.reduce((sum, { recovered }) => sum + recovered, 0)).toBe(4);
      for (const { runId } of leases) expect(await world.kinds(runId)).toEqual(["attempt_crashed"]);
    });
  });

  describe("the runs of a dead worker", () => {
    test("that had not begun are claimable again, as if nothing had been", async ({ world }) => {
      const runId = await world.start();
      await world.hold(runId, { begin: false, crashLimit: 0 });
      expect(await world.crash()).toEqual({ ...nothing, expiredWorkers: 1, recovered: 1 });
      expect(await world.placeOf(runId)).toEqual({
        room: "ready",
        runId,
        epoch: 1,
        lastSeq: 0,
        attempt: 1,
        failures: 0,
        crashes: 0,
        suspicion: 0,
        told: true,
        readyAt: await world.now(),
        expiresAt: null,
      });
      expect(await world.kinds(runId)).toEqual([]);
    });

    test("that had begun together are tried again, with one more attempt and a little suspicion", async ({
      world,
    }) => {
      const [one, two] = await holdTogether(world, 2);
      const beganAt = await world.now();
      await world.record(one!, [event(1, "step_completed"), event(2, "step_completed")]);
      expect(await world.crash()).toEqual({ ...nothing, expiredWorkers: 1, recovered: 2 });
      const now = await world.now();
      expect(await world.placeOf(one!.runId)).toEqual({
        room: "ready",
        runId: one!.runId,
        epoch: 1,
        lastSeq: 3,
        attempt: 2,
        failures: 0,
        crashes: 0,
        suspicion: 1,
        told: true,
        readyAt: now,
        expiresAt: null,
      });
      const crashed = { kind: "attempt_crashed", name: null, attempt: 1, at: now, beganAt, dueAt: null };
      const [event1] = await world.history(two!.runId);
      expect((await world.history(one!.runId)).at(-1)).toMatchObject({ ...crashed, seq: 3 });
      expect(event1).toMatchObject({ ...crashed, seq: 1, data: { notes: null } });
      expect(JSON.parse(event1!.data!.json)).toEqual({ workerId: two!.workerId, alone: false });
      expect((await world.snapshot()).workers).toMatchObject([{ heldAtEnd: 2 }]);
    });

    test("that had begun alone are counted as crashed, and are suspects from then on", async ({ world }) => {
      const [lease] = await holdTogether(world, 1);
      await world.crash();
      expect(await world.placeOf(lease!.runId)).toMatchObject({
        room: "ready",
        attempt: 2,
        failures: 0,
        crashes: 1,
        suspicion: 2,
        told: true,
      });
      const [crashed] = await world.history(lease!.runId);
      expect(JSON.parse(crashed!.data!.json)).toEqual({ workerId: lease!.workerId, alone: true });
    });

    test("are alone when the others had not begun", async ({ world }) => {
      const workerId = await world.worker();
      const unbegun = [await world.start(), await world.start()];
      await world.claim(workerId, { begin: false });
      const begun = await world.hold(await world.start(), { workerId });
      await world.crash();
      expect(await world.placeOf(begun.runId)).toMatchObject({ crashes: 1, suspicion: 2 });
      for (const runId of unbegun) {
        expect(await world.placeOf(runId)).toMatchObject({
          room: "ready",
          attempt: 1,
          crashes: 0,
          suspicion: 0,
        });
      }
      const { workers } = await world.snapshot();
      expect(workers).toMatchObject([{ heldAtEnd: 1 }]);
    });

    test("that crash together twice are suspects, though they never crashed alone", async ({ world }) => {
      const runIds = (await holdTogether(world, 2)).map(({ runId }) => runId);
      await world.crash();
      const { runs } = await world.claim(await world.worker());
      expect(runs).toHaveLength(2);
      await world.crash();
      for (const runId of runIds) {
        expect(await world.placeOf(runId)).toMatchObject({ attempt: 3, crashes: 0, suspicion: 2 });
      }
      expect(await world.claim(await world.worker())).toMatchObject({ runs: [], suspectsWaiting: true });
    });

    test("gain suspicion with every crash, and whoever claims them is told of it", async ({ world }) => {
      const [lease] = await holdTogether(world, 1);
      const runId = lease!.runId;
      await world.crash();
      const workerId = await world.worker();
      await world.hold(await world.start(), { workerId });
      await world.hold(runId, { workerId, suspects: true });
      await world.crash();
      expect(await world.placeOf(runId)).toMatchObject({ crashes: 1, suspicion: 3 });
      await world.hold(runId, { suspects: true });
      await world.crash();
      expect(await world.placeOf(runId)).toMatchObject({ crashes: 2, suspicion: 4, attempt: 4 });
      const { runs } = await world.claim(await world.worker(), { suspects: true });
      expect(runs).toMatchObject([{ runId, suspicion: 4 }]);
    });

    test("are those of several workers, each judged by what its own worker held", async ({ world }) => {
      const together = await holdTogether(world, 2);
      const [alone] = await holdTogether(world, 1);
      expect(await world.crash()).toEqual({ ...nothing, expiredWorkers: 2, recovered: 3 });
      expect(await world.placeOf(alone!.runId)).toMatchObject({ crashes: 1 });
      for (const { runId } of together)
        expect(await world.placeOf(runId)).toMatchObject({ crashes: 0, suspicion: 1 });
    });

    test("are taken in order of their ids, no more than the limit, and the next sweep goes on", async ({
      world,
    }) => {
      const leases = await holdTogether(world, 3);
      await world.clock.advance(leaseMs);
      expect(await world.sweep({ limit: 2 })).toEqual({
        ...nothing,
        expiredWorkers: 1,
        recovered: 2,
        more: true,
      });
      const rooms = async (): Promise<readonly string[]> =>
        Promise.all(leases.map(async ({ runId }) => (await world.placeOf(runId)).room));
      expect(await rooms()).toEqual(["ready", "ready", "lease"]);
      expect(await world.sweep({ limit: 2 })).toEqual({ ...nothing, recovered: 1 });
      expect(await rooms()).toEqual(["ready", "ready", "ready"]);
      // What counts is how many it held when it was found dead, not how many are left.
      expect(await world.placeOf(leases[2]!.runId)).toMatchObject({ crashes: 0, suspicion: 1 });
    });

    test("are heard of by listeners", async ({ world }) => {
      await world.startHeld({ queue: "here" });
      const hints = await hintsOf(world, () => world.crash());
      expect(hints).toEqual([{ kind: "ready", queue: "here" }]);
    });

    test("keep what they were told", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      await world.crash();
      const again = await world.hold(lease.runId, { suspects: true });
      expect(await world.readInbox(again)).toMatchObject([{ topic: "signal:a" }]);
    });

    test("of which it parked or ended some are only those it still held", async ({ world }) => {
      const [held, parked, ended] = await holdTogether(world, 3);
      await world.park(parked!, { wants: ["signal:a"] });
      await world.end(ended!);
      expect(await world.crash()).toMatchObject({ recovered: 1 });
      expect(await world.placeOf(held!.runId)).toMatchObject({ crashes: 1 });
      expect(await world.placeOf(parked!.runId)).toMatchObject({ room: "parked", attempt: 1 });
    });
  });

  describe("the crash limit", () => {
    test("fails a run that crashed alone that often", async ({ world }) => {
      const parentId = await world.startParked({ wants: ["child"] }, { queue: "parents" });
      const runId = await world.startChild(parentId);
      await world.hold(runId, { crashLimit: 2 });
      expect(await world.crash()).toMatchObject({ recovered: 1, failed: 0 });
      await world.hold(runId, { crashLimit: 2, suspects: true });
      await world.clock.advance(leaseMs);
      const hints = await hintsOf(world, async () => {
        expect(await world.sweep()).toEqual({ ...nothing, expiredWorkers: 1, failed: 1 });
      });

      const run = await world.store.getRun(runId);
      expect(run).toMatchObject({ status: "failed", output: null, endedAt: await world.now() });
      expect(JSON.parse(run!.error!.json)).toEqual({
        name: "PawlError",
        code: "WORKER_CRASHED",
        message: expect.any(String),
      });
      expect(await world.kinds(runId)).toEqual(["attempt_crashed", "attempt_crashed", "failed"]);
      expect((await world.history(runId)).at(-1)).toMatchObject({ seq: 3, name: null, data: run!.error });
      expect(await world.placeOf(parentId)).toMatchObject({ room: "ready", told: true });
      expect(await world.inbox(parentId)).toMatchObject([
        {
          id: runId,
          topic: "child",
          data: { value: { status: "failed", error: { code: "WORKER_CRASHED" } } },
        },
      ]);
      expect(new Set(hints)).toEqual(
        new Set([
          { kind: "ended", runId },
          { kind: "ready", queue: "parents" },
        ]),
      );
    });

    test("is not spent by crashes together with others", async ({ world }) => {
      const runIds = (await holdTogether(world, 2, 1)).map(({ runId }) => runId);
      expect(await world.crash()).toMatchObject({ recovered: 2, failed: 0 });
      for (const runId of runIds) expect(await world.placeOf(runId)).toMatchObject({ room: "ready" });
    });

    test("of 0 fails a run at its first crash, alone or not", async ({ world }) => {
      const leases = await holdTogether(world, 2, 0);
      for (const lease of leases) await world.store.begin(lease);
      expect(await world.crash()).toMatchObject({ recovered: 0, failed: 2 });
      for (const { runId } of leases) {
        expect(await world.store.getRun(runId)).toMatchObject({ status: "failed" });
        expect(await world.kinds(runId)).toEqual(["attempt_crashed", "failed"]);
      }
    });

    test("starts anew once the run has parked", async ({ world }) => {
      const { runId } = await world.startHeld();
      await world.crash();
      await world.park(await world.hold(runId, { suspects: true, crashLimit: 2 }), { wants: ["signal:a"] });
      await world.tell(runId, "signal:a");
      await world.hold(runId, { crashLimit: 2 });
      expect(await world.crash()).toMatchObject({ recovered: 1, failed: 0 });
    });

    test("asks the children of a run that it fails to stop, unless they are detached", async ({ world }) => {
      const runId = await world.start({ queue: "parents" });
      await world.store.begin(await world.hold(runId, { crashLimit: 0 }));
      const childId = await world.startChild(runId);
      const detachedId = await world.startChild(runId, { isDetached: true });
      const heldId = await world.startChild(runId, { queue: "held" });
      await world.hold(heldId);
      expect(await world.crash()).toMatchObject({ failed: 1, rescued: 0 });
      expect(await world.store.getRun(childId)).toMatchObject({ status: "cancelled" });
      expect(await world.placeOf(detachedId)).toMatchObject({ room: "ready", told: false });
      expect(await world.inbox(heldId)).toMatchObject([{ topic: "cancel", takenSeq: null }]);
      expect(await world.placeOf(heldId)).toMatchObject({ told: true });
    });
  });

  describe("expiry", () => {
    test("a run that nobody began in time ends as expired", async ({ world }) => {
      const parentId = await world.startParked({ wants: ["child"] }, { queue: "parents" });
      const runId = await world.startChild(parentId, {
        expiresAt: (await world.now()) + 1_000,
        input: json(1),
      });
      await world.clock.advance(999);
      expect(await world.expectUnchanged(() => world.sweep())).toEqual(nothing);
      await world.clock.advance(1);
      const at = await world.now();
      expect(await world.sweep()).toEqual({ ...nothing, expiredRuns: 1 });
      expect(await world.store.getRun(runId)).toMatchObject({
        status: "expired",
        output: null,
        error: null,
        endedAt: at,
      });
      const empty = { name: null, attempt: null, beganAt: null, dueAt: null, workerId: null, data: null };
      expect(await world.history(runId)).toEqual([{ seq: 1, kind: "expired", at, ...empty }]);
      expect(await world.placeOf(parentId)).toMatchObject({ room: "ready", told: true });
      expect(await world.inbox(parentId)).toMatchObject([
        { id: runId, data: { value: { status: "expired" } } },
      ]);
    });

    test("a run that was held before does not expire", async ({ world }) => {
      const lease = await world.startHeld({ expiresAt: (await world.now()) + 1_000 });
      await world.clock.advance("2s");
      expect(await world.sweep()).toEqual(nothing);
      await world.release(lease);
      expect(await world.sweep()).toEqual(nothing);
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "ready" });
    });

    test("a run that is given back before its code was called keeps its place, and expires", async ({
      world,
    }) => {
      const readyAt = await world.now();
      const early = await world.startHeld({ expiresAt: readyAt + 2_000 });
      await world.clock.advance("1s");
      await world.start();
      await world.release(early, readyAt);
      expect(await world.placeOf(early.runId)).toMatchObject({ room: "ready", epoch: 1, readyAt });
      expect(await world.sweep()).toEqual(nothing);
      await world.clock.advance("2s");
      expect(await world.sweep()).toMatchObject({ expiredRuns: 1 });
      expect(await world.history(early.runId)).toMatchObject([{ seq: 1, kind: "expired" }]);
    });

    test("under a later lease it keeps its place, and does not expire: its code may have been called before", async ({
      world,
    }) => {
      const readyAt = await world.now();
      const first = await world.startHeld({ expiresAt: readyAt + 2_000 });
      await world.release(first);
      const second = await world.hold(first.runId);
      await world.release(second, readyAt);
      await world.clock.advance("3s");
      expect(await world.sweep()).toEqual(nothing);
      expect(await world.placeOf(first.runId)).toMatchObject({ room: "ready", epoch: 2, readyAt });
    });

    test("a run that is delayed or paused does not expire while it is", async ({ world }) => {
      const now = await world.now();
      const delayed = await world.start({ startAt: now + 5_000, expiresAt: now + 1_000 });
      const paused = await world.start({ expiresAt: now + 1_000 });
      await world.tell(paused, "pause");
      await world.clock.advance("2s");
      expect(await world.sweep()).toEqual(nothing);
      await world.tell(paused, "resume");
      expect(await world.sweep()).toMatchObject({ expiredRuns: 1 });
      expect(await world.kinds(paused)).toEqual(["paused", "resumed", "expired"]);
      await world.clock.advance("5s");
      await world.store.wakeDue(10);
      expect(await world.sweep()).toMatchObject({ expiredRuns: 1 });
      expect(await world.store.getRun(delayed)).toMatchObject({ status: "expired" });
    });

    test("no more than the limit expire at a time, the earliest first", async ({ world }) => {
      const now = await world.now();
      const late = await world.start({ expiresAt: now + 3 });
      const early = await world.start({ expiresAt: now + 1 });
      const middle = await world.start({ expiresAt: now + 2 });
      await world.clock.advance(10);
      expect(await world.sweep({ limit: 2 })).toEqual({ ...nothing, expiredRuns: 2, more: true });
      expect(await world.store.getEnds([early, middle, late])).toMatchObject(
        new Map([
          [early, { status: "expired" }],
          [middle, { status: "expired" }],
          [late, null],
        ]),
      );
      expect(await world.sweep({ limit: 2 })).toEqual({ ...nothing, expiredRuns: 1 });
    });

    test("listeners hear that an expired run has ended", async ({ world }) => {
      const runId = await world.start({ expiresAt: await world.now() });
      expect(await hintsOf(world, () => world.sweep())).toEqual([{ kind: "ended", runId }]);
    });
  });

  describe("overlooked messages", () => {
    test("a parked run whose wanted message is there is woken", async ({ world }) => {
      const wanting = await world.startParked({ wants: ["signal:a"] });
      const deaf = await world.startParked({ wants: ["signal:b"] });
      await world.insert(wanting, "signal:a");
      await world.insert(deaf, "signal:a");
      expect(await world.sweep()).toEqual({ ...nothing, rescued: 1 });
      expect(await world.placeOf(wanting)).toMatchObject({
        room: "ready",
        told: true,
        readyAt: await world.now(),
        expiresAt: null,
      });
      expect(await world.placeOf(deaf)).toMatchObject({ room: "parked" });
      expect(await world.expectUnchanged(() => world.sweep())).toEqual(nothing);
    });

    test("a run that waits for its start and was cancelled ends", async ({ world }) => {
      const runId = await world.start({ startAt: (await world.now()) + 1_000 });
      await world.insert(runId, "cancel");
      expect(await world.sweep()).toEqual({ ...nothing, rescued: 1 });
      expect(await world.store.getRun(runId)).toMatchObject({ status: "cancelled" });
    });

    test("a held run hears of a cancel that nobody has passed on, but not of a signal", async ({ world }) => {
      const cancelled = await world.startHeld();
      const signalled = await world.startHeld();
      await world.insert(cancelled.runId, "cancel");
      await world.insert(signalled.runId, "signal:a");
      expect(await world.sweep()).toEqual(nothing);
      expect(await world.placeOf(cancelled.runId)).toMatchObject({ room: "lease", told: true });
      expect(await world.placeOf(signalled.runId)).toMatchObject({ room: "lease", told: false });
    });

    test("a run that has not begun ends when a cancel that nobody has passed on is found", async ({
      world,
    }) => {
      const runId = await world.start();
      await world.insert(runId, "cancel");
      expect(await world.sweep()).toEqual(nothing);
      expect(await world.store.getRun(runId)).toMatchObject({ status: "cancelled" });
    });

    test("a message that was taken wakes nobody", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      const [message] = await world.readInbox(lease);
      const events = [event(1, "signal_received", { takes: message!.id })];
      await world.park(lease, { events, wants: ["signal:a"] });
      expect(await world.expectUnchanged(() => world.sweep())).toEqual(nothing);
    });

    test("a thousand unread messages are looked at in one sweep, and the next goes on behind them", async ({
      world,
    }) => {
      const [first, second, third] = [
        await world.startParked({ wants: ["signal:b"] }, { queue: "first" }),
        await world.startParked({ wants: ["signal:a"] }, { queue: "second" }),
        await world.startParked({ wants: ["signal:a"] }, { queue: "third" }),
      ];
      await Promise.all(Array.from({ length: 999 }, () => world.insert(first, "signal:a")));
      await world.insert(second, "signal:a");
      await world.insert(third, "signal:a");
      expect(await world.sweep()).toEqual({ ...nothing, rescued: 1, after: second });
      expect(await world.placeOf(second)).toMatchObject({ room: "ready" });
      expect(await world.placeOf(third)).toMatchObject({ room: "parked" });
      expect(await world.sweep({ after: second })).toEqual({ ...nothing, rescued: 1, after: null });
      expect(await world.placeOf(third)).toMatchObject({ room: "ready" });
    });
  });

  describe("a suspect's way back", () => {
    test("a run that killed its neighbours' worker fails alone, and the neighbours end well", async ({
      world,
    }) => {
      const poison = await world.start();
      const neighbours = [await world.start(), await world.start()];
      for (let round = 0; round < 2; round += 1) {
        await world.claim(await world.worker());
        await world.crash();
      }
      const workerId = await world.worker();
      for (let tried = 0; tried < 3; tried += 1) {
        const { runs } = await world.claim(workerId, { suspects: true });
        const lease = leaseOf(workerId, runs[0]!);
        if (lease.runId !== poison) await world.end(lease);
      }
      await world.crash();
      await world.hold(poison, { suspects: true, crashLimit: 2 });
      await world.crash();
      expect(await world.store.getRun(poison)).toMatchObject({ status: "failed" });
      for (const runId of neighbours)
        expect(await world.store.getRun(runId)).toMatchObject({ status: "completed" });
    });
  });
}
