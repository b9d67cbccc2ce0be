import { describe, expect } from "vitest";
import type { RunId } from "../../src/core/ids.ts";
import type { NewRun } from "../../src/store/run-record.ts";
import type { StoreTest } from "./store-test.ts";
import { anyLane, json, leaseOf, type World } from "./world.ts";

/** More than a store may want to keep in one place. */
const many = 150;

async function startTogether(
  world: World,
  count: number,
  of: Partial<NewRun> = {},
): Promise<readonly RunId[]> {
  const runs = Array.from({ length: count }, () => world.newRun(of));
  await world.store.createRuns(runs);
  return runs.map(({ id }) => id);
}

async function claimedBy(world: World, limit: number, workerId?: string): Promise<readonly RunId[]> {
  const { runs } = await world.claim(workerId ?? (await world.worker()), { limit });
  return runs.map(({ runId }) => runId);
}

async function statusOf(world: World, runId: RunId | undefined): Promise<string | undefined> {
  return (await world.store.getRun(runId ?? ""))?.status;
}

async function pending(world: World, limit: number, look: number): Promise<readonly RunId[]> {
  const found: RunId[] = [];
  for (let before: RunId | undefined; ;) {
    const page = await world.store.listRuns({ status: "pending", limit, look, ...(before && { before }) });
    found.push(...page.runs.map(({ id }) => id));
    if (page.next === null) return found;
    before = page.next;
  }
}

