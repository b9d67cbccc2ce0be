import { describe, expect } from "vitest";
import type { RunId } from "../../src/core/ids.ts";
import type { Continuation, Lease } from "../../src/store/lease.ts";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { event, expectSound, json, type World } from "./world.ts";

/** Ends a held run by letting another go on from it, whose id is answered. */
async function goOn(world: World, lease: Lease, more: Partial<Continuation> = {}): Promise<RunId> {
  const seq = (await world.history(lease.runId)).length + 1;
  const next = { id: world.nextId(), version: 1, input: json("next"), isRaw: false, ...more };
  const events = [
    event(seq, "continued", { data: json({ id: next.id }) }),
    event(seq + 1, "completed", { attempt: 1 }),
  ];
  await world.end(lease, "completed", { events, output: null, next });
  expectSound(await world.snapshot());
  return next.id;
}

const child = "call:child#1";

export function describeContinuing(test: StoreTest): void {
  describe("going on as another run", () => {
    test("a run that went on is not redriven, from its start neither: its chain lives elsewhere", async ({
      world,
    }) => {
      const lease = await world.startHeld();
      const next = await goOn(world, lease);
      await world.expectUnchanged(async () =>
        expect(await world.store.redrive([lease.runId], { from: "start" })).toEqual(
          new Map([[lease.runId, "completed"]]),
        ),
      );
      await world.end(await world.hold(next));
      expect(await world.store.redrive([next], { from: "start" })).toEqual(new Map([[next, "redriven"]]));
    });

    test("the next run has the terms of the old one, an input of its own, and can be claimed at once", async ({
      world,
    }) => {
      const now = await world.now();
      const retry = { attempts: 2, backoff: "fixed", initialMs: 1, maxMs: 1, jitter: false } as never;
      const terms = { key: "k", tags: ["a", "b"], priority: 3, retry, deadlineAt: now + 60_000 };
      const lease = await world.startHeld({ ...terms, expiresAt: now + 50_000, input: json("first") });
      await world.clock.advance("1s");
      const next = await goOn(world, lease, { version: 2, isRaw: true });

      expect(await world.store.getRun(lease.runId)).toMatchObject({
        status: "completed",
        continuedAs: next,
        firstId: lease.runId,
        output: null,
      });
      expect(await world.store.getRun(next)).toMatchObject({
        status: "pending",
        workflow: "checkout",
        version: 2,
        queue: "default",
        key: "k",
        tags: ["a", "b"],
        priority: 3,
        deadlineAt: now + 60_000,
        expiresAt: null,
        firstId: lease.runId,
        continuedAs: null,
        rootId: lease.runId,
        depth: 0,
        epoch: 0,
        attempt: 1,
        createdAt: now + 1_000,
        input: json("next"),
      });
      const held = await world.hold(next);
      expect(held.epoch).toBe(1);
      const { runs } = await world.snapshot();
      expect(runs.find(({ id }) => id === next)).toMatchObject({ retry, isRaw: true });
      expect(await world.store.findKey("k")).toBe(next);
    });

    test("the next run has no streams yet, and does not write to those of the old one", async ({ world }) => {
      const lease = await world.startHeld();
      const item = { data: json(1), step: null, attempt: null, isFirst: false, isClosing: false };
      await world.store.record({
        lease,
        events: [],
        children: [],
        written: [{ ...item, name: "a", position: 1 }],
      });
      const next = await goOn(world, lease);
      expect(await world.store.lastPositions(next, ["a"])).toEqual(new Map());
      const held = await world.hold(next);
      const written = [{ ...item, name: "b", position: 1 }];
      await world.store.record({ lease: held, events: [], children: [], written });
      expect(await world.store.lastPositions(next, ["a", "b"])).toEqual(new Map([["b", 1]]));
      expect(await world.store.lastPositions(lease.runId, ["a", "b"])).toEqual(new Map([["a", 1]]));
    });

    test("a start under its key, repeated, finds the run at the end of the chain", async ({ world }) => {
      const first = { key: "k", input: json("first") };
      const lease = await world.startHeld(first);
      const next = await goOn(world, lease);
      const repeated = world.newRun(first);
      expect(await world.store.createRuns([repeated])).toEqual([{ kind: "existing", id: next }]);
      const other = world.newRun({ key: "k", input: json("next") });
      expect(await world.store.createRuns([other])).toEqual([{ kind: "conflict", id: next }]);
    });

    test("unread messages move on in their order, and taken ones stay", async ({ world }) => {
      const lease = await world.startHeld();
      const data = json({ n: 1 }, `{"codec":"c"}`);
      await world.tell(lease.runId, "signal:a", { data });
      await world.clock.advance(10);
      await world.tell(lease.runId, "signal:b", { idempotencyKey: "b" });
      await world.tell(lease.runId, "signal:taken", { idempotencyKey: "t" });
      const [a, b, taken] = await world.readInbox(lease);
      await world.record(lease, [event(1, "signal_received", { takes: taken!.id })]);
      const next = await goOn(world, lease);
      const held = await world.hold(next);
      const moved = await world.readInbox(held);
      expect(moved).toEqual([
        { ...a, sentTo: lease.runId },
        { ...b, sentTo: lease.runId },
      ]);
      expect(await world.inbox(lease.runId)).toMatchObject([
        { id: a!.id, takenSeq: 0 },
        { id: b!.id, takenSeq: 0, idempotencyKey: null },
        { id: taken!.id, takenSeq: 1, idempotencyKey: "t" },
      ]);
      const last = await goOn(world, held);
      expect(await world.readInbox(await world.hold(last))).toEqual(moved);
    });

    test("an idempotency key holds for the whole chain", async ({ world }) => {
      const lease = await world.startHeld();
      const sent = world.message(lease.runId, "signal:a", { idempotencyKey: "one" });
      await world.store.tell(sent);
      const [a] = await world.readInbox(lease);
      await world.record(lease, [event(1, "signal_received", { takes: a!.id })]);
      await world.tell(lease.runId, "signal:b", { idempotencyKey: "two" });
      const next = await goOn(world, lease);
      const last = await goOn(world, await world.hold(next));
      await world.expectUnchanged(async () => {
        expect(await world.store.tell(sent)).toBe("accepted");
        for (const runId of [lease.runId, next, last])
          for (const idempotencyKey of ["one", "two"])
            expect(await world.tell(runId, "signal:a", { idempotencyKey })).toBe("duplicate");
        expect(await world.tell(lease.runId, "signal:a", { idempotencyKey: "three" })).toBe("ended");
      });
      expect(await world.tell(last, "signal:a", { idempotencyKey: "three" })).toBe("accepted");
    });

    test("a send that is repeated after its run went on is known by its id", async ({ world }) => {
      const lease = await world.startHeld();
      const sent = world.message(lease.runId, "signal:a");
      await world.store.tell(sent);
      const next = await goOn(world, lease);
      await world.expectUnchanged(async () => expect(await world.store.tell(sent)).toBe("accepted"));
      expect(await world.placeOf(next)).toMatchObject({ room: "ready", told: true });
    });

    test("the end of a child is not passed on: another run's request has the same name", async ({
      world,
    }) => {
      const lease = await world.startHeld();
      const childLease = await world.hold(
        await world.start({ parent: { id: lease.runId, request: child }, queue: "children" }),
      );
      await world.end(childLease);
      const next = await goOn(world, lease);
      expect(await world.inbox(next)).toEqual([]);
      expect(await world.inbox(lease.runId)).toMatchObject([{ topic: "child", takenSeq: null }]);
    });

    test("a cancel that nobody has read ends the next run before it begins", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "cancel", { data: json({ reason: "no more" }) });
      const next = await goOn(world, lease);
      expect(await world.store.getRun(next)).toMatchObject({
        status: "cancelled",
        error: { json: expect.stringContaining("no more") as unknown },
      });
      expect(await world.kinds(next)).toEqual(["cancel_requested", "cancelled"]);
    });

    test("a reason that was sealed for the old run is dropped", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "cancel", { data: json("sealed", `{"codec":"c"}`) });
      const next = await goOn(world, lease);
      expect(await world.history(next)).toMatchObject([
        { kind: "cancel_requested", data: null },
        { kind: "cancelled" },
      ]);
    });

    test("a pause that nobody has obeyed holds the next run until it is resumed", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "pause");
      const next = await goOn(world, lease);
      expect(await world.placeOf(next)).toMatchObject({ room: "parked", reason: "paused" });
      await world.tell(next, "resume");
      expect(await world.placeOf(next)).toMatchObject({ room: "ready" });
    });

    test("the parent hears of the last end alone, under the request it made", async ({ world }) => {
      const parentId = await world.startParked({ wants: ["child"] }, { queue: "parents" });
      const lease = await world.hold(await world.startChild(parentId));
      const next = await goOn(world, lease);
      expect(await world.placeOf(parentId)).toMatchObject({ room: "parked" });
      expect(await world.inbox(parentId)).toEqual([]);
      expect(await world.store.getRun(next)).toMatchObject({ parentId, depth: 1, rootId: parentId });
      await world.end(await world.hold(next));
      expect(await world.placeOf(parentId)).toMatchObject({ room: "ready", told: true });
      expect(await world.inbox(parentId)).toMatchObject([
        {
          id: next,
          topic: "child",
          name: child,
          data: { value: { id: next, first: lease.runId, status: "completed", output: "done", error: null } },
        },
      ]);
    });

    test("a parent that is cancelled asks the run at the end of the chain to stop", async ({ world }) => {
      const parent = await world.startHeld({ queue: "parents" });
      const lease = await world.hold(await world.startChild(parent.runId));
      const next = await goOn(world, lease);
      const held = await world.hold(next);
      await world.end(parent, "cancelled");
      expect(await world.readInbox(held)).toMatchObject([{ topic: "cancel" }]);
      expect(await world.inbox(lease.runId)).toEqual([]);
    });

    test("a redriven parent hears of the run at the end of the chain alone", async ({ world }) => {
      const parent = await world.startHeld({ queue: "parents" });
      const lease = await world.hold(await world.startChild(parent.runId, { isDetached: true }));
      await world.end(parent, "failed");
      const next = await goOn(world, lease);
      await world.store.redrive([parent.runId]);
      expect(await world.inbox(parent.runId)).toEqual([]);
      await world.end(await world.hold(next));
      expect(await world.inbox(parent.runId)).toMatchObject([{ id: next, takenSeq: null }]);
    });

    test("whoever waits for a run that went on is told of the end of its chain", async ({ world }) => {
      const lease = await world.startHeld();
      const next = await goOn(world, lease);
      const ends = await world.store.getEnds([lease.runId, next]);
      expect(ends.get(lease.runId)).toEqual({
        status: "completed",
        output: null,
        error: null,
        chainEnd: next,
      });
      expect(ends.get(next)).toBeNull();
      const last = await goOn(world, await world.hold(next));
      expect((await world.store.getEnds([lease.runId])).get(lease.runId)).toMatchObject({ chainEnd: last });
    });

    test("hints say that the old run ended and that there is work", async ({ world }) => {
      const lease = await world.startHeld();
      const hints = await hintsOf(world, () => goOn(world, lease));
      expect(hints).toContainEqual({ kind: "ended", runId: lease.runId });
      expect(hints).toContainEqual({ kind: "ready", queue: "default" });
    });

    test("once the lease is gone nothing goes on", async ({ world }) => {
      const lease = await world.startHeld({ key: "k" });
      await world.tell(lease.runId, "signal:a");
      await world.crash();
      await world.expectUnchanged(async () => {
        await expect(goOn(world, lease)).rejects.toMatchObject({ code: "LEASE_LOST" });
      });
    });

    test("a message that a caller's transaction left with the old run is passed on", async ({ world }) => {
      const lease = await world.startHeld();
      const next = await goOn(world, lease);
      const last = await goOn(world, await world.hold(next));
      await world.insert(lease.runId, "signal:late");
      await world.store.wakeTold([lease.runId, last]);
      const lasts = await world.inbox(last);
      expect(lasts.map(({ topic, sentTo }) => [topic, sentTo])).toEqual([["signal:late", lease.runId]]);
      expect(await world.placeOf(last)).toMatchObject({ room: "ready", told: true });
    });
  });

  describe("patches", () => {
    test("are counted over live runs, from their first use", async ({ world }) => {
      const patched = (seq: number, name: string) => event(seq, "patched", { name });
      const [older, ended] = [await world.startHeld(), await world.startHeld()];
      await world.clock.advance("1s");
      const since = await world.now();
      await world.record(ended, [patched(1, "p")]);
      await world.end(ended);
      await world.clock.advance("1s");
      const [using, newer] = [await world.startHeld(), await world.startHeld()];
      await world.record(using, [patched(1, "p"), patched(2, "q")]);
      const other = await world.startHeld({ workflow: "other" });
      await world.record(other, [patched(1, "p")]);
      expect(await world.store.listPatches("checkout", 1)).toEqual([
        { patch: "p", since, runs: 1, olderRuns: 1, newerRuns: 1 },
        { patch: "q", since: since + 1_000, runs: 1, olderRuns: 1, newerRuns: 1 },
      ]);
      await world.end(older);
      await world.end(newer);
      expect(await world.store.listPatches("checkout", 1)).toMatchObject([
        { olderRuns: 0, newerRuns: 0 },
        { olderRuns: 0, newerRuns: 0 },
      ]);
      expect(await world.store.listPatches("checkout", 2)).toEqual([]);
    });
  });

  describe("blocked runs", () => {
    test("are due at once when a worker that may have their code is registered", async ({ world }) => {
      const blocked = { reason: "blocked", delayMs: 60_000, wants: ["cancel", "pause"] } as const;
      const [mine, other, elsewhere] = [
        await world.startParked(blocked),
        await world.startParked(blocked, { version: 2 }),
        await world.startParked(blocked, { queue: "elsewhere" }),
      ];
      const retrying = await world.startParked({ ...blocked, reason: "retry" });
      const later = (await world.now()) + 60_000;
      await world.worker({ workflows: [] });
      const fitting = world.newWorker({ workflows: ["checkout@1"] });
      await world.store.registerWorker(fitting);
      const now = await world.now();
      for (const [runId, dueAt] of [
        [mine, now],
        [other, later],
        [elsewhere, later],
        [retrying, later],
      ] as const)
        expect(await world.placeOf(runId)).toMatchObject({ room: "parked", dueAt });
      expect(await world.store.wakeDue(10)).toMatchObject({ woken: 1 });
      const again = await world.hold(mine);
      await world.park(again, blocked);
      await world.expectUnchanged(() => world.store.registerWorker(fitting));
    });
  });
}
