import { expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { PawlError } from "../../src/core/error.ts";
import type { PawlEvent } from "../../src/core/pawl-event.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import type { Audience } from "../../src/store/audience.ts";
import type { Store } from "../../src/store/store.ts";
import type { Taker } from "../../src/store/taker.ts";
import type { WorkerOptions } from "../../src/worker/worker-options.ts";
import { createManualWorld } from "../manual-world.ts";
import { createGate } from "../runtime/gate.ts";

const greet = workflow({ name: "greet", version: 1 }, async (ctx, name: string) =>
  ctx.step("greet", () => `Hello ${name}`),
);

/** A process that both starts runs and executes them, and what it claims and tells. */
async function createServer(options: Partial<WorkerOptions> = {}, seen = (store: Store): Store => store) {
  const world = createManualWorld();
  const events: PawlEvent[] = [];
  const claimed: string[] = [];
  const offered: string[] = [];
  const inner = seen(world.store);
  const store: Store = {
    ...inner,
    async claimRuns(request) {
      const claim = await inner.claimRuns(request);
      claimed.push(...claim.runs.map(({ runId }) => runId));
      return claim;
    },
    async createHeld(run, holder) {
      offered.push(run.id);
      return inner.createHeld(run, holder);
    },
  };
  const nearby = { takers: new Set<Taker>(), audiences: new Set<Audience>() };
  const view = { store, ...nearby, emit: (event: PawlEvent): void => void events.push(event) };
  const client = createClient(world.seams(view));
  const worker = world.worker({ workflows: [greet], ...options }, view);
  await worker.start();
  await world.rest();
  return { world, client, worker, claimed, offered, events, kinds: () => events.map(({ kind }) => kind) };
}

test("a run that is started where a worker is begins there, without its way through the queue", async () => {
  const { world, client, claimed, kinds, events } = await createServer();
  const run = await client.start(greet, "Ada");
  await world.rest();
  expect(kinds()).toEqual([
    "worker.started",
    "run.started",
    "run.claimed",
    "step.completed",
    "run.completed",
  ]);
  expect(events[2]).toMatchObject({ kind: "run.claimed", runId: run.id, attempt: 1, waitedMs: 0 });
  expect(await run.result()).toBe("Hello Ada");
  expect(claimed).toEqual([]);
});

test("what finds no free slot goes through the queue", async () => {
  const gate = createGate();
  const slow = workflow({ name: "slow", version: 1 }, async (ctx) => ctx.step("wait", () => gate.opened));
  const { world, client, claimed, kinds } = await createServer({ workflows: [slow], concurrency: 8 });
  const runs = await Promise.all(Array.from({ length: 10 }, () => client.start(slow)));
  await world.advance("1s");
  expect(claimed).toEqual([]);
  gate.open();
  await world.advance("1s");
  expect(claimed.toSorted()).toEqual(runs.slice(8).map(({ id }) => id));
  expect(kinds().filter((kind) => kind === "run.completed")).toHaveLength(10);
});

const fussy = workflow({ name: "greet", version: 1, onCrash: "fail" }, async (_ctx, _name: string) => "done");
const unknown = workflow({ name: "greet", version: 2 }, async (_ctx, _name: string) => "done");

test.for([
  ["it has few slots, and order comes before speed", greet, { concurrency: 3 }, {}],
  ["a crash must not cost the run anything before it begins", fussy, { workflows: [fussy] }, {}],
  ["it does not know the workflow", unknown, {}, {}],
  ["it does not serve the queue", greet, { queues: ["other"] }, {}],
  ["the run is not to begin yet", greet, {}, { delay: "1m" }],
] as const)("a worker holds nothing from its start where %s", async ([, started, options, more]) => {
  const { client, offered } = await createServer(options);
  await client.start(started, "Ada", more);
  expect(offered).toEqual([]);
});

test("it holds what is started while it looks whether others have queued something, though nothing says so", async () => {
  const answered = createGate();
  let looks = 0;
  const { world, client, offered } = await createServer({}, (store) => ({
    ...store,
    async claimRuns(request) {
      const claim = await store.claimRuns(request);
      looks += 1;
      if (looks > 1) await answered.opened;
      return claim;
    },
  }));
  while (looks < 2) await world.advance(100);
  await client.start(greet, "Ada");
  expect(offered).toHaveLength(1);
  answered.open();
});

test("nor once it stops", async () => {
  const { client, worker, offered } = await createServer();
  await worker.stop();
  await client.start(greet, "Ada");
  expect(offered).toEqual([]);
});

test("nor while more waits in the queue than it could claim", async () => {
  const gate = createGate();
  const slow = workflow({ name: "slow", version: 1 }, async (ctx) => ctx.step("wait", () => gate.opened));
  const { world, client, offered } = await createServer({ workflows: [slow, greet], concurrency: 4 });
  await client.startMany(
    slow,
    Array.from({ length: 9 }, () => ({})),
  );
  await world.advance("1s");
  await client.start(greet, "Ada");
  expect(offered).toEqual([]);
  gate.open();
  await world.advance("1s");
});

test("a start whose answer was lost is repeated, and the run executed once", async () => {
  let calls = 0;
  const { world, client, events } = await createServer({}, (store) => ({
    ...store,
    async createHeld(run, holder) {
      calls += 1;
      const answer = await store.createHeld(run, holder);
      if (calls === 1) throw new PawlError("STORE_UNAVAILABLE", "The connection was lost.");
      return answer;
    },
  }));
  const starting = client.start(greet, "Ada");
  await world.advance("5s");
  const run = await starting;
  expect(await run.result()).toBe("Hello Ada");
  expect(calls).toBe(2);
  expect(events.filter(({ kind }) => kind === "run.claimed")).toHaveLength(1);
  expect(await run.attempts()).toMatchObject([{ attempt: 1, outcome: "completed" }]);
});

test("a run whose start is not answered yet is not given back by a heartbeat", async () => {
  const answered = createGate();
  const { world, client, kinds } = await createServer({}, (store) => ({
    ...store,
    async createHeld(run, holder) {
      const answer = await store.createHeld(run, holder);
      await answered.opened;
      return answer;
    },
  }));
  const starting = client.start(greet, "Ada");
  await world.advance("40s");
  answered.open();
  const run = await starting;
  await world.rest();
  expect(await run.result()).toBe("Hello Ada");
  expect(await run.attempts()).toMatchObject([{ attempt: 1, outcome: "completed" }]);
  expect(kinds()).not.toContain("lease.lost");
});

test("a run whose start was given up is given back, and executed by whoever claims it", async () => {
  const { world, client, claimed } = await createServer({}, (store) => ({
    ...store,
    async createHeld(run, holder) {
      await store.createHeld(run, holder);
      throw new PawlError("INTERNAL", "The answer cannot be read.");
    },
  }));
  await expect(client.start(greet, "Ada", { key: "k" })).rejects.toMatchObject({ code: "INTERNAL" });
  await world.advance("1m");
  const [id] = claimed;
  expect(await client.get(id ?? "")).toMatchObject({ key: "k", status: "completed", attempt: 1 });
});

test("a run that was held by an id which has expired meanwhile is executed once, under the new one", async () => {
  const answered = createGate();
  const { world, client, claimed, kinds } = await createServer({}, (store) => ({
    ...store,
    async createHeld(run, holder) {
      const answer = await store.createHeld(run, holder);
      await answered.opened;
      return answer;
    },
  }));
  const starting = client.start(greet, "Ada");
  await world.rest();
  world.block("2m");
  await world.advance("10s");
  answered.open();
  const run = await starting;
  await world.advance("2m");
  expect(await run.result()).toBe("Hello Ada");
  expect(kinds().filter((kind) => kind === "step.completed")).toHaveLength(1);
  expect(claimed).toContain(run.id);
});

test("who waits for a result where the run ends is told it at once, and nobody who comes after that", async () => {
  const [gate, ended] = [createGate(), createGate()];
  const slow = workflow({ name: "slow", version: 1 }, async (ctx) => ctx.step("wait", () => gate.opened));
  const looks: string[] = [];
  const { world, client } = await createServer({ workflows: [slow] }, (store) => ({
    ...store,
    getEnds(runIds) {
      looks.push(...runIds);
      return new Promise(() => {});
    },
    async end(ending) {
      await store.end(ending);
      await ended.opened;
    },
  }));
  const told: string[] = [];
  const run = await client.start(slow);
  void run.result().then(() => told.push("early"));
  await world.rest();
  expect(looks).toEqual([]);
  gate.open();
  await world.rest();
  void run.result().then(() => told.push("late"));
  ended.open();
  await world.advance("1m");
  expect(told).toEqual(["early"]);
});

test("a run's result is known where it was started and executed without asking the store", async () => {
  let looks = 0;
  const plain = workflow({ name: "plain", version: 1 }, async () => "done");
  const { client } = await createServer({ workflows: [plain] }, (store) => ({
    ...store,
    getEnds(runIds) {
      looks += 1;
      return store.getEnds(runIds);
    },
    // The answer to the write that ends it comes before any notification.
    subscribe: () => () => {},
  }));
  expect(await (await client.start(plain)).result()).toBe("done");
  expect(looks).toBe(0);
});

test("a run that its own process executes for a while is looked for once, however many are started meanwhile", async () => {
  const gate = createGate();
  const slow = workflow({ name: "slow", version: 1 }, async (ctx) => ctx.step("wait", () => gate.opened));
  const looks: number[] = [];
  const { world, client } = await createServer({ workflows: [slow] }, (store) => ({
    ...store,
    getEnds(runIds) {
      looks.push(runIds.length);
      return store.getEnds(runIds);
    },
  }));
  const results: Promise<unknown>[] = [];
  for (let started = 0; started < 4; started++) {
    results.push((await client.start(slow)).result());
    await world.advance("100ms");
  }
  expect(looks).toEqual([1, 1]);
  gate.open();
  await Promise.all(results);
});

test("who waits for a run that was ended over its worker's head need not wait long", async () => {
  const gate = createGate();
  const slow = workflow({ name: "slow", version: 1 }, async (ctx) => ctx.step("wait", () => gate.opened));
  const { world, client } = await createServer({ workflows: [slow] });
  const run = await client.start(slow);
  await world.rest();
  await run.terminate();
  const failed = run.result().catch((error: unknown) => error);
  await world.advance("250ms");
  expect(await failed).toMatchObject({ code: "RUN_CANCELLED" });
});

test("what is said to a run right after its start is heard before its first step", async () => {
  let calls = 0;
  const counted = workflow({ name: "counted", version: 1 }, async (ctx) =>
    ctx.step("count", () => {
      calls += 1;
    }),
  );
  const { world, client } = await createServer({ workflows: [counted] });
  await (await client.start(counted)).terminate();
  await world.rest();
  expect(calls).toBe(0);
});

test("a worker that stops right after a start gives the run back", async () => {
  const { world, client, worker, kinds } = await createServer();
  await client.start(greet, "Ada");
  await worker.stop();
  await world.rest();
  expect(kinds()).toEqual(["worker.started", "run.started", "run.claimed", "run.released", "worker.stopped"]);
});

test("who comes while a run's end is being written hears of it", async () => {
  const [writing, written] = [createGate(), createGate()];
  const plain = workflow({ name: "plain", version: 1 }, async () => "done");
  const { world, client } = await createServer({ workflows: [plain] }, (store) => ({
    ...store,
    async end(ending) {
      writing.open();
      await written.opened;
      return store.end(ending);
    },
  }));
  const run = await client.start(plain);
  await writing.opened;
  const result = run.result();
  await world.rest();
  written.open();
  await world.rest();
  await world.advance("20ms");
  expect(await result).toBe("done");
});

test("a heartbeat that the store answers before it creates a run does not drop it", async () => {
  const [created, beaten] = [createGate(), createGate()];
  let calls = 0;
  const counted = workflow({ name: "counted", version: 1 }, async (ctx) =>
    ctx.step("count", async () => {
      calls += 1;
      await beaten.opened;
    }),
  );
  const { world, client, kinds } = await createServer({ workflows: [counted] }, (store) => ({
    ...store,
    async createHeld(run, holder) {
      await created.opened;
      return store.createHeld(run, holder);
    },
    async heartbeat(beat) {
      const answer = await store.heartbeat(beat);
      if (beat.held.length > 0) created.open();
      // Its answer overtakes that of nothing else.
      for (let turn = 0; turn < 50; turn++) await Promise.resolve();
      return answer;
    },
  }));
  const starting = client.start(counted);
  await world.advance("20s");
  await starting;
  beaten.open();
  await world.advance("1m");
  expect(calls).toBe(1);
  expect(kinds()).not.toContain("lease.lost");
});

test("a slot that was kept for a run which is not held is filled from the queue at once", async () => {
  const [gate, answered] = [createGate(), createGate()];
  const slow = workflow({ name: "slow", version: 1 }, async (ctx) => ctx.step("wait", () => gate.opened));
  const { world, client, claimed } = await createServer({ workflows: [slow], concurrency: 4 }, (store) => ({
    ...store,
    async createHeld(run) {
      await answered.opened;
      return { kind: "existing", id: run.id, held: null };
    },
  }));
  void client.start(slow);
  void client.start(slow);
  await world.rest();
  await client.startMany(
    slow,
    Array.from({ length: 4 }, () => ({})),
  );
  await world.advance("1s");
  expect(claimed).toHaveLength(2);
  answered.open();
  await world.rest();
  expect(claimed).toHaveLength(4);
});

test("a worker executes no more than it may, whatever is claimed and started at once", async () => {
  const [gate, answered] = [createGate(), createGate()];
  let most = 0;
  let running = 0;
  const slow = workflow({ name: "slow", version: 1 }, async (ctx) =>
    ctx.step("wait", async () => {
      running += 1;
      most = Math.max(most, running);
      await gate.opened;
      running -= 1;
    }),
  );
  let isSlow = false;
  const server = await createServer({ workflows: [slow], concurrency: 10 }, (store) => ({
    ...store,
    async claimRuns(request) {
      const claim = await store.claimRuns(request);
      if (isSlow) await answered.opened;
      return claim;
    },
  }));
  const { world, client, offered, kinds } = server;
  isSlow = true;
  await client.startMany(
    slow,
    Array.from({ length: 10 }, () => ({})),
  );
  await world.rest();
  for (let count = 0; count < 5; count++) await client.start(slow);
  expect(offered).toHaveLength(5);
  answered.open();
  await world.advance("1s");
  expect(most).toBe(10);
  gate.open();
  await world.advance("1s");
  expect(most).toBe(10);
  expect(kinds().filter((kind) => kind === "run.completed")).toHaveLength(15);
});