/** However a store keeps what was started together, each of the runs is a run. */
export function describeStartingTogether(test: StoreTest): void {
  describe("runs that are started together", () => {
    test("each is ready, as if it had been started alone", async ({ world }) => {
      const runIds = await startTogether(world, 3);
      for (const runId of runIds) {
        expect(await world.placeOf(runId)).toMatchObject({
          room: "ready",
          epoch: 0,
          attempt: 1,
          told: false,
        });
        expect(await world.store.getRun(runId)).toMatchObject({ status: "pending", attempt: 1 });
      }
    });

    test("they are claimed in their order, as many as are asked for", async ({ world }) => {
      const runIds = await startTogether(world, many, { priority: 3 });
      const workerId = await world.worker();
      const { runs } = await world.claim(workerId, { limit: 70 });
      expect(runs.map(({ runId }) => runId)).toEqual(runIds.slice(0, 70));
      expect(runs[0]).toMatchObject({ epoch: 1, attempt: 1, lastSeq: 0, mark: { priority: 3 } });
      expect(await statusOf(world, runIds[69])).toBe("running");
      expect(await statusOf(world, runIds[70])).toBe("pending");
      expect(await claimedBy(world, 1)).toEqual([runIds[70]]);
      expect(await claimedBy(world, 500)).toEqual(runIds.slice(71));
      expect(await claimedBy(world, 500)).toEqual([]);
      await world.end(leaseOf(workerId, runs[0]!));
      expect(await statusOf(world, runIds[0])).toBe("completed");
    });

    test("they and others are claimed by priority, then by age", async ({ world }) => {
      const [early, later] = [{ priority: 1 }, { priority: 2 }];
      const together = await startTogether(world, 3, later);
      const between = await world.start(later);
      const again = await startTogether(world, 2, later);
      const first = await startTogether(world, 2, early);
      const alone = await world.start(early);
      const order = [...first, alone, ...together, between, ...again];
      expect(await claimedBy(world, 1)).toEqual(order.slice(0, 1));
      expect(await claimedBy(world, 4)).toEqual(order.slice(1, 5));
      expect(await claimedBy(world, 10)).toEqual(order.slice(5));
    });

    test("those of several lanes are claimed by age, over all lanes", async ({ world }) => {
      const lanes = ["a", "b"].map((queue) => ({ ...anyLane, queue }));
      const order: RunId[] = [];
      for (const queue of ["a", "b", "a", "b"]) {
        order.push(...(await startTogether(world, 2, { queue })));
        order.push(await world.start({ queue }));
        await world.clock.advance(1);
      }
      const claim = async (limit: number): Promise<readonly RunId[]> =>
        (await world.claim(await world.worker(), { lanes, limit })).runs.map(({ runId }) => runId);
      expect(await claim(4)).toEqual(order.slice(0, 4));
      expect(await claim(100)).toEqual(order.slice(4));
    });

    test("starting them again changes nothing, whatever has become of them", async ({ world }) => {
      const runs = Array.from({ length: 20 }, () => world.newRun());
      await world.store.createRuns(runs);
      await world.expectUnchanged(() => world.store.createRuns(runs));
      await claimedBy(world, 5);
      await world.store.terminate(runs[7]!.id, null);
      await world.expectUnchanged(() => world.store.createRuns(runs));
    });

    test("a start that others have been added to brings the others", async ({ world }) => {
      const [one, two, three] = [world.newRun(), world.newRun(), world.newRun()];
      await world.store.createRuns([one, two]);
      await world.store.createRuns([one, two, three]);
      expect(await claimedBy(world, 10)).toEqual([one.id, two.id, three.id]);
    });

    test("each brings its own input, with its notes", async ({ world }) => {
      const inputs = [
        json({ n: 1 }),
        json("2026", '"Date"'),
        null,
        json('"a"\u2028\\ {1,2}'),
        json([null, 1.5]),
      ];
      const runs = inputs.map((input) => world.newRun({ input, priority: 2 }));
      await world.store.createRuns(runs);
      const claim = await world.claim(await world.worker(), { limit: 10 });
      expect(claim.runs.map(({ runId, input, mark }) => [runId, input, mark.priority])).toEqual(
        runs.map(({ id, input }) => [id, input, 2]),
      );
    });

    test("inputs that make the answer too large are left out, and the others are not", async ({ world }) => {
      const large = json("x".repeat(900_000));
      const runs = Array.from({ length: 12 }, () => world.newRun({ input: large }));
      for (const each of [runs.slice(0, 4), runs.slice(4, 5), runs.slice(5, 9), runs.slice(9)])
        await world.store.createRuns(each);
      const claim = await world.claim(await world.worker(), { limit: 20 });
      expect(claim.runs.map(({ runId }) => runId)).toEqual(runs.map(({ id }) => id));
      for (const { isInputLeftOut, input } of claim.runs)
        expect(input).toEqual(isInputLeftOut ? null : large);
      const leftOut = claim.runs.filter(({ isInputLeftOut }) => isInputLeftOut).length;
      expect(leftOut).toBe(4);
    });

    test("claims that come at the same time take each of them once", async ({ world }) => {
      const runIds: RunId[] = [];
      for (let calls = 0; calls < 4; calls++) runIds.push(...(await startTogether(world, many)));
      const taken: RunId[] = [];
      const takeSome = async (limit: number): Promise<void> => {
        const workerId = await world.worker();
        while (taken.length < runIds.length) taken.push(...(await claimedBy(world, limit, workerId)));
      };
      await Promise.all([3, 5, 7, 11, 13, 64].map(takeSome));
      expect(taken.sort()).toEqual(runIds);
    });

    test("one is cancelled, and the others go on", async ({ world }) => {
      const runIds = await startTogether(world, 4);
      await world.tell(runIds[1]!, "cancel");
      expect(await statusOf(world, runIds[1])).toBe("cancelled");
      expect(await claimedBy(world, 10)).toEqual([runIds[0], runIds[2], runIds[3]]);
    });

    test("one is cancelled by a message that the sweep finds", async ({ world }) => {
      const runIds = await startTogether(world, 3);
      await world.insert(runIds[2]!, "cancel");
      await world.sweep();
      expect(await statusOf(world, runIds[2])).toBe("cancelled");
      expect(await claimedBy(world, 10)).toEqual(runIds.slice(0, 2));
    });

    test("one is paused and resumed, and the others go on", async ({ world }) => {
      const runIds = await startTogether(world, 3);
      await world.tell(runIds[0]!, "pause");
      expect(await statusOf(world, runIds[0])).toBe("paused");
      expect(await claimedBy(world, 10)).toEqual(runIds.slice(1));
      await world.tell(runIds[0]!, "resume");
      expect(await claimedBy(world, 10)).toEqual([runIds[0]]);
    });

    test("one is terminated, one rescheduled, and one told something", async ({ world }) => {
      const [one, two, three, four] = (await startTogether(world, 4)) as [RunId, RunId, RunId, RunId];
      expect(await world.store.terminate(two, null)).toBe("terminated");
      expect(await world.store.reschedule({ runId: three, priority: -1, startAt: undefined })).toBe(
        "rescheduled",
      );
      await world.tell(four, "signal:a");
      const { runs } = await world.claim(await world.worker(), { limit: 10 });
      expect(runs.map(({ runId, told }) => [runId, told])).toEqual([
        [three, false],
        [one, false],
        [four, true],
      ]);
    });

    test("those that are not claimed yet are listed, page by page", async ({ world }) => {
      const runIds: RunId[] = [];
      for (let calls = 0; calls < 5; calls++) {
        runIds.push(...(await startTogether(world, 70)));
        runIds.push(await world.start());
      }
      await claimedBy(world, 90);
      const expected = runIds.slice(90).reverse();
      expect(await pending(world, 7, 20)).toEqual(expected);
      expect(await pending(world, 100, 1_000)).toEqual(expected);
    });

    test("those that are not claimed yet are counted", async ({ world }) => {
      await startTogether(world, many);
      await startTogether(world, 2, { queue: "other" });
      await world.start();
      await claimedBy(world, 20);
      const counts = await world.store.countRuns(1_000);
      expect(counts).toContainEqual({ status: "pending", count: many - 20 + 3, isExact: true });
      expect((await world.store.readBacklog(1_000)).map(({ queue, count }) => [queue, count])).toEqual([
        ["default", many - 20 + 1],
        ["other", 2],
      ]);
    });
  });
}
