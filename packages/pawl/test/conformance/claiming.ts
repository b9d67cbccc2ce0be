import { describe, expect } from "vitest";
import { server } from "../../src/memory/fence.ts";
import type { Lane } from "../../src/store/lease.ts";
import type { StoreTest } from "./store-test.ts";
import { anyLane, event, json, type World } from "./world.ts";

/** Starts one run per entry, at the same instant. */
async function startAll(
  world: World,
  runs: readonly Parameters<World["newRun"]>[0][],
): Promise<readonly string[]> {
  const wanted = runs.map((run) => world.newRun(run));
  await world.store.createRuns(wanted);
  return wanted.map(({ id }) => id);
}

async function claimIds(world: World, request?: Parameters<World["claim"]>[1]): Promise<readonly string[]> {
  const { runs } = await world.claim(await world.worker(), request);
  return runs.map(({ runId }) => runId);
}

/** A run that has crashed alone, and waits to be tried again. */
async function startSuspect(world: World, run?: Parameters<World["newRun"]>[0]): Promise<string> {
  const { runId } = await world.startHeld(run);
  await world.crash();
  return runId;
}

export function describeClaiming(test: StoreTest): void {
  describe("claiming", () => {
    test("a claimed run comes with all that its code needs", async ({ world }) => {
      const parentId = await world.start({ queue: "parents" });
      const createdAt = await world.now();
      const runId = await world.startChild(parentId, {
        input: json({ a: 1 }, `["n"]`),
        key: "k",
        priority: 4,
        deadlineAt: createdAt + 9_999,
        isRaw: true,
        tags: ["red"],
        retry: { attempts: 2, initialMs: 0, maxMs: 5, factor: 1, jitter: false, delaysMs: [7] },
      });
      await world.clock.advance("3s");
      const workerId = await world.worker();
      expect(await world.claim(workerId)).toEqual({
        runs: [
          {
            runId,
            epoch: 1,
            workflow: "checkout",
            version: 1,
            queue: "default",
            key: "k",
            parentId,
            rootId: parentId,
            depth: 1,
            input: json({ a: 1 }, `["n"]`),
            isInputLeftOut: false,
            isRaw: true,
            tags: ["red"],
            retry: { attempts: 2, initialMs: 0, maxMs: 5, factor: 1, jitter: false, delaysMs: [7] },
            lastSeq: 0,
            attempt: 1,
            failures: 0,
            suspicion: 0,
            told: false,
            createdAt,
            deadlineAt: createdAt + 9_999,
            claimedAt: await world.now(),
            mark: { priority: 4, readyAt: createdAt, runId },
            server,
          },
        ],
        suspectsWaiting: false,
        now: createdAt + 3_000,
      });
    });

    test("a run that went through much comes with its numbers", async ({ world }) => {
      const lease = await world.startHeld();
      await world.park(lease, {
        events: [event(1, "step_completed", { name: "a" }), event(2, "attempt_failed")],
        reason: "retry",
        delayMs: 0,
        attemptFailed: true,
      });
      await world.store.wakeDue(10);
      const { runs } = await world.claim(await world.worker());
      expect(runs).toMatchObject([{ runId: lease.runId, epoch: 2, lastSeq: 2, attempt: 2, failures: 1 }]);
    });

    test("each claim raises the epoch by one and nothing else", async ({ world }) => {
      const runId = await world.start();
      for (const epoch of [1, 2, 3]) {
        const lease = await world.hold(runId);
        expect(lease.epoch).toBe(epoch);
        expect(await world.placeOf(runId)).toMatchObject({
          epoch,
          lastSeq: 0,
          attempt: 1,
          failures: 0,
          crashes: 0,
        });
        await world.release(lease);
      }
    });

    test("a lease knows its worker, its lane's crash limit and when it was claimed and begun", async ({
      world,
    }) => {
      const runId = await world.start();
      await world.clock.advance("1s");
      const { workerId } = await world.hold(runId, { crashLimit: 5, begin: true });
      const now = await world.now();
      expect(await world.placeOf(runId)).toEqual({
        room: "lease",
        runId,
        epoch: 1,
        lastSeq: 0,
        attempt: 1,
        failures: 0,
        crashes: 0,
        suspicion: 0,
        told: false,
        workerId,
        claimedAt: now,
        begunAt: now,
        crashLimit: 5,
      });
    });

    test("a run can be claimed without beginning it", async ({ world }) => {
      const runId = await world.start();
      await world.hold(runId, { begin: false });
      expect(await world.placeOf(runId)).toMatchObject({ room: "lease", begunAt: null });
    });

    test("what a ready run was told travels into its lease", async ({ world }) => {
      const runId = await world.start();
      await world.tell(runId, "signal:go");
      const { runs } = await world.claim(await world.worker());
      expect(runs).toMatchObject([{ runId, told: true }]);
      expect(await world.placeOf(runId)).toMatchObject({ room: "lease", told: true });
    });

    test("a run is claimed once, however many workers ask at the same moment", async ({ world }) => {
      const runIds = await startAll(
        world,
        Array.from({ length: 20 }, () => ({})),
      );
      const workers = await Promise.all(Array.from({ length: 8 }, () => world.worker()));
      const claims = await Promise.all(workers.map((workerId) => world.claim(workerId, { limit: 20 })));
      const claimed = claims.flatMap(({ runs }) => runs.map(({ runId }) => runId));
      expect(new Set(claimed).size).toBe(claimed.length);
      for (const runId of claimed) expect(runIds).toContain(runId);
    });

    test("runs that are held, parked or ended are not claimed", async ({ world }) => {
      await world.startHeld();
      await world.startParked();
      await world.end(await world.startHeld());
      await world.start({ startAt: (await world.now()) + 1 });
      expect(await claimIds(world)).toEqual([]);
    });
  });

  describe("who may claim", () => {
    async function expectRefused(world: World, workerId: string): Promise<void> {
      await world.expectUnchanged(() =>
        expect(world.claim(workerId)).rejects.toMatchObject({ code: "WORKER_EXPIRED" }),
      );
    }

    test("a worker that nobody registered cannot claim", async ({ world }) => {
      await world.start();
      await expectRefused(world, world.nextId());
    });

    test("a worker that retired cannot claim", async ({ world }) => {
      await world.start();
      const workerId = await world.worker();
      await world.store.retireWorker(workerId);
      await expectRefused(world, workerId);
    });

    test("a worker that was found dead cannot claim", async ({ world }) => {
      const workerId = await world.worker();
      await world.crash();
      await world.start();
      await expectRefused(world, workerId);
    });

    test("a worker that has ended is refused also when there is nothing to claim", async ({ world }) => {
      const workerId = await world.worker();
      await world.store.retireWorker(workerId);
      await expectRefused(world, workerId);
    });

    test("a worker whose heartbeat is overdue can claim as long as nobody has found it dead", async ({
      world,
    }) => {
      const runId = await world.start();
      const workerId = await world.worker();
      await world.clock.advance("1h");
      const { runs } = await world.claim(workerId);
      expect(runs).toMatchObject([{ runId }]);
    });
  });

  describe("the order of claiming", () => {
    test("a lane takes only its queue, its workflow and its version", async ({ world }) => {
      const [mine] = await startAll(world, [{}, { queue: "other" }, { workflow: "other" }, { version: 2 }]);
      expect(await claimIds(world)).toEqual([mine]);
    });

    test("without a lane nothing is claimed", async ({ world }) => {
      await world.start();
      expect(await claimIds(world, { lanes: [] })).toEqual([]);
    });

    test("no more than the limit is claimed", async ({ world }) => {
      const runIds = await startAll(world, [{}, {}, {}]);
      expect(await claimIds(world, { limit: 2 })).toEqual(runIds.slice(0, 2));
      expect(await claimIds(world, { limit: 2 })).toEqual(runIds.slice(2));
    });

    test("a limit of 0 claims nothing", async ({ world }) => {
      await world.start();
      expect(await claimIds(world, { limit: 0 })).toEqual([]);
    });

    test("the lower priority number goes first, then the longest ready, then the lower id", async ({
      world,
    }) => {
      const early = await startAll(world, [{ priority: 1 }, { priority: 0 }]);
      await world.clock.advance(1);
      const late = await startAll(world, [{ priority: 0 }, { priority: 0 }, { priority: -1 }]);
      expect(await claimIds(world)).toEqual([late[2], early[1], late[0], late[1], early[0]]);
    });

    test("a run counts as ready since it last became so, not since it was created", async ({ world }) => {
      const first = await world.startHeld();
      await world.clock.advance(1);
      const second = await world.start();
      await world.clock.advance(1);
      await world.release(first);
      expect(await claimIds(world)).toEqual([second, first.runId]);
    });

    test("priority and age decide over all lanes together", async ({ world }) => {
      const lanes: readonly Lane[] = [
        anyLane,
        { ...anyLane, queue: "b" },
        { ...anyLane, workflow: "other" },
        { ...anyLane, version: 2 },
      ];
      const urgent = { priority: -1 };
      const first = await world.start({ queue: "b" });
      await world.clock.advance(1);
      const second = await world.start();
      await world.clock.advance(1);
      const third = await world.start({ workflow: "other" });
      const fourth = await world.start({ version: 2 });
      const zero = await world.start({ ...urgent, version: 2 });
      expect(await claimIds(world, { lanes, limit: 4 })).toEqual([zero, first, second, third]);
      expect(await claimIds(world, { lanes, limit: 4 })).toEqual([fourth]);
    });

    test("each lane's crash limit goes with its runs", async ({ world }) => {
      const [one, two] = await startAll(world, [{}, { version: 2 }]);
      const lanes = [
        { ...anyLane, crashLimit: 1 },
        { ...anyLane, version: 2, crashLimit: 0 },
      ];
      await claimIds(world, { lanes });
      expect(await world.placeOf(one!)).toMatchObject({ crashLimit: 1 });
      expect(await world.placeOf(two!)).toMatchObject({ crashLimit: 0 });
    });
  });

  describe("marks", () => {
    test("a claim behind a mark continues where the last one ended", async ({ world }) => {
      const runIds = await startAll(world, [{}, {}, {}, {}]);
      const { runs } = await world.claim(await world.worker(), { limit: 2 });
      const after = runs.at(-1)!.mark;
      expect(await claimIds(world, { limit: 1, lanes: [{ ...anyLane, after }] })).toEqual([runIds[2]]);
    });

    test("what stands at or before the mark is not seen, what stands behind is", async ({ world }) => {
      const early = await startAll(world, [{ priority: 0 }, { priority: 0 }, { priority: 2 }]);
      const readyAt = await world.now();
      await world.clock.advance(1);
      const late = await startAll(world, [{ priority: 0 }, { priority: -1 }]);
      const after = { priority: 0, readyAt, runId: early[0]! };
      expect(await claimIds(world, { lanes: [{ ...anyLane, after }] })).toEqual([
        early[1],
        late[0],
        early[2],
      ]);
      expect(await claimIds(world)).toEqual([late[1], early[0]]);
    });

    test("each lane looks behind its own mark", async ({ world }) => {
      const [one, two] = await startAll(world, [{}, { version: 2 }]);
      const after = { priority: 0, readyAt: await world.now(), runId: two! };
      const lanes = [
        { ...anyLane, after },
        { ...anyLane, version: 2 },
      ];
      expect(await claimIds(world, { lanes })).toEqual([two]);
      expect(await claimIds(world)).toEqual([one]);
    });
  });

  describe("paused queues", () => {
    test("nothing is claimed from a paused queue until it goes on", async ({ world }) => {
      const [paused, other] = await startAll(world, [{}, { queue: "other" }]);
      const lanes = [anyLane, { ...anyLane, queue: "other" }];
      await world.setQueuePaused("default", true);
      expect(await claimIds(world, { lanes })).toEqual([other]);
      await world.setQueuePaused("default", false);
      expect(await claimIds(world, { lanes })).toEqual([paused]);
    });

    test("suspects in a paused queue are not waiting", async ({ world }) => {
      const suspect = await startSuspect(world);
      await world.setQueuePaused("default", true);
      const { runs, suspectsWaiting } = await world.claim(await world.worker(), { suspects: true });
      expect(runs).toEqual([]);
      expect(suspectsWaiting).toBe(false);
      expect(await world.placeOf(suspect)).toMatchObject({ room: "ready" });
    });
  });

  describe("suspects", () => {
    test("a suspect is left alone by ordinary claims, which say that it waits", async ({ world }) => {
      await startSuspect(world);
      const ordinary = await world.start();
      const { runs, suspectsWaiting } = await world.claim(await world.worker());
      expect(runs).toMatchObject([{ runId: ordinary }]);
      expect(suspectsWaiting).toBe(true);
    });

    test("inputs that make the answer too large are left out, and can be asked for", async ({ world }) => {
      const input = json("x".repeat(999_998));
      const ids: string[] = [];
      for (let n = 0; n < 9; n++) ids.push(await world.start({ input }));
      const { runs } = await world.claim(await world.worker());
      expect(runs.map(({ runId }) => runId)).toEqual(ids);
      const leftOut = runs.filter(({ isInputLeftOut }) => isInputLeftOut);
      expect(leftOut.map((run) => run.input)).toEqual([null]);
      expect(runs.filter((run) => run.input?.json === input.json)).toHaveLength(8);
      expect((await world.store.getRun(leftOut[0]!.runId))?.input).toEqual(input);
    });

    test("a claim of suspects takes only suspects", async ({ world }) => {
      const suspect = await startSuspect(world);
      await world.start({ priority: -5 });
      const { runs, suspectsWaiting } = await world.claim(await world.worker(), { suspects: true });
      expect(runs).toMatchObject([{ runId: suspect, epoch: 2, attempt: 2 }]);
      expect(suspectsWaiting).toBe(false);
    });

    test("a claim of suspects takes one at a time, in the order of claiming", async ({ world }) => {
      const second = await startSuspect(world);
      const first = await startSuspect(world, { priority: -1 });
      const workerId = await world.worker();
      const claims = [
        await world.claim(workerId, { suspects: true }),
        await world.claim(workerId, { suspects: true }),
        await world.claim(workerId, { suspects: true }),
      ];
      expect(claims.map(({ runs }) => runs.map(({ runId }) => runId))).toEqual([[first], [second], []]);
      expect(claims.map(({ suspectsWaiting }) => suspectsWaiting)).toEqual([true, false, false]);
    });

    test("a claim of suspects with a limit of 0 takes none", async ({ world }) => {
      await startSuspect(world);
      const { runs, suspectsWaiting } = await world.claim(await world.worker(), { suspects: true, limit: 0 });
      expect(runs).toEqual([]);
      expect(suspectsWaiting).toBe(true);
    });

    test("suspects of lanes that were not asked for are not waiting", async ({ world }) => {
      await startSuspect(world, { version: 2 });
      expect(await world.claim(await world.worker())).toMatchObject({ suspectsWaiting: false });
    });

    test("a suspect that stands before the mark is waiting all the same", async ({ world }) => {
      await startSuspect(world);
      await world.clock.advance(1);
      const after = { priority: 0, readyAt: await world.now(), runId: world.nextId() };
      const claim = await world.claim(await world.worker(), { lanes: [{ ...anyLane, after }] });
      expect(claim).toMatchObject({ runs: [], suspectsWaiting: true });
    });
  });
}
