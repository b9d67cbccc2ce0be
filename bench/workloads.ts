import { setTimeout as pause } from "node:timers/promises";
import { backlogWorkloads } from "./backlog.ts";
import type { Contestant, Product } from "./contestant.ts";
import type { Latencies } from "./driver.ts";
import type { Ground } from "./ground.ts";
import { median } from "./median.ts";
import { has, inDatabase, type Figure, type Size, type Workload } from "./workload.ts";

export function createWorkloads(size: Size): readonly Workload[] {
  return [
    startSingly(size),
    startInBulk(size),
    drain(size, 1),
    drain(size, 2),
    ...[50, 200, 1_000].map((inFlight) => fiveSteps(size, inFlight)),
    ...latencies(size),
    ...backlogWorkloads(size),
    once("W6: 1,000 steps at once", "parallelSteps", 1_000),
    once("W6: 1,000 children", "children", 1_000),
    ...[1_000, 5_000, 20_000].map(sequentialSteps),
    memory("W8: memory of a worker that has nothing to do", async (first) => {
      await first.call("work");
      await pause(3_000);
      return first.call("rest");
    }),
    memory("W8: memory of a worker with 200 of five steps in flight", async (first) => {
      await first.call("work");
      return first.call("fiveSteps", Math.ceil(size.seconds * 2_000), 200);
    }),
    wake(10_000),
    timers(size.timers),
  ];
}

/**
 * Makes the count grow until it takes long enough, so that the slow are not waited for in vain, and answers what the same takes
 * once more: a process that serves has long been warm.
 */
async function rate(
  ground: Ground,
  seconds: number,
  least: number,
  act: (count: number) => Promise<{ readonly ms: number; readonly cpuMs: number }>,
): Promise<Figure> {
  const measure = async (count: number): Promise<Figure & { readonly ms: number }> => {
    const before = ground.cpuMs();
    const { ms, cpuMs } = await act(count);
    const after = ground.cpuMs();
    const postgresMs = before === null || after === null ? null : (after - before) / count;
    return { ms, value: (count / ms) * 1_000, nodeMs: cpuMs / count, postgresMs };
  };
  for (let count = least; ; count *= 4) {
    const { ms } = await measure(count);
    if (ms >= (seconds * 1_000) / 3 || count >= 100_000) return measure(count);
  }
}

function startSingly({ seconds }: Size): Workload {
  return {
    name: "W1: starts, a call each, 50 callers",
    unit: "1/s",
    isFor: has("startSingly"),
    measure: (product, ground) =>
      inDatabase(ground, product, 1, (first) =>
        rate(ground, seconds, 100, (count) => first.call("startSingly", count, 50)),
      ),
  };
}

function startInBulk({ seconds }: Size): Workload {
  return {
    name: "W1: starts in bulk",
    unit: "1/s",
    isFor: has("startInBulk"),
    measure: (product, ground) =>
      inDatabase(ground, product, 1, (first) =>
        rate(ground, seconds, 1_000, (count) => first.call("startInBulk", count)),
      ),
  };
}

/** All are started first. The processes that work are others than the one that starts, and asks whether all is done. */
function drain({ drained }: Size, processes: number): Workload {
  return {
    name: `W2: drain of plain runs, ${processes === 1 ? "one process" : "two processes"}`,
    unit: "1/s",
    isFor: (product) => has("work", "startSingly")(product) && (processes === 1 || product.name === "pawl"),
    measure: (product, ground) =>
      inDatabase(ground, product, 1 + processes, async (first, workers) => {
        const count = has("startInBulk")(product) ? drained : Math.ceil(drained / 20);
        if (has("startInBulk")(product)) await first.call("startInBulk", count);
        else await first.call("startSingly", count, 50);
        const before = ground.cpuMs();
        const beganAt = performance.now();
        await Promise.all(workers.map((worker) => worker.call("work")));
        while ((await first.call("hasPlainJobs")).answer) await pause(20);
        const ms = performance.now() - beganAt;
        const after = ground.cpuMs();
        const postgresMs = before === null || after === null ? null : (after - before) / count;
        return { value: (count / ms) * 1_000, nodeMs: null, postgresMs };
      }),
  };
}

