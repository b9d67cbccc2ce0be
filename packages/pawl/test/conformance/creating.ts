import { describe, expect } from "vitest";
import type { CreateAnswer, NewRun } from "../../src/store/run-record.ts";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { json, type World } from "./world.ts";

export function describeCreating(test: StoreTest): void {
  describe("creating runs", () => {
    test("a new run is ready at once, with nothing counted against it", async ({ world }) => {
      const runId = await world.start();
      expect(await world.placeOf(runId)).toEqual({
        room: "ready",
        runId,
        epoch: 0,
        lastSeq: 0,
        attempt: 1,
        failures: 0,
        crashes: 0,
        suspicion: 0,
        told: false,
        readyAt: await world.now(),
        expiresAt: null,
      });
      expect(await world.history(runId)).toEqual([]);
    });

    test("a run whose start lies ahead is parked until then", async ({ world }) => {
      const startAt = (await world.now()) + 1;
      const runId = await world.start({ startAt });
      expect(await world.placeOf(runId)).toEqual({
        room: "parked",
        runId,
        epoch: 0,
        lastSeq: 0,
        attempt: 1,
        failures: 0,
        crashes: 0,
        suspicion: 0,
        reason: "delayed",
        dueAt: startAt,
        wants: ["cancel", "pause"],
        fires: null,
      });
    });

    test("a run whose start is now, or has passed, is ready at once", async ({ world }) => {
      const now = await world.now();
      const runIds = [await world.start({ startAt: now }), await world.start({ startAt: now - 1 })];
      for (const runId of runIds)
        expect(await world.placeOf(runId)).toMatchObject({ room: "ready", readyAt: now });
    });

    test("a run is kept exactly as it was given", async ({ world }) => {
      const now = await world.now();
      const input = {
        json: `{ "b": 1.0, "a": [12345678901234567890, "\\u00e9é"] }`,
        notes: `{"a.0": ["bigint"]}`,
      };
      const run = world.newRun({
        workflow: "ship order",
        version: 7,
        queue: "slow / 1",
        priority: -3,
        input,
        isRaw: true,
        key: "order:1",
        tags: ["red", "a b"],
        retry: { attempts: 2, initialMs: 0, maxMs: 5, factor: 1, jitter: false, delaysMs: [7] },
        startAt: now - 1,
        expiresAt: now + 5,
        deadlineAt: now + 6,
      });
      await world.store.createRuns([run]);
      expect(await world.store.getRun(run.id)).toEqual({
        id: run.id,
        workflow: "ship order",
        version: 7,
        queue: "slow / 1",
        priority: -3,
        status: "pending",
        key: "order:1",
        tags: ["red", "a b"],
        parentId: null,
        rootId: run.id,
        depth: 0,
        forkedFrom: null,
        retry: run.retry,
        firstId: run.id,
        continuedAs: null,
        epoch: 0,
        attempt: 1,
        workerId: null,
        parkReason: null,
        dueAt: null,
        wants: null,
        createdAt: now,
        startAt: now - 1,
        expiresAt: now + 5,
        deadlineAt: now + 6,
        endedAt: null,
        input,
        output: null,
        error: null,
      });
      expect((await world.snapshot()).runs).toMatchObject([{ isRaw: true, retry: run.retry }]);
    });

    test("creating a run whose id exists changes nothing, whatever else it says", async ({ world }) => {
      const run = world.newRun({ input: json(1) });
      await world.store.createRuns([run]);
      await world.clock.advance("1s");
      const other = {
        ...run,
        workflow: "other",
        queue: "other",
        input: json(2),
        startAt: (await world.now()) + 10,
      };
      const answers = await world.expectUnchanged(() => world.store.createRuns([other]));
      expect(answers).toEqual([{ kind: "created", id: run.id }]);
    });

    test("creating a run again does not bring it back from where it went", async ({ world }) => {
      const run = world.newRun({ key: "once" });
      await world.store.createRuns([run]);
      const lease = await world.hold(run.id);
      await world.expectUnchanged(() => world.store.createRuns([run]));
      await world.end(lease);
      const answers = await world.expectUnchanged(() => world.store.createRuns([run]));
      expect(answers).toEqual([{ kind: "created", id: run.id }]);
    });

    test("a call that is repeated with a run that is new creates that one, and each once", async ({
      world,
    }) => {
      const [known, fresh] = [
        world.newRun({ input: json(1) }),
        world.newRun({ queue: "other", priority: 3 }),
      ];
      await world.store.createRuns([known]);
      const place = await world.placeOf(known.id);
      await world.clock.advance("1s");
      const answers = await world.store.createRuns([fresh, known, fresh]);
      expect(answers.map(({ id }) => id)).toEqual([fresh.id, known.id, fresh.id]);
      expect(await world.placeOf(known.id)).toEqual(place);
      expect(await world.placeOf(fresh.id)).toMatchObject({ room: "ready", readyAt: await world.now() });
      expect(await world.store.getRun(fresh.id)).toMatchObject({ queue: "other", priority: 3, input: null });
    });

    test("each run of a call is answered in its place", async ({ world }) => {
      const taken = await world.start({ key: "taken", input: json(1) });
      const runs = [
        world.newRun(),
        world.newRun({ key: "taken", input: json(1) }),
        world.newRun({ key: "free" }),
      ];
      expect(await world.store.createRuns(runs)).toEqual([
        { kind: "created", id: runs[0]!.id },
        { kind: "existing", id: taken },
        { kind: "created", id: runs[2]!.id },
      ]);
      const ids = (await world.snapshot()).runs.map(({ id }) => id);
      expect(ids).toEqual([taken, runs[0]!.id, runs[2]!.id]);
    });

    test("one conflict withholds all runs of a call, and leaves their keys free", async ({ world }) => {
      const taken = await world.start({ key: "taken", input: json(1) });
      const runs = [
        world.newRun(),
        world.newRun({ key: "taken", input: json(1) }),
        world.newRun({ key: "taken", input: json(2) }),
        world.newRun({ key: "free" }),
      ];
      const answers = await world.expectUnchanged(() => world.store.createRuns(runs));
      expect(answers.map(({ kind }) => kind)).toEqual(["withheld", "withheld", "conflict", "withheld"]);
      expect(answers[2]!.id).toBe(taken);
      await world.start({ key: "free", input: json(3) });
    });

    test("creating nothing is answered with nothing", async ({ world }) => {
      expect(await world.expectUnchanged(() => world.store.createRuns([]))).toEqual([]);
    });

    test("listeners hear once of each queue that has new work, and not of runs that start later", async ({
      world,
    }) => {
      const startAt = (await world.now()) + 1_000;
      const hints = await hintsOf(world, () =>
        world.store.createRuns([
          world.newRun({ queue: "a" }),
          world.newRun({ queue: "a" }),
          world.newRun({ queue: "b" }),
          world.newRun({ queue: "later", startAt }),
        ]),
      );
      expect(new Set(hints)).toEqual(
        new Set([
          { kind: "ready", queue: "a" },
          { kind: "ready", queue: "b" },
        ]),
      );
    });
  });

  describe("keys", () => {
    test("a key that an equal run has is answered with that run", async ({ world }) => {
      const first = await world.start({ key: "k", input: json({ order: 1 }) });
      const again = world.newRun({ key: "k", input: json({ order: 1 }) });
      const answers = await world.expectUnchanged(() => world.store.createRuns([again]));
      expect(answers).toEqual([{ kind: "existing", id: first }]);
    });

    for (const [what, other] of [
      ["another workflow", { workflow: "other" }],
      ["another version", { version: 2 }],
      ["another input", { input: json({ order: 2 }) }],
      ["no input", { input: null }],
    ] as const) {
      test(`a key that a run with ${what} has is a conflict`, async ({ world }) => {
        const first = await world.start({ key: "k", input: json({ order: 1 }) });
        const run = world.newRun({ key: "k", input: json({ order: 1 }), ...other });
        const answers = await world.expectUnchanged(() => world.store.createRuns([run]));
        expect(answers).toEqual([{ kind: "conflict", id: first }]);
      });
    }

    for (const [what, one, other] of [
      ["the order of keys", `{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`],
      ["white space", `{"a":[1,2]}`, ` { "a" : [ 1 , 2 ] } `],
      ["the spelling of numbers", `[1,100,-0.5,0]`, `[1.0,1e2,-5e-1,0.00]`],
      ["the escaping of text", `"é/"`, `"\\u00e9\\/"`],
    ] as const) {
      test(`${what} does not make inputs different`, async ({ world }) => {
        const first = await world.start({ key: "k", input: { json: one, notes: null } });
        const run = world.newRun({ key: "k", input: { json: other, notes: null } });
        expect(await world.store.createRuns([run])).toEqual([{ kind: "existing", id: first }]);
      });
    }

    for (const [what, one, other] of [
      ["the order of items", `[1,2]`, `[2,1]`],
      ["the type of a value", `[1]`, `["1"]`],
      ["a missing member", `{"a":null}`, `{}`],
      ["the case of text", `"a"`, `"A"`],
    ] as const) {
      test(`${what} makes inputs different`, async ({ world }) => {
        const first = await world.start({ key: "k", input: { json: one, notes: null } });
        const run = world.newRun({ key: "k", input: { json: other, notes: null } });
        expect(await world.store.createRuns([run])).toEqual([{ kind: "conflict", id: first }]);
      });
    }

    test("no input and the input null are different", async ({ world }) => {
      const first = await world.start({ key: "k", input: null });
      const run = world.newRun({ key: "k", input: json(null) });
      expect(await world.store.createRuns([run])).toEqual([{ kind: "conflict", id: first }]);
    });

    test("queue, priority and start do not make runs different", async ({ world }) => {
      const first = await world.start({ key: "k", input: json(1) });
      const startAt = (await world.now()) + 1;
      const run = world.newRun({ key: "k", input: json(1), queue: "other", priority: 9, startAt });
      expect(await world.store.createRuns([run])).toEqual([{ kind: "existing", id: first }]);
    });

    test("notes on types make runs different, but for the order of their keys", async ({ world }) => {
      const value = { a: "2026-01-01", b: "1" };
      const notes = `{"types":{"a":"Date","b":"bigint"}}`;
      const first = await world.start({ key: "k", input: json(value, notes) });
      const same = world.newRun({
        key: "k",
        input: json({ b: "1", a: "2026-01-01" }, `{"types":{"b":"bigint", "a":"Date"}}`),
      });
      const plain = world.newRun({ key: "k", input: json(value) });
      const other = world.newRun({ key: "k", input: json(value, `{"types":{"a":"Date"}}`) });
      expect(await createEach(world, [same, plain, other])).toEqual([
        { kind: "existing", id: first },
        { kind: "conflict", id: first },
        { kind: "conflict", id: first },
      ]);
    });

    test("a digest in the notes stands for the input, which may differ", async ({ world }) => {
      const first = await world.start({ key: "k", input: json("secret 1", `{"codec":"c","digest":"d"}`) });
      const same = world.newRun({ key: "k", input: json("secret 2", `{"codec":"c","digest":"d"}`) });
      const other = world.newRun({ key: "k", input: json("secret 1", `{"codec":"c","digest":"e"}`) });
      expect(await createEach(world, [same, other])).toEqual([
        { kind: "existing", id: first },
        { kind: "conflict", id: first },
      ]);
    });

    test("within one call the first run with a key wins", async ({ world }) => {
      const runs = [world.newRun({ key: "k", input: json(1) }), world.newRun({ key: "k", input: json(1) })];
      expect(await world.store.createRuns(runs)).toEqual([
        { kind: "created", id: runs[0]!.id },
        { kind: "existing", id: runs[0]!.id },
      ]);
      expect((await world.snapshot()).runs).toHaveLength(1);
    });

    test("within one call, the same key for another input withholds all of it", async ({ world }) => {
      const runs = [
        world.newRun({ key: "k", input: json(1) }),
        world.newRun({ key: "k", input: json(2) }),
        world.newRun(),
      ];
      const answers = await world.expectUnchanged(() => world.store.createRuns(runs));
      expect(answers).toEqual([
        { kind: "withheld", id: runs[0]!.id },
        { kind: "conflict", id: runs[0]!.id },
        { kind: "withheld", id: runs[2]!.id },
      ]);
    });

    test("a run that must be new conflicts with an equal one, and not with itself", async ({ world }) => {
      const run = world.newRun({ key: "k", mustBeNew: true });
      const created = [{ kind: "created", id: run.id }];
      expect(await world.store.createRuns([run])).toEqual(created);
      expect(await world.expectUnchanged(() => world.store.createRuns([run]))).toEqual(created);
      const again = world.newRun({ key: "k", mustBeNew: true });
      expect(await world.expectUnchanged(() => world.store.createRuns([again]))).toEqual([
        { kind: "conflict", id: run.id },
      ]);
    });

    test("a key holds for ever, also when its run has ended", async ({ world }) => {
      const lease = await world.startHeld({ key: "k" });
      await world.end(lease);
      await world.clock.advance("52w");
      const answers = await world.expectUnchanged(() => world.store.createRuns([world.newRun({ key: "k" })]));
      expect(answers).toEqual([{ kind: "existing", id: lease.runId }]);
    });

    test("of many starts with one key at the same moment, one creates the run and all answer it", async ({
      world,
    }) => {
      const runs = Array.from({ length: 20 }, () => world.newRun({ key: "k", input: json(1) }));
      const answers = (await Promise.all(runs.map((run) => world.store.createRuns([run])))).flat();
      const created = answers.filter(({ kind }) => kind === "created");
      expect(created).toHaveLength(1);
      expect(new Set(answers.map(({ id }) => id))).toEqual(new Set([created[0]!.id]));
      expect((await world.snapshot()).runs).toHaveLength(1);
    });

    test("runs without a key are all different", async ({ world }) => {
      const runs = [world.newRun({ input: json(1) }), world.newRun({ input: json(1) })];
      expect(await world.store.createRuns(runs)).toMatchObject([{ kind: "created" }, { kind: "created" }]);
    });
  });

  describe("lineage", () => {
    test("a run without a parent is its own root at depth 0", async ({ world }) => {
      const runId = await world.start();
      expect(await world.store.getRun(runId)).toMatchObject({ parentId: null, rootId: runId, depth: 0 });
    });

    test("a child has its parent's root, one deeper, down the generations", async ({ world }) => {
      const root = await world.start();
      const child = await world.startChild(root);
      const grandchild = await world.startChild(child);
      expect(await world.store.getRun(child)).toMatchObject({ parentId: root, rootId: root, depth: 1 });
      expect(await world.store.getRun(grandchild)).toMatchObject({ parentId: child, rootId: root, depth: 2 });
    });

    test("a parent that is not there counts as none for root and depth", async ({ world }) => {
      const stranger = world.nextId();
      const runId = await world.startChild(stranger);
      expect(await world.store.getRun(runId)).toMatchObject({ parentId: stranger, rootId: runId, depth: 0 });
    });

    for (const [what, parent, child, effective, isDetached] of [
      ["a child without a deadline has its parent's", 10, null, 10, false],
      ["a child's later deadline is cut to its parent's", 10, 20, 10, false],
      ["a child's earlier deadline holds", 10, 5, 5, false],
      ["a child of a parent without a deadline keeps its own", null, 5, 5, false],
      ["a detached child has its own deadline alone", 10, 20, 20, true],
      ["a detached child may have no deadline", 10, null, null, true],
    ] as const) {
      test(what, async ({ world }) => {
        const now = await world.now();
        const at = (offset: number | null): number | null => (offset === null ? null : now + offset);
        const parentId = await world.start({ deadlineAt: at(parent) });
        const childId = await world.startChild(parentId, { deadlineAt: at(child), isDetached });
        const { runs } = await world.snapshot();
        expect(runs.find(({ id }) => id === childId)).toMatchObject({ deadlineAt: at(effective) });
      });
    }
  });
}

/** Each in a call of its own. */
async function createEach(world: World, runs: readonly NewRun[]): Promise<readonly CreateAnswer[]> {
  return (await Promise.all(runs.map((run) => world.store.createRuns([run])))).flat();
}
