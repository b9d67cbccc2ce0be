import { expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { PawlError } from "../../src/core/error.ts";
import type { PawlEvent } from "../../src/core/pawl-event.ts";
import { workflow, type Workflow } from "../../src/runtime/workflow.ts";
import type { Audience } from "../../src/store/audience.ts";
import type { Store } from "../../src/store/store.ts";
import type { Taker } from "../../src/store/taker.ts";
import type { WorkerOptions } from "../../src/worker/worker-options.ts";
import { createManualWorld } from "../manual-world.ts";
import { createGate } from "../runtime/gate.ts";

const concurrency = 5;

/**
 * A worker whose slots are taken by runs that were started beside it while it claimed, so that what it has claimed waits in line. All last
 * until the gate opens.
 */
async function createLine(
  options: Partial<WorkerOptions> = {},
  { before: sleeping = [] }: { readonly before?: readonly Workflow[] } = {},
) {
  const world = createManualWorld();
  const [gate, answered] = [createGate(), createGate()];
  const events: PawlEvent[] = [];
  const begun: string[] = [];
  const slow = workflow({ name: "slow", version: 1 }, async (ctx, name: string) =>
    ctx.step("wait", () => {
      begun.push(name);
      return gate.opened.then(() => name);
    }),
  );
  let isLate = false;
  const line = { isAway: false };
  const unlessAway = async <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
    if (line.isAway) throw new PawlError("STORE_UNAVAILABLE", "The store is down.");
    return await ask();
  };
  const store: Store = {
    ...world.store,
    heartbeat: (beat) => unlessAway(() => world.store.heartbeat(beat)),
    registerWorker: (record) => unlessAway(() => world.store.registerWorker(record)),
    async claimRuns(request) {
      const claim = await world.store.claimRuns(request);
      if (isLate) await answered.opened;
      return claim;
    },
    async wakeDue(limit, holder) {
      const answer = await world.store.wakeDue(limit, holder);
      if (isLate) await answered.opened;
      return answer;
    },
  };
  const nearby = { takers: new Set<Taker>(), audiences: new Set<Audience>() };
  const emit = (event: PawlEvent): void => void events.push(event);
  const client = createClient(world.seams({ store, ...nearby, emit }));
  const worker = world.worker(
    { workflows: [slow, ...sleeping], concurrency, ...options },
    { store, ...nearby, emit },
  );
  await worker.start();
  await world.rest();
  // These sleep for a second, and are claimed again when all others are.
  const before = await Promise.all(sleeping.map((each) => client.start(each as Workflow<undefined, string>)));
  await world.advance(500);
  isLate = true;
  if (sleeping.length > 0) await world.advance(600);
  const names = Array.from(
    { length: sleeping.length > 0 ? 0 : concurrency },
    (_, index) => `claimed ${index}`,
  );
  // What sleeps has been found, or these are.
  const inLine = await client.startMany(
    slow,
    names.map((input) => ({ input })),
  );
  await world.rest();
  for (let index = 0; index < concurrency; index++) await client.start(slow, `started ${index}`);
  isLate = false;
  answered.open();
  await world.rest();
  const idsOf = (kind: PawlEvent["kind"]): readonly string[] =>
    events.flatMap((event) => (event.kind === kind && "runId" in event ? [event.runId] : []));
  return Object.assign(line, { world, client, worker, slow, gate, begun, names, inLine, before, idsOf });
}

test("a run that was claimed and finds no slot begins as soon as one is free, in the order of claiming", async () => {
  const { world, gate, begun, names, idsOf } = await createLine();
  expect(begun).toHaveLength(concurrency);
  gate.open();
  await world.rest();
  expect(begun.slice(concurrency)).toEqual(names);
  expect(idsOf("run.completed")).toHaveLength(2 * concurrency);
  expect(idsOf("run.released")).toEqual([]);
});

test("what waits for long is given back, and executed by whoever has a slot", async () => {
  const { world, slow, begun, inLine, idsOf } = await createLine();
  await world.advance(200);
  expect(idsOf("run.released")).toEqual([]);
  await world.advance(100);
  expect(idsOf("run.released")).toEqual(inLine.map(({ id }) => id));
  const other = world.worker({ workflows: [slow], concurrency });
  await other.start();
  await world.advance("1s");
  expect(begun).toHaveLength(2 * concurrency);
});

