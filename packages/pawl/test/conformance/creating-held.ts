import { describe, expect } from "vitest";
import { server } from "../../src/memory/fence.ts";
import type { Holder } from "../../src/store/lease.ts";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { json, leaseMs, type World } from "./world.ts";

async function holderIn(world: World): Promise<Holder> {
  return { workerId: await world.worker(), leaseMs, crashLimit: 3 };
}

/** Runs that a worker holds from their start. */
export function describeCreatingHeld(test: StoreTest): void {
  describe("a run that is held from its start", () => {
    test("is answered as a claim would have answered it", async ({ world }) => {
      const holder = await holderIn(world);
      const now = await world.now();
      const run = world.newRun({
        input: json({ a: 1 }, `["n"]`),
        key: "k",
        priority: 4,
        expiresAt: now + 1,
        deadlineAt: now + 9_999,
        isRaw: true,
        tags: ["red"],
        retry: { attempts: 2, initialMs: 0, maxMs: 5, factor: 1, jitter: false, delaysMs: [7] },
      });
      const held = {
        runId: run.id,
        epoch: 1,
        workflow: "checkout",
        version: 1,
        queue: "default",
        key: "k",
        parentId: null,
        rootId: run.id,
        depth: 0,
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
        createdAt: now,
        deadlineAt: now + 9_999,
        claimedAt: now,
        mark: { priority: 4, readyAt: now, runId: run.id },
        server,
      };
      const answer = { kind: "created", id: run.id, held };
      expect(await world.store.createHeld(run, holder)).toEqual(answer);
      expect(await world.placeOf(run.id)).toMatchObject({ room: "lease", epoch: 1, begunAt: now });
      await world.clock.advance(1_000);
      await world.expectUnchanged(async () =>
        expect(await world.store.createHeld(run, holder)).toEqual(answer),
      );
    });

    test("is fenced, recorded, parked and ended as any other", async ({ world }) => {
      const holder = await holderIn(world);
      const run = world.newRun();
      await world.store.createHeld(run, holder);
      const lease = { runId: run.id, epoch: 1, workerId: holder.workerId };
      await expect(world.end({ ...lease, epoch: 2 })).rejects.toMatchObject({ code: "LEASE_LOST" });
      await world.park(lease, { wants: ["cancel"] });
      await world.tell(run.id, "cancel");
      const again = await world.hold(run.id, { workerId: holder.workerId });
      expect(again.epoch).toBe(2);
      await world.end(again);
      expect(await world.placeOf(run.id)).toEqual({ room: "ended" });
    });

    test("is recovered when its worker dies, and that counts as a crash", async ({ world }) => {
      const holder = await holderIn(world);
      const run = world.newRun();
      await world.store.createHeld(run, holder);
      expect(await world.crash()).toMatchObject({ recovered: 1 });
      expect(await world.kinds(run.id)).toEqual(["attempt_crashed"]);
    });

    test("and whose answer was lost is given back by the next heartbeat that knows later claims", async ({
      world,
    }) => {
      const holder = await holderIn(world);
      const [known, lost] = [world.newRun(), world.newRun()];
      await world.store.createHeld(known, holder);
      await world.store.createHeld(lost, holder);
      const { workerId } = holder;
      const held = [{ runId: known.id, epoch: 1 }];
      const beat = { workerId, held, claimsKnownTo: await world.now() };
      expect(await world.store.heartbeat(beat)).toMatchObject({ returned: 1, lost: [] });
      expect(await world.placeOf(lost.id)).toMatchObject({ room: "ready", epoch: 1 });
      expect(await world.store.createHeld(lost, holder)).toMatchObject({ kind: "created", held: null });
    });

    test.for([
      ["its queue is paused", (world: World) => world.setQueuePaused("default", true), {}],
      [
        "its worker has ended",
        (world: World, { workerId }: Holder) => world.store.retireWorker(workerId),
        {},
      ],
      ["it has expired", () => {}, { expiresAt: 1 }],
      ["its deadline has passed", () => {}, { deadlineAt: 1 }],
    ] as const)("is ready instead where %s", async ([, prepare, more], { world }) => {
      const holder = await holderIn(world);
      await prepare(world, holder);
      const run = world.newRun(more);
      expect(await world.store.createHeld(run, holder)).toEqual({ kind: "created", id: run.id, held: null });
      expect(await world.placeOf(run.id)).toMatchObject({ room: "ready", epoch: 0 });
    });

    test("is held beside others of its call that cannot be, and beside those of an earlier try", async ({
      world,
    }) => {
      const holder = await holderIn(world);
      await world.setQueuePaused("paused", true);
      const early = world.newRun();
      const { held } = await world.store.createHeld(early, holder);
      await world.clock.advance("1s");
      const runs = [early, world.newRun({ queue: "paused" }), world.newRun({ input: json(1) })];
      const answers = await Promise.all(runs.map((run) => world.store.createHeld(run, holder)));
      expect(answers.map((answer) => answer.kind)).toEqual(["created", "created", "created"]);
      expect(answers[0]!.held).toEqual(held);
      expect(answers[1]!.held).toBeNull();
      expect(answers[2]!.held).toMatchObject({
        runId: runs[2]!.id,
        claimedAt: await world.now(),
        input: json(1),
      });
      expect(await world.placeOf(runs[1]!.id)).toMatchObject({ room: "ready", epoch: 0 });
    });

    test("waits instead where it is not to begin yet", async ({ world }) => {
      const holder = await holderIn(world);
      const run = world.newRun({ startAt: (await world.now()) + 1 });
      expect(await world.store.createHeld(run, holder)).toEqual({ kind: "created", id: run.id, held: null });
      expect(await world.placeOf(run.id)).toMatchObject({ room: "parked", reason: "delayed" });
    });

    test("is not one that its worker has claimed since: that is its claim's to answer", async ({ world }) => {
      const holder = await holderIn(world);
      const run = world.newRun();
      await world.setQueuePaused("default", true);
      await world.store.createHeld(run, holder);
      await world.setQueuePaused("default", false);
      await world.clock.advance(1);
      expect(await world.hold(run.id, { workerId: holder.workerId })).toMatchObject({ epoch: 1 });
      expect(await world.store.createHeld(run, holder)).toEqual({ kind: "created", id: run.id, held: null });
    });

    test("is not another's, whose key it has", async ({ world }) => {
      const holder = await holderIn(world);
      const first = await world.start({ key: "k" });
      const equal = await world.store.createHeld(world.newRun({ key: "k" }), holder);
      expect(equal).toEqual({ kind: "existing", id: first, held: null });
      const other = await world.store.createHeld(world.newRun({ key: "k", version: 2 }), holder);
      expect(other).toEqual({ kind: "conflict", id: first, held: null });
    });

    test("and told something before a repeated call is answered as told", async ({ world }) => {
      const holder = await holderIn(world);
      const run = world.newRun();
      await world.store.createHeld(run, holder);
      await world.tell(run.id, "cancel");
      expect((await world.store.createHeld(run, holder)).held).toMatchObject({ told: true });
    });

    test("is one, however many that have its key are started at once", async ({ world }) => {
      const holder = await holderIn(world);
      const runs = [1, 2, 3].map(() => world.newRun({ key: "k" }));
      const answers = await Promise.all(runs.map((run) => world.store.createHeld(run, holder)));
      const [first] = answers;
      expect(answers).toEqual([
        { kind: "created", id: runs[0]!.id, held: first!.held },
        { kind: "existing", id: runs[0]!.id, held: null },
        { kind: "existing", id: runs[0]!.id, held: null },
      ]);
      expect(first!.held?.runId).toBe(runs[0]!.id);
    });

    test("ends its worker's rest, which has its own lease from then on", async ({ world }) => {
      const holder = await holderIn(world);
      const { workerId } = holder;
      await world.store.heartbeat({ workerId, held: [], claimsKnownTo: null, leaseMs: 12 * leaseMs });
      await world.clock.advance(2 * leaseMs);
      await world.store.createHeld(world.newRun(), holder);
      await world.clock.advance(leaseMs - 1);
      expect(await world.sweep()).toMatchObject({ expiredWorkers: 0 });
      await world.clock.advance(1);
      expect(await world.sweep()).toMatchObject({ expiredWorkers: 1, recovered: 1 });
    });

    test("announces nothing to claim", async ({ world }) => {
      const holder = await holderIn(world);
      const hints = await hintsOf(world, async () => {
        await world.store.createHeld(world.newRun(), holder);
      });
      expect(hints).toEqual([]);
    });
  });
}
