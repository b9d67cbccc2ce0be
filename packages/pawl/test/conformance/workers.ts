import { describe, expect } from "vitest";
import type { Lease } from "../../src/store/lease.ts";
import type { HeartbeatAnswer } from "../../src/store/worker-record.ts";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { event, leaseMs, leaseOf, type World } from "./world.ts";

function beat(
  world: World,
  workerId: string,
  held: readonly Lease[] = [],
  claimsKnownTo: number | null = Number.POSITIVE_INFINITY,
): Promise<HeartbeatAnswer> {
  const known = held.map(({ runId, epoch }) => ({ runId, epoch }));
  return world.store.heartbeat({ workerId, held: known, claimsKnownTo });
}

async function workerRow(world: World, workerId: string): Promise<unknown> {
  return (await world.snapshot()).workers.find(({ id }) => id === workerId);
}

export function describeWorkers(test: StoreTest): void {
  describe("registering a worker", () => {
    test("a new worker has been heard now", async ({ world }) => {
      const workerId = await world.worker({ leaseMs: 4_000 });
      const heardAt = await world.now();
      expect(await workerRow(world, workerId)).toEqual({
        id: workerId,
        leaseMs: 4_000,
        heardAt,
        endedAt: null,
        heldAtEnd: null,
      });
    });

    test("a worker that exists is left alone", async ({ world }) => {
      const worker = world.newWorker();
      await world.store.registerWorker(worker);
      await world.clock.advance("1s");
      await world.expectUnchanged(() => world.store.registerWorker({ ...worker, leaseMs: 1 }));
    });

    test("a worker that has ended is not brought back", async ({ world }) => {
      const worker = world.newWorker();
      await world.store.registerWorker(worker);
      await world.store.retireWorker(worker.id);
      await world.expectUnchanged(() => world.store.registerWorker(worker));
    });
  });

  describe("listing workers", () => {
    const recent = { endedWithinMs: 60_000, limit: 10 };

    test("a worker is listed as it was registered, alive until its lease has passed", async ({ world }) => {
      const settings = { pawl: "1.2.3", heartbeatMs: 5_000 };
      const id = await world.worker({ workflows: ["checkout@1", "refund@2"], settings });
      const startedAt = await world.now();
      const seen = { startedAt, heardAt: startedAt, endedAt: null, longSteps: [], sample: null };
      const { host, pid, queues, concurrency } = world.newWorker();
      const workflows = ["checkout@1", "refund@2"];
      const registered = { id, host, pid, queues, concurrency, leaseMs, workflows, settings };
      expect(await world.store.listWorkers(recent)).toEqual([{ ...registered, ...seen, isAlive: true }]);
      await world.clock.advance(leaseMs);
      expect(await world.store.listWorkers(recent)).toEqual([{ ...registered, ...seen, isAlive: false }]);
    });

    test("those that ended are listed for a while, newest first, no more than asked for", async ({
      world,
    }) => {
      const ids: string[] = [];
      for (let count = 0; count < 3; count += 1) {
        ids.unshift(await world.worker({ leaseMs: 600_000 }));
        await world.clock.advance("1s");
      }
      const [newest, middle, oldest] = ids as [string, string, string];
      await world.store.retireWorker(middle);
      const listed = async (limit = 10) =>
        (await world.store.listWorkers({ ...recent, limit })).map(({ id }) => id);
      expect(await listed()).toEqual([newest, middle, oldest]);
      expect(await listed(1)).toEqual([newest]);
      await world.clock.advance("61s");
      expect(await listed()).toEqual([newest, oldest]);
    });

    test("a heartbeat says which steps run for long, until the next one", async ({ world }) => {
      const workerId = await world.worker();
      const { runId } = await world.hold(await world.start(), { workerId });
      const longSteps = [{ runId, step: "export", beganAt: (await world.now()) - 7_000 }];
      await world.store.heartbeat({ workerId, held: [], claimsKnownTo: null, longSteps });
      expect(await world.store.listWorkers(recent)).toMatchObject([{ longSteps }]);
      await beat(world, workerId, [], null);
      expect(await world.store.listWorkers(recent)).toMatchObject([{ longSteps: [] }]);
    });

    test("the last sample that a heartbeat brought is listed, at the time it came", async ({ world }) => {
      const workerId = await world.worker();
      const sample = { held: 3, memoryBytes: 5_000_000_000, cpuRatio: 0.5, lagMs: 12.5 };
      for (const held of [1, 2, 3]) {
        await world.clock.advance("1s");
        const heartbeat = { workerId, held: [], claimsKnownTo: null, sample: { ...sample, held } };
        expect(await world.store.heartbeat(heartbeat)).toMatchObject({ alive: true });
      }
      const at = await world.now();
      await world.clock.advance("1s");
      await beat(world, workerId);
      expect(await world.store.listWorkers(recent)).toMatchObject([{ sample: { ...sample, at } }]);
    });

    test("a worker that has expired brings no sample", async ({ world }) => {
      const workerId = await world.worker();
      await world.clock.advance(leaseMs);
      const sample = { held: 0, memoryBytes: 1, cpuRatio: 0, lagMs: 0 };
      await world.store.heartbeat({ workerId, held: [], claimsKnownTo: null, sample });
      expect(await world.store.listWorkers(recent)).toMatchObject([{ sample: null, isAlive: false }]);
    });
  });

  describe("heartbeats", () => {
    test("a heartbeat keeps a worker alive", async ({ world }) => {
      const workerId = await world.worker();
      for (let round = 0; round < 5; round += 1) {
        await world.clock.advance(leaseMs - 1);
        const now = await world.now();
        expect(await beat(world, workerId)).toEqual({
          alive: true,
          leaseMs,
          told: [],
          lost: [],
          returned: 0,
          now,
        });
        expect(await workerRow(world, workerId)).toMatchObject({ heardAt: now, endedAt: null });
      }
    });

    test("a worker that was not heard for its whole lease is not alive, though nobody has swept it", async ({
      world,
    }) => {
      const workerId = await world.worker();
      const lease = await world.hold(await world.start(), { workerId });
      await world.tell(lease.runId, "signal:a");
      await world.clock.advance(leaseMs);
      const answer = await world.expectUnchanged(() => beat(world, workerId, [lease]));
      expect(answer).toEqual({
        alive: false,
        leaseMs: null,
        told: [],
        lost: [],
        returned: 0,
        now: await world.now(),
      });
    });

    test("a worker that retired, was found dead or was never there is not alive", async ({ world }) => {
      const dead = await world.worker();
      await world.crash();
      const retired = await world.worker();
      await world.store.retireWorker(retired);
      for (const workerId of [dead, retired, world.nextId()]) {
        const answer = await world.expectUnchanged(() => beat(world, workerId));
        expect(answer).toEqual({
          alive: false,
          leaseMs: null,
          told: [],
          lost: [],
          returned: 0,
          now: await world.now(),
        });
      }
    });

    test("each worker has the lease it was registered with", async ({ world }) => {
      const [short, long] = [await world.worker({ leaseMs: 1_000 }), await world.worker({ leaseMs: 60_000 })];
      await world.clock.advance("30s");
      expect(await beat(world, short)).toMatchObject({ alive: false });
      expect(await beat(world, long)).toMatchObject({ alive: true });
    });

    test("held runs that were told something are named until their inbox is read", async ({ world }) => {
      const workerId = await world.worker();
      const told = await world.hold(await world.start(), { workerId });
      const silent = await world.hold(await world.start(), { workerId });
      await world.tell(told.runId, "signal:a");
      expect(await beat(world, workerId, [told, silent])).toMatchObject({ told: [told.runId] });
      expect(await beat(world, workerId, [told, silent])).toMatchObject({ told: [told.runId] });
      await world.readInbox(told);
      expect(await beat(world, workerId, [told, silent])).toMatchObject({ told: [], lost: [] });
    });

    test("held runs whose lease is gone are named as lost", async ({ world }) => {
      const workerId = await world.worker();
      const ended = await world.hold(await world.start(), { workerId });
      await world.end(ended);
      const parked = await world.hold(await world.start(), { workerId });
      await world.park(parked);
      const retaken = await world.hold(await world.start(), { workerId });
      await world.release(retaken);
      const again = await world.hold(retaken.runId, { workerId });
      const others = await world.startHeld();
      const missing = { runId: world.nextId(), epoch: 1, workerId };
      const answer = await beat(world, workerId, [ended, parked, retaken, others, missing, again]);
      expect(answer.told).toEqual([again.runId]);
      expect(new Set(answer.lost)).toEqual(
        new Set([ended.runId, parked.runId, retaken.runId, others.runId, missing.runId]),
      );
      expect(await world.placeOf(others.runId)).toMatchObject({ room: "lease" });
    });
  });

  describe("leases that their worker does not know of", () => {
    test("are given back once a later claim is known of, with nothing held against the run", async ({
      world,
    }) => {
      const runId = await world.start();
      const workerId = await world.worker();
      const { now } = await world.claim(workerId);
      await world.clock.advance(500);
      expect(await beat(world, workerId, [], null)).toMatchObject({ alive: true, returned: 0 });
      expect(await beat(world, workerId, [], now - 1)).toMatchObject({ alive: true, returned: 0 });
      expect(await world.placeOf(runId)).toMatchObject({ room: "lease" });
      expect(await beat(world, workerId, [], now)).toMatchObject({ alive: true, returned: 1 });
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
    });

    test("are those of another epoch too", async ({ world }) => {
      const workerId = await world.worker();
      const old = await world.hold(await world.start(), { workerId });
      await world.release(old);
      await world.claim(workerId);
      expect(await beat(world, workerId, [old])).toMatchObject({ returned: 1, lost: [old.runId] });
      expect(await world.placeOf(old.runId)).toMatchObject({ room: "ready", epoch: 2 });
    });

    test("leave with the history they have", async ({ world }) => {
      const lease = await world.startHeld();
      await world.record(lease, [event(1, "step_completed"), event(2, "step_completed")]);
      await beat(world, lease.workerId);
      expect(await world.placeOf(lease.runId)).toMatchObject({ room: "ready", lastSeq: 2 });
    });

    test("do not take the known ones or another worker's with them", async ({ world }) => {
      const workerId = await world.worker();
      const known = await world.hold(await world.start(), { workerId });
      const others = await world.startHeld();
      const unknown = await world.start({ queue: "here" });
      await world.hold(unknown, { workerId });
      const hints = await hintsOf(world, () => beat(world, workerId, [known]));
      expect(await world.placeOf(known.runId)).toMatchObject({ room: "lease" });
      expect(await world.placeOf(others.runId)).toMatchObject({ room: "lease" });
      expect(await world.placeOf(unknown)).toMatchObject({ room: "ready" });
      expect(hints).toEqual([{ kind: "ready", queue: "here" }]);
    });
  });

  describe("retiring a worker", () => {
    test("gives back all it holds, begun or not, with no attempt spent", async ({ world }) => {
      const workerId = await world.worker();
      const begun = await world.hold(await world.start(), { workerId });
      await world.record(begun, [event(1, "step_completed")]);
      const unbegun = await world.hold(await world.start(), { workerId, begin: false });
      const others = await world.startHeld();
      await world.clock.advance("1s");
      const hints = await hintsOf(world, () => world.store.retireWorker(workerId));
      const readyAt = await world.now();
      const kept = { room: "ready", told: true, readyAt, epoch: 1, attempt: 1, crashes: 0, suspicion: 0 };
      expect(await world.placeOf(begun.runId)).toMatchObject({ ...kept, lastSeq: 1 });
      expect(await world.placeOf(unbegun.runId)).toMatchObject({ ...kept, lastSeq: 0 });
      expect(await world.placeOf(others.runId)).toMatchObject({ room: "lease" });
      expect(await workerRow(world, workerId)).toMatchObject({ endedAt: readyAt, heldAtEnd: null });
      expect(await world.kinds(begun.runId)).toEqual(["step_completed"]);
      expect(hints).toEqual([{ kind: "ready", queue: "default" }]);
    });

    test("is final, and is not found dead later", async ({ world }) => {
      const workerId = await world.worker();
      await world.store.retireWorker(workerId);
      await world.clock.advance("1h");
      await world.expectUnchanged(() => world.store.retireWorker(workerId));
      const answer = await world.expectUnchanged(() => world.sweep());
      expect(answer).toMatchObject({ expiredWorkers: 0, recovered: 0 });
    });

    test("that is not there changes nothing", async ({ world }) => {
      await world.expectUnchanged(() => world.store.retireWorker(world.nextId()));
    });

    test("that holds many gives back each once", async ({ world }) => {
      const workerId = await world.worker();
      for (let n = 0; n < 5; n += 1) await world.start();
      const { runs } = await world.claim(workerId);
      await world.end(leaseOf(workerId, runs[0]!));
      await world.store.retireWorker(workerId);
      const { runs: again } = await world.claim(await world.worker());
      expect(again.map(({ runId }) => runId).sort()).toEqual(
        runs
          .slice(1)
          .map(({ runId }) => runId)
          .sort(),
      );
    });
  });
}
