import { expect, test } from "vitest";
import { createMemoryStore } from "../src/memory/memory-store.ts";
import type { Hint } from "../src/store/hint.ts";
import { plainRun, type NewRun } from "../src/store/run-record.ts";
import { createManualClock } from "../src/testing/manual-clock.ts";

const run: NewRun = {
  id: "019b76da-a800-7000-8000-000000000001",
  workflow: "checkout",
  version: 1,
  queue: "default",
  ...plainRun,
};

test("a transition is done when the call returns, before its promise resolves", async () => {
  const store = createMemoryStore({ clock: createManualClock() });
  const created = store.createRuns([run]);
  expect(store.snapshot().ready).toHaveLength(1);
  await created;
});

test("the store's time is whole ms, whatever its clock says", async () => {
  const store = createMemoryStore({ clock: { now: () => 1_000.9 } });
  expect(await store.now()).toBe(1_000);
});

test("a run is held from its start, however quickly time passes", async () => {
  let now = 0;
  const store = createMemoryStore({ clock: { now: () => now++ } });
  const workerId = "019b76da-a800-7000-8000-000000000002";
  const about = { host: "h", pid: 1, queues: ["default"], workflows: [], concurrency: 1, settings: {} };
  await store.registerWorker({ id: workerId, leaseMs: 15_000, ...about });
  const { held } = await store.createHeld(run, { workerId, leaseMs: 15_000, crashLimit: 3 });
  expect(held).toMatchObject({ runId: run.id, epoch: 1 });
});

test("hints come after the transition, never within it", async () => {
  const store = createMemoryStore({ clock: createManualClock() });
  const heard: Hint[] = [];
  store.subscribe((hint) => heard.push(hint));
  const created = store.createRuns([run]);
  expect(heard).toEqual([]);
  await created;
  await Promise.resolve();
  expect(heard).toEqual([{ kind: "ready", queue: "default" }]);
});

test("a test can hold hints back, drop them and send them twice", async () => {
  const held: (() => void)[] = [];
  const store = createMemoryStore({
    clock: createManualClock(),
    deliver: (send, hint) => {
      if (hint.kind === "ready") held.push(send, send);
    },
  });
  const heard: Hint[] = [];
  store.subscribe((hint) => heard.push(hint));
  await store.createRuns([run]);
  await store.insertMessage({
    id: run.id,
    runId: run.id,
    topic: "signal:a",
    data: null,
    idempotencyKey: null,
  });
  expect(heard).toEqual([]);
  for (const send of held) send();
  const ready = { kind: "ready", queue: "default" };
  expect(heard).toEqual([ready, ready]);
});

test("a listener that has stopped does not hear what was on its way", async () => {
  const store = createMemoryStore({ clock: createManualClock() });
  const heard: Hint[] = [];
  const stop = store.subscribe((hint) => heard.push(hint));
  const created = store.createRuns([run]);
  stop();
  await created;
  await Promise.resolve();
  expect(heard).toEqual([]);
});
