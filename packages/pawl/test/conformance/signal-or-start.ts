import { describe, expect } from "vitest";
import type { NewMessage } from "../../src/store/message.ts";
import type { NewRun } from "../../src/store/run-record.ts";
import type { SignalOrStart } from "../../src/store/signal-or-start.ts";
import { hintsOf } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";
import { json, type World } from "./world.ts";

function calling(world: World, run: Partial<NewRun> = {}, more: Partial<NewMessage> = {}): SignalOrStart {
  const { runId: _, ...message } = world.message("", "signal:a", more);
  return { run: world.newRun({ key: "k", ...run }), message, boundTo: null };
}

export function describeSignalOrStart(test: StoreTest): void {
  describe("signalling or starting", () => {
    test("creates the run with the message in its inbox, for its first holder to read", async ({ world }) => {
      const call = calling(world, { input: json(1) }, { data: json({ b: 1 }) });
      const { run, message } = call;
      expect(await world.store.signalOrStart(call)).toEqual({
        kind: "created",
        id: run.id,
        told: "accepted",
      });
      expect(await world.inbox(run.id)).toMatchObject([
        { id: message.id, topic: "signal:a", takenSeq: null },
      ]);
      expect(await world.placeOf(run.id)).toMatchObject({ room: "ready", told: true });
    });

    test("wakes the run that has the key, whatever its version, input and queue", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] }, { key: "k", input: json(1) });
      const call = calling(world, { input: json(2), version: 2, queue: "other", mustBeNew: true });
      expect(await world.store.signalOrStart(call)).toEqual({ kind: "found", id: runId, told: "accepted" });
      expect(await world.placeOf(runId)).toMatchObject({ room: "ready", told: true });
      expect((await world.snapshot()).runs).toHaveLength(1);
    });

    test("is safe to repeat, also once the run has ended", async ({ world }) => {
      const call = calling(world);
      const answer = await world.store.signalOrStart(call);
      await world.expectUnchanged(async () => expect(await world.store.signalOrStart(call)).toEqual(answer));
      await world.end(await world.hold(call.run.id));
      await world.expectUnchanged(async () => expect(await world.store.signalOrStart(call)).toEqual(answer));
    });

    test("an idempotency key makes two calls one message", async ({ world }) => {
      const first = calling(world, {}, { idempotencyKey: "once" });
      const second = calling(world, {}, { idempotencyKey: "once" });
      await world.store.signalOrStart(first);
      const answer = { kind: "found", id: first.run.id, told: "duplicate" };
      expect(await world.store.signalOrStart(second)).toEqual(answer);
      expect(await world.inbox(first.run.id)).toHaveLength(1);
    });

    test("changes nothing where the run has ended, or has another workflow", async ({ world }) => {
      const lease = await world.startHeld({ key: "k" });
      await world.end(lease);
      await world.expectUnchanged(async () => {
        expect(await world.store.signalOrStart(calling(world))).toEqual({
          kind: "found",
          id: lease.runId,
          told: "ended",
        });
        expect(await world.store.signalOrStart(calling(world, { workflow: "other" }))).toEqual({
          kind: "conflict",
          id: lease.runId,
          told: null,
        });
      });
    });

    test("changes nothing where the message was sealed for another run", async ({ world }) => {
      const free = calling(world, { key: "free" });
      const taken = calling(world);
      const ownerId = await world.start({ key: "k" });
      await world.expectUnchanged(async () => {
        expect(await world.store.signalOrStart({ ...taken, boundTo: taken.run.id })).toEqual({
          kind: "elsewhere",
          id: ownerId,
          told: null,
        });
        expect(await world.store.signalOrStart({ ...free, boundTo: ownerId })).toEqual({
          kind: "elsewhere",
          id: free.run.id,
          told: null,
        });
      });
      const again = await world.store.signalOrStart({ ...taken, boundTo: ownerId });
      expect(again).toEqual({ kind: "found", id: ownerId, told: "accepted" });
      const created = await world.store.signalOrStart({ ...free, boundTo: free.run.id });
      expect(created).toMatchObject({ kind: "created", told: "accepted" });
    });

    test("many at once create one run, which gets every message", async ({ world }) => {
      const calls = Array.from({ length: 20 }, () => calling(world));
      const answers = await Promise.all(calls.map((call) => world.store.signalOrStart(call)));
      expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
      expect(answers.filter(({ kind }) => kind === "created")).toHaveLength(1);
      expect(await world.inbox(answers[0]!.id)).toHaveLength(20);
      expect((await world.snapshot()).runs).toHaveLength(1);
    });

    test("a delayed run is started with the message too, and hints for its queue", async ({ world }) => {
      const delayed = calling(world, { key: "d", startAt: (await world.now()) + 1_000 });
      await world.store.signalOrStart(delayed);
      expect(await world.placeOf(delayed.run.id)).toMatchObject({ room: "parked", reason: "delayed" });
      const call = calling(world);
      const hints = await hintsOf(world, () => world.store.signalOrStart(call));
      expect(hints).toContainEqual({ kind: "ready", queue: "default" });
    });
  });
}
