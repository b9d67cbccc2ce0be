import { describe, expect } from "vitest";
import type { ForkedEvent } from "../../src/store/run-record.ts";
import type { StoreTest } from "./store-test.ts";
import { json } from "./world.ts";

const forked: ForkedEvent = {
  seq: 1,
  kind: "forked",
  name: null,
  at: null,
  attempt: null,
  beganAt: null,
  dueAt: null,
  data: json({ from: "x" }),
};
const step: ForkedEvent = {
  ...forked,
  seq: 2,
  kind: "step_completed",
  name: "a",
  at: 1_000,
  attempt: 2,
  beganAt: 900,
  data: json("é", `{"n":1}`),
};

export function describeForking(test: StoreTest): void {
  describe("forking", () => {
    test("creates a run with a history, which is kept as it was given", async ({ world }) => {
      const source = await world.start();
      const run = world.newRun({ forkedFrom: source, tags: ["t"] });
      expect(await world.store.fork(run, [forked, step])).toEqual({ kind: "created", id: run.id });
      expect(await world.placeOf(run.id)).toMatchObject({
        room: "ready",
        epoch: 0,
        lastSeq: 2,
        attempt: 1,
        told: false,
      });
      expect(await world.store.getRun(run.id)).toMatchObject({ status: "pending", forkedFrom: source });
      expect(await world.history(run.id)).toEqual([
        { ...forked, at: await world.now(), workerId: null },
        { ...step, workerId: null },
      ]);
    });

    test("is safe to repeat, also once the run has gone on", async ({ world }) => {
      const run = world.newRun({ queue: "forks" });
      await world.store.fork(run, [forked]);
      await world.expectUnchanged(() => world.store.fork(run, [forked]));
      await world.end(await world.hold(run.id));
      await world.expectUnchanged(async () =>
        expect(await world.store.fork(run, [forked])).toEqual({ kind: "created", id: run.id }),
      );
    });

    test("answers the run that has the key, and creates nothing", async ({ world }) => {
      const ownerId = await world.start({ key: "k" });
      await world.expectUnchanged(async () => {
        const equal = world.newRun({ key: "k" });
        expect(await world.store.fork(equal, [forked])).toEqual({ kind: "existing", id: ownerId });
        const other = world.newRun({ key: "k", version: 2 });
        expect(await world.store.fork(other, [forked])).toEqual({ kind: "conflict", id: ownerId });
      });
    });

    test("a fork that was cancelled before it began ends after its history", async ({ world }) => {
      const run = world.newRun();
      await world.store.fork(run, [forked, step]);
      await world.tell(run.id, "cancel");
      expect(await world.kinds(run.id)).toEqual([
        "forked",
        "step_completed",
        "cancel_requested",
        "cancelled",
      ]);
    });

    test("takes 20,000 facts at once", { timeout: 60_000 }, async ({ world }) => {
      const run = world.newRun();
      const facts = Array.from({ length: 19_999 }, (_, index) => ({
        ...step,
        seq: index + 2,
        name: `a#${index + 2}`,
        data: json({ text: "x".repeat(100) }),
      }));
      await world.store.fork(run, [forked, ...facts]);
      expect((await world.history(run.id)).length).toBe(20_000);
      expect(await world.placeOf(run.id)).toMatchObject({ lastSeq: 20_000 });
    });
  });
}