function fiveSteps({ seconds }: Size, inFlight: number): Workload {
  return {
    name: `W3: five steps, ${inFlight} in flight`,
    unit: "1/s",
    isFor: has("fiveSteps"),
    measure: (product, ground) =>
      inDatabase(ground, product, 1, async (first) => {
        if (product.name !== "limit") await first.call("work");
        const least = Math.max(100, 2 * inFlight);
        return await rate(ground, seconds, least, (count) => first.call("fiveSteps", count, inFlight));
      }),
  };
}

function latencies({ latencies: count }: Size): readonly Workload[] {
  const kinds = [
    { name: "W4: start to handler, p50", of: "begins" },
    { name: "W4: start to result, p50", of: "results" },
    { name: "W4: start to result without a queue, p50", of: "direct" },
  ] as const;
  return kinds.map(({ name, of }) => ({
    name,
    unit: "ms",
    isFor: (product) => has("latencies")(product) && isToldBy(of, product),
    measure: (product, ground) =>
      inDatabase(ground, product, 1, async (first) => {
        if (product.name !== "limit") await first.call("work");
        await first.call("latencies", 10);
        const { answer } = await first.call("latencies", count);
        return { value: median(answer[of]), nodeMs: null, postgresMs: null };
      }),
  }));
}

/** A queue has no results. Only some can start without one. */
function isToldBy(of: keyof Latencies, product: Product): boolean {
  if (of === "begins") return true;
  return of === "results" ? has("fiveSteps")(product) : ["pawl", "limit", "dbos"].includes(product.name);
}

function once(name: string, method: "parallelSteps" | "children", count: number): Workload {
  return {
    name,
    unit: "ms",
    isFor: has(method),
    measure: (product, ground) =>
      inDatabase(ground, product, 1, async (first) => {
        await first.call("work");
        await first.call(method, Math.ceil(count / 10));
        const before = ground.cpuMs();
        const { ms, cpuMs } = await first.call(method, count);
        const after = ground.cpuMs();
        const postgresMs = before === null || after === null ? null : (after - before) / count;
        return { value: ms, nodeMs: cpuMs / count, postgresMs };
      }),
  };
}

/** Each of them, for the limit: one durable insert after the other. */
function sequentialSteps(count: number): Workload {
  return {
    name: `W7: a step, of ${count.toLocaleString("en")} one after the other`,
    unit: "ms",
    isFor: has("sequentialSteps"),
    measure: (product, ground) =>
      inDatabase(ground, product, 1, async (first) => {
        if (product.name !== "limit") await first.call("work");
        await first.call("sequentialSteps", 200);
        const before = ground.cpuMs();
        const { ms, cpuMs } = await first.call("sequentialSteps", count);
        const after = ground.cpuMs();
        const postgresMs = before === null || after === null ? null : (after - before) / count;
        return { value: ms / count, nodeMs: cpuMs / count, postgresMs };
      }),
  };
}

function memory(name: string, act: (first: Contestant) => Promise<{ readonly rssMb: number }>): Workload {
  return {
    name,
    unit: "MB",
    isFor: has("rest"),
    measure: (product, ground) =>
      inDatabase(ground, product, 1, async (first) => {
        const { rssMb } = await act(first);
        return { value: rssMb, nodeMs: null, postgresMs: null };
      }),
  };
}

function wake(count: number): Workload {
  return {
    name: `W9: ${count.toLocaleString("en")} parked runs, signalled at once, until all go on`,
    unit: "ms",
    isFor: has("park", "wake"),
    measure: (product, ground) =>
      inDatabase(ground, product, 1, async (first) => {
        await first.call("work");
        await first.call("park", count / 10);
        await first.call("wake");
        await first.call("park", count);
        const { ms, cpuMs } = await first.call("wake");
        return { value: ms, nodeMs: cpuMs / count, postgresMs: null };
      }),
  };
}

function timers(count: number): Workload {
  return {
    name: `W9: ${count.toLocaleString("en")} timers due in one second, until all have fired`,
    unit: "ms",
    isFor: has("setTimers", "awaitTimers"),
    measure: (product, ground) =>
      inDatabase(ground, product, 1, async (first) => {
        await first.call("work");
        await first.call("setTimers", count);
        const { answer } = await first.call("awaitTimers");
        return { value: answer, nodeMs: null, postgresMs: null };
      }),
  };
}
