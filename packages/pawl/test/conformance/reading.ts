import { describe, expect } from "vitest";
import type { RunStatus } from "../../src/core/run-status.ts";
import type { Lease } from "../../src/store/lease.ts";
import type { RunFilter } from "../../src/store/run-record.ts";
import type { StoreTest } from "./store-test.ts";
import { event, json, type World } from "./world.ts";

/** One run of every status people see, under a queue of its own. */
async function startOneOfEach(world: World): Promise<Readonly<Record<RunStatus, readonly string[]>>> {
  const held = await world.startHeld({ queue: "1" });
  const ended = async (
    status: "completed" | "failed" | "cancelled" | "timed_out" | "expired",
  ): Promise<string[]> => {
    const lease = await world.startHeld({ queue: status });
    await world.end(lease, status);
    return [lease.runId];
  };
  return {
    pending: [await world.start({ queue: "2" }), await world.start({ startAt: (await world.now()) + 1 })],
    running: [held.runId],
    waiting: [
      await world.startParked({ reason: "waiting" }, { queue: "3" }),
      await world.startParked({ reason: "retry" }, { queue: "4" }),
    ],
    paused: [await world.startParked({ reason: "paused" }, { queue: "5" })],
    blocked: [await world.startParked({ reason: "blocked" }, { queue: "6" })],
    completed: await ended("completed"),
    failed: await ended("failed"),
    cancelled: await ended("cancelled"),
    timed_out: await ended("timed_out"),
    expired: await ended("expired"),
  };
}

async function listIds(world: World, filter: Partial<RunFilter>): Promise<readonly string[]> {
  return (await world.store.listRuns({ limit: 100, look: 1_000, ...filter })).runs.map(({ id }) => id);
}

