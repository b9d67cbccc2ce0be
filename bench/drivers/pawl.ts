import { setTimeout as pause } from "node:timers/promises";
import { createPawl, workflow, type RunHandle, type Worker } from "pawl";
import { createBeginProbe } from "../begin-probe.ts";
import { callFrom } from "../callers.ts";
import type { OpenDriver } from "../driver.ts";

const stepNames = ["one", "two", "three", "four", "five"] as const;
const perBulkCall = 10_000;

/** Pawl as a user gets it who sets nothing. */
export const open: OpenDriver = (url) => {
  const pawl = createPawl({ url });
  const probe = createBeginProbe();
  const version = 1;

  const begun = createTally();
  const plain = workflow({ name: "plain", version }, async (_ctx, input: { readonly order: number }) => {
    probe.begin();
    begun.add();
    return input.order;
  });
  const fiveSteps = workflow(
    { name: "five-steps", version },
    async (ctx, input: { readonly order: number }) => {
      for (const name of stepNames) await ctx.step(name, () => ({ order: input.order, ok: true }));
    },
  );
  const parallelSteps = workflow(
    { name: "parallel-steps", version },
    async (ctx, input: { readonly count: number }) => {
      const orders = Array.from({ length: input.count }, (_, order) => order);
      await Promise.all(orders.map((order) => ctx.step("one", () => ({ order, ok: true }))));
    },
  );
  const child = workflow(
    { name: "child", version },
    async (_ctx, input: { readonly order: number }) => input.order,
  );
  const parent = workflow({ name: "parent", version }, async (ctx, input: { readonly count: number }) => {
    const orders = Array.from({ length: input.count }, (_, order) => order);
    await Promise.all(orders.map((order) => ctx.call(child, { order })));
  });

  /** What a step of it awaits first. */
  let onStep: ((order: number) => Promise<unknown> | undefined) | null = null;
  const sequentialSteps = workflow(
    { name: "sequential-steps", version },
    async (ctx, input: { readonly count: number }) => {
      for (let order = 0; order < input.count; order++)
        await ctx.step("one", () => {
          const held = onStep?.(order);
          return held === undefined ? { order, ok: true } : held.then(() => ({ order, ok: true }));
        });
    },
  );
  const woken = createTally();
  const waiter = workflow({ name: "waiter", version }, async (ctx) => {
    await ctx.waitForSignal("go");
    woken.add();
  });
  const sleeper = workflow({ name: "sleeper", version }, async (ctx, input: { readonly dueAt: number }) => {
    await ctx.sleepUntil(new Date(input.dueAt));
    woken.add();
  });
  let worker: Worker | null = null;
  let elsewhere: Worker | null = null;
  let waiting: readonly RunHandle[] = [];
  let firstDueAt = 0;
  let lastAt = 0;

  /** Until all that was started is parked. */
  const parked = async (): Promise<void> => {
    for (;;) {
      const { pending, running } = await pawl.counts();
      if (pending.count + running.count === 0) return;
      await pause(50);
    }
  };

  const startInBulk = async (count: number): Promise<void> => {
    for (let first = 0; first < count; first += perBulkCall) {
      const size = Math.min(perBulkCall, count - first);
      await pawl.startMany(
        plain,
        Array.from({ length: size }, (_, index) => ({ input: { order: first + index } })),
      );
    }
  };
  const work = async (options: { readonly lease?: number } = {}): Promise<Worker> => {
    const workflows = [plain, fiveSteps, parallelSteps, child, parent, sequentialSteps, waiter, sleeper];
    worker = pawl.worker({ workflows, ...options });
    await worker.start();
    return worker;
  };
  const timeFiveSteps = async (order: number): Promise<number> => {
    const startedAt = performance.now();
    await (await pawl.start(fiveSteps, { order })).result();
    return performance.now() - startedAt;
  };
  const runPlain = async (order: number): Promise<unknown> =>
    await (await pawl.start(plain, { order })).result();

  return {
    product: "Pawl",
    settings: "as it comes: a worker executes 200 runs at once",
    async migrate() {
      await pawl.migrate();
    },
    async startSingly(count, callers) {
      await callFrom(callers, count, (order) => pawl.start(plain, { order }));
    },
    startInBulk,
    async work() {
      await work();
    },
    async drain(count) {
      await worker?.stop();
      await startInBulk(count);
      const all = begun.of(count);
      const beganAt = performance.now();
      const drainer = await work();
      await all;
      // It waits for what it has begun.
      await drainer.stop();
      return performance.now() - beganAt;
    },
    async hasPlainJobs() {
      for (const status of ["pending", "running"] as const) {
        const { runs } = await pawl.list({ workflow: "plain", status, limit: 1 });
        if (runs.length > 0) return true;
      }
      return false;
    },
    async fiveSteps(count, inFlight) {
      await callFrom(inFlight, count, async (order) => (await pawl.start(fiveSteps, { order })).result());
    },
    async plainRuns(count, inFlight) {
      await callFrom(inFlight, count, runPlain);
    },
    async latencies(count) {
      const { begins, ends } = await probe.time(count, runPlain);
      return { begins, results: ends, direct: ends };
    },
    async parallelSteps(count) {
      await (await pawl.start(parallelSteps, { count })).result();
    },
    async children(count) {
      await (await pawl.start(parent, { count })).result();
    },
    async sequentialSteps(count) {
      await (await pawl.start(sequentialSteps, { count })).result();
    },
    async hang(steps, leaseMs) {
      const reached = new Promise<void>((resolve) => {
        onStep = (order) => {
          if (order < steps) return undefined;
          resolve();
          return new Promise(() => {});
        };
      });
      await work({ lease: leaseMs });
      await pawl.start(sequentialSteps, { count: steps + 100 });
      await reached;
    },
    async resume() {
      const begins = new Promise<number>((resolve) => {
        onStep = () => {
          resolve(performance.now());
          return undefined;
        };
      });
      const startedAt = performance.now();
      await work();
      return (await begins) - startedAt;
    },
    async park(count) {
      waiting = await pawl.startMany(
        waiter,
        Array.from({ length: count }, () => ({})),
      );
      await parked();
    },
    async wake() {
      const all = woken.of(waiting.length);
      await Promise.all(waiting.map((run) => run.signal("go")));
      await all;
    },
    async setTimers(count) {
      // Time enough to park them all.
      firstDueAt = Date.now() + 5_000 + count / 2;
      lastAt = 0;
      const inputs = Array.from({ length: count }, (_, order) => ({ dueAt: firstDueAt + (order % 1_000) }));
      await pawl.startMany(
        sleeper,
        inputs.map((input) => ({ input })),
      );
      woken.of(count).then(
        () => (lastAt = Date.now()),
        () => {},
      );
      await parked();
      return firstDueAt - Date.now();
    },
    async awaitTimers() {
      while (lastAt === 0) await pause(10);
      return lastAt - firstDueAt;
    },
    async elsewhere(count) {
      const queue = "elsewhere";
      if (elsewhere === null) {
        elsewhere = pawl.worker({ workflows: [plain], queues: [queue] });
        await elsewhere.start();
      }
      const latencies: number[] = [];
      for (let order = 0; order < count; order++) {
        const startedAt = performance.now();
        await (await pawl.start(plain, { order }, { queue })).result();
        latencies.push(performance.now() - startedAt);
        await pause(20);
      }
      return latencies;
    },
    async pace(perSecond, seconds) {
      const latencies: Promise<number>[] = [];
      const beganAt = performance.now();
      for (let order = 0; order < perSecond * seconds; order++) {
        const aheadMs = (order / perSecond) * 1_000 - (performance.now() - beganAt);
        if (aheadMs > 0) await pause(Math.max(5, aheadMs));
        latencies.push(timeFiveSteps(order));
      }
      return Promise.all(latencies);
    },
    async rest() {},
    async close() {
      await pawl.close();
    },
  };
};

/** Counts to a number that is set before. */
function createTally(): { add(): void; of(count: number): Promise<void> } {
  let left = 0;
  let reach = (): void => {};
  return {
    add() {
      left -= 1;
      if (left === 0) reach();
    },
    of(count) {
      left = count;
      return new Promise((resolve) => {
        reach = resolve;
      });
    },
  };
}