test("what was given back keeps its place before what was started later", async () => {
  const { world, client, slow, inLine } = await createLine();
  await world.advance(100);
  const later = await client.startMany(slow, [{ input: "later" }]);
  await world.advance(200);
  const claimed: string[] = [];
  const emit = (event: PawlEvent): void => {
    if (event.kind === "run.claimed") claimed.push(event.runId);
  };
  const other = world.worker({ workflows: [slow], concurrency: 2 * concurrency }, { emit });
  await other.start();
  await world.advance("1s");
  expect(claimed).toEqual([...inLine, ...later].map(({ id }) => id));
});

test("a run that is cancelled once it was given back takes no step", async () => {
  const { world, client, gate, begun, inLine, names } = await createLine();
  await world.advance(300);
  await client.cancel(inLine[0]?.id ?? "");
  await world.rest();
  gate.open();
  await world.advance("1s");
  expect(begun.slice(concurrency)).toEqual(names.slice(1));
});

test("slots that were kept for runs which were there already go to what waits", async () => {
  const world = createManualWorld();
  const [answered, created] = [createGate(), createGate()];
  const begun: number[] = [];
  const quick = workflow(
    { name: "quick", version: 1 },
    async (_ctx, order: number) => void begun.push(order),
  );
  let isLate = false;
  const store: Store = {
    ...world.store,
    async claimRuns(request) {
      const claim = await world.store.claimRuns(request);
      if (isLate) await answered.opened;
      return claim;
    },
    async createHeld(run, holder) {
      const answer = await world.store.createHeld(run, holder);
      if (isLate) await created.opened;
      return answer;
    },
  };
  const nearby = { takers: new Set<Taker>(), audiences: new Set<Audience>() };
  const client = createClient(world.seams({ store, ...nearby }));
  await client.start(quick, 0, { key: "once" });
  const worker = world.worker({ workflows: [quick], concurrency: 4 }, { store, ...nearby });
  await worker.start();
  await world.rest();
  isLate = true;
  await client.startMany(
    quick,
    [1, 2, 3, 4].map((input) => ({ input })),
  );
  await world.rest();
  const again = [1, 2, 3, 4].map(() => client.start(quick, 0, { key: "once" }));
  await world.rest();
  isLate = false;
  answered.open();
  await world.rest();
  created.open();
  await Promise.all(again);
  await world.rest();
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});

test("a run whose code went on by itself while it waited is given back, and replayed", async () => {
  const outside = createGate();
  const awake = workflow({ name: "awake", version: 1 }, async (ctx) => {
    const work = async (): Promise<string> => {
      await outside.opened;
      return ctx.step("after", () => "done");
    };
    const [, done] = await Promise.all([ctx.sleep("1s"), work()]);
    return done;
  });
  const line = await createLine({}, { before: [awake] });
  expect(line.begun).toHaveLength(concurrency);
  outside.open();
  await line.world.rest();
  line.gate.open();
  await line.world.advance("10s");
  expect(await line.before[0]?.result()).toBe("done");
});

test("a run that is cancelled while it waits never begins", async () => {
  const { world, client, gate, begun, inLine, names } = await createLine();
  const [first] = inLine;
  await client.cancel(first?.id ?? "");
  await world.rest();
  gate.open();
  await world.advance("1s");
  expect(begun.slice(concurrency)).toEqual(names.slice(1));
  const { runs } = await client.list({ status: "cancelled" });
  expect(runs.map(({ id }) => id)).toEqual([first?.id]);
});

test("a worker that stops gives back at once what waits, though its steps still run", async () => {
  const { world, worker, gate, begun, inLine, idsOf } = await createLine();
  const stopped = worker.stop();
  await world.rest();
  expect(idsOf("run.released")).toEqual(inLine.map(({ id }) => id));
  gate.open();
  await world.rest();
  await stopped;
  expect(begun).toHaveLength(concurrency);
});

test("a worker whose lease has run out begins nothing of what waits", async () => {
  const line = await createLine({ lease: "200ms" });
  line.isAway = true;
  await line.world.advance(240);
  expect(line.idsOf("lease.lost")).toHaveLength(2 * concurrency);
  line.gate.open();
  await line.world.advance(500);
  expect(line.begun).toHaveLength(concurrency);
});