export function describeReading(test: StoreTest): void {
  describe("reading a run", () => {
    test("a history too large for one answer is read whole", async ({ world }) => {
      const lease = await world.startHeld();
      const data = json("x".repeat(999_998));
      for (let seq = 1; seq <= 20; seq++)
        await world.record(lease, [event(seq, "step_completed", { name: `${seq}`, data })]);
      const history = await world.history(lease.runId);
      expect(history.map(({ seq }) => seq)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
      expect(history.every((fact) => fact.data?.json === data.json)).toBe(true);
      expect((await world.store.loadHistory(lease.runId, 17)).map(({ seq }) => seq)).toEqual([18, 19, 20]);
    });

    test("its children are read by id, with what they answer and how they are", async ({ world }) => {
      const parent = await world.startHeld();
      const { runId } = parent;
      const child = (request: string): Promise<string> => world.start({ parent: { id: runId, request } });
      const [first, second, third] = [await child("a/b"), await child("a/b"), await child("c")];
      await world.start();
      const read = await world.store.listChildren(runId, null, 10);
      expect(read.map(({ id }) => id)).toEqual([first, second, third].sort());
      expect(read.find(({ id }) => id === third)).toEqual({
        id: third,
        request: "c",
        status: "pending",
        epoch: 0,
        createdAt: await world.now(),
        endedAt: null,
        error: null,
      });
      expect(await world.store.listChildren(runId, read[0]!.id, 1)).toEqual([read[1]]);
      expect(await world.store.listChildren(third, null, 10)).toEqual([]);
      expect(await world.store.listChildren(world.nextId(), null, 10)).toEqual([]);
      await world.end(parent, "failed");
      const stopped = await world.store.listChildren(runId, null, 10);
      expect(stopped.map(({ status, endedAt, error }) => [status, endedAt, error !== null])).toEqual(
        await Promise.all([1, 2, 3].map(async () => ["cancelled", await world.now(), true])),
      );
    });

    test("a run that is not there reads as null", async ({ world }) => {
      expect(await world.store.getRun(world.nextId())).toBeNull();
    });

    test("a held run shows its worker", async ({ world }) => {
      const lease = await world.startHeld();
      expect(await world.store.getRun(lease.runId)).toMatchObject({
        status: "running",
        epoch: 1,
        attempt: 1,
        workerId: lease.workerId,
        parkReason: null,
        dueAt: null,
        wants: null,
        endedAt: null,
      });
    });

    test("a parked run shows why, until when and what it wants", async ({ world }) => {
      const dueAt = (await world.now()) + 1_000;
      const runId = await world.startParked({
        reason: "retry",
        dueAt,
        wants: ["cancel"],
        attemptFailed: true,
      });
      expect(await world.store.getRun(runId)).toMatchObject({
        status: "waiting",
        epoch: 1,
        attempt: 2,
        workerId: null,
        parkReason: "retry",
        dueAt,
        wants: ["cancel"],
      });
    });

    test("an ended run shows its result and is in no room", async ({ world }) => {
      const lease = await world.startHeld({ input: json({ a: 1 }) });
      await world.clock.advance("1s");
      await world.end(lease, "completed", { output: json("yes") });
      expect(await world.store.getRun(lease.runId)).toMatchObject({
        status: "completed",
        epoch: 1,
        attempt: 1,
        workerId: null,
        parkReason: null,
        dueAt: null,
        wants: null,
        endedAt: await world.now(),
        input: json({ a: 1 }),
        output: json("yes"),
        error: null,
      });
    });

    test("the status follows from the room", async ({ world }) => {
      for (const [status, runIds] of Object.entries(await startOneOfEach(world))) {
        for (const runId of runIds) expect(await world.store.getRun(runId)).toMatchObject({ status });
      }
    });
  });

  describe("reading how runs ended", () => {
    test("a live run reads as null, one that is not there does not appear", async ({ world }) => {
      const live = [await world.start(), await world.startParked({}, { queue: "parked" })];
      const done = await world.startHeld({ queue: "done" });
      await world.end(done, "completed", { output: json(1, `["x"]`) });
      const failed = await world.startHeld({ queue: "failed" });
      await world.end(failed, "failed", { error: json("no") });
      const ends = await world.store.getEnds([...live, done.runId, world.nextId(), failed.runId]);
      expect(ends).toEqual(
        new Map([
          [live[0], null],
          [live[1], null],
          [done.runId, { status: "completed", output: json(1, `["x"]`), error: null }],
          [failed.runId, { status: "failed", output: null, error: json("no") }],
        ]),
      );
    });

    test("asking for none answers none", async ({ world }) => {
      expect(await world.store.getEnds([])).toEqual(new Map());
    });
  });

  describe("listing", () => {
    test("the newest runs come first, no more than the limit", async ({ world }) => {
      const runIds = [await world.start(), await world.start(), await world.start()];
      expect(await listIds(world, {})).toEqual(runIds.toReversed());
      expect(await listIds(world, { limit: 2 })).toEqual([runIds[2], runIds[1]]);
    });

    test("an empty store lists nothing", async ({ world }) => {
      expect(await listIds(world, {})).toEqual([]);
    });

    test("a listed run is what getRun answers", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] }, { input: json([1]), key: "k" });
      const page = await world.store.listRuns({ limit: 10, look: 10 });
      expect(page).toEqual({ runs: [await world.store.getRun(runId)], next: null });
    });

    test("pages follow each other without gap or repetition, whatever is started meanwhile", async ({
      world,
    }) => {
      const runIds: string[] = [];
      for (let n = 0; n < 7; n += 1) runIds.push(await world.start());
      const seen: string[] = [];
      let page = await listIds(world, { limit: 3 });
      while (page.length > 0) {
        seen.push(...page);
        await world.start();
        page = await listIds(world, { limit: 3, before: page.at(-1)! });
      }
      expect(seen).toEqual(runIds.toReversed());
    });

    test("a page begins strictly behind the id it was given, there or not", async ({ world }) => {
      const old = await world.start();
      const between = world.nextId();
      const young = await world.start();
      expect(await listIds(world, { before: young })).toEqual([old]);
      expect(await listIds(world, { before: between })).toEqual([old]);
      expect(await listIds(world, { before: old })).toEqual([]);
    });

    test("runs can be listed by status", async ({ world }) => {
      for (const [status, runIds] of Object.entries(await startOneOfEach(world))) {
        expect(await listIds(world, { status: status as RunStatus })).toEqual(
          [...runIds].sort().toReversed(),
        );
      }
    });

    test("runs can be listed by workflow, by queue and by all together", async ({ world }) => {
      const shipping = { workflow: "ship" };
      const slow = { queue: "slow" };
      const both = await world.start({ ...shipping, ...slow });
      const shipOnly = await world.start(shipping);
      const slowOnly = await world.start(slow);
      await world.start();
      const held = await world.hold(await world.start({ ...shipping, ...slow, version: 2 }));
      expect(await listIds(world, shipping)).toEqual([held.runId, shipOnly, both]);
      expect(await listIds(world, slow)).toEqual([held.runId, slowOnly, both]);
      expect(await listIds(world, { ...shipping, ...slow })).toEqual([held.runId, both]);
      expect(await listIds(world, { ...shipping, ...slow, status: "pending" })).toEqual([both]);
      expect(await listIds(world, { ...shipping, ...slow, before: held.runId, limit: 1 })).toEqual([both]);
      expect(await listIds(world, { workflow: "unknown" })).toEqual([]);
    });
  });

  describe("reading history", () => {
    test("events come in order, from behind the given one, to anyone", async ({ world }) => {
      const lease = await world.startHeld();
      await world.record(
        lease,
        [1, 2, 3].map((seq) => event(seq, "step_completed", { name: `s${seq}` })),
      );
      const seqs = async (afterSeq: number): Promise<readonly number[]> =>
        (await world.store.loadHistory(lease.runId, afterSeq)).map(({ seq }) => seq);
      expect(await seqs(0)).toEqual([1, 2, 3]);
      expect(await seqs(1)).toEqual([2, 3]);
      expect(await seqs(3)).toEqual([]);
      await world.end(lease);
      expect(await seqs(2)).toEqual([3, 4]);
    });

    test("those that are asked for at once and said to be short are whole, however large", async ({
      world,
    }) => {
      const sizes = [1, 700_000, 1, 500_000, 2, 300_000];
      const leases: Lease[] = [];
      for (const size of sizes) {
        const lease = await world.startHeld();
        const data = json("\u20ac".repeat(size));
        await world.record(
          lease,
          [1, 2, 3, 4].map((seq) => event(seq, "step_completed", { name: `s${seq}`, data })),
        );
        leases.push(lease);
      }
      const asked = [...leases.map(({ runId }) => runId), world.nextId()];
      const loaded = await Promise.all(asked.map((runId) => world.store.loadHistory(runId, 0, 4)));
      expect(loaded.map((history) => history.map(({ seq }) => seq))).toEqual([
        ...leases.map(() => [1, 2, 3, 4]),
        [],
      ]);
      expect(loaded.flat().map(({ data }) => data?.json.length)).toEqual(
        sizes.flatMap((size) => [1, 2, 3, 4].map(() => size + 2)),
      );
    });

    test("each run has a history of its own", async ({ world }) => {
      const one = await world.startHeld();
      const two = await world.startHeld();
      await world.record(one, [event(1, "step_completed", { name: "one" })]);
      await world.record(two, [event(1, "step_completed", { name: "two" })]);
      expect(await world.history(one.runId)).toMatchObject([{ seq: 1, name: "one" }]);
      expect(await world.history(two.runId)).toMatchObject([{ seq: 1, name: "two" }]);
    });

    test("a run that is not there has no history", async ({ world }) => {
      expect(await world.history(world.nextId())).toEqual([]);
    });
  });

  describe("the clock", () => {
    test("is the store's own, in whole ms", async ({ world }) => {
      const before = await world.now();
      await world.clock.advance("1.5s");
      expect(await world.now()).toBe(before + 1_500);
    });
  });
}
