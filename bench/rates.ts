import { setTimeout as pause } from "node:timers/promises";
import type { Contestant } from "./contestant.ts";
import type { Ground } from "./ground.ts";
import {
  has,
  inDatabase,
  oneReading,
  withPostgresMs,
  type Figure,
  type Size,
  type Workload,
} from "./workload.ts";

/** More are not counted out, however quick a contestant is. */
const mostCounted = 100_000;

/** W1 to W3: how many starts, plain runs and runs of five steps a second. */
export function rateWorkloads(size: Size): readonly Workload[] {
  return [
    startSingly(size),
    startInBulk(size),
    drain(size, 1),
    drain(size, 2),
    ...[50, 200, 1_000].map((inFlight) => fiveSteps(size, inFlight)),
  ];
}

/**
 * Does it over and over for `seconds` at least, with a count that grows, since a process that serves has long been warm. Then
 * measures it once, with a count that takes about `seconds` again. The slow do the least count twice, however long it takes.
 */
async function rate(
  ground: Ground,
  seconds: number,
  least: number,
  act: (count: number) => Promise<{ readonly ms: number; readonly cpuMs: number }>,
): Promise<Figure> {
  const wantedMs = seconds * 1_000;
  let count = least;
  for (let warmMs = 0; warmMs < wantedMs;) {
    const { ms } = await act(count);
    warmMs += ms;
    // At most four times as many: the first calls of a process say little about those that follow.
    const fitting = Math.ceil(Math.min(4, wantedMs / ms) * count);
    count = Math.min(mostCounted, Math.max(least, fitting));
  }
  const [{ ms, cpuMs }, postgresMs] = await withPostgresMs(ground, count, () => act(count));
  return { value: (count / ms) * 1_000, nodeMs: cpuMs / count, postgresMs };
}

function startSingly({ seconds }: Size): Workload {
  return oneReading({
    name: "W1: starts, a call each, 50 callers",
    unit: "1/s",
    isFor: has("startSingly"),
    measure: (product, ground) =>
      inDatabase(ground, product, ({ first }) =>
        rate(ground, seconds, 100, (count) => first.call("startSingly", count, 50)),
      ),
  });
}

function startInBulk({ seconds }: Size): Workload {
  return oneReading({
    name: "W1: starts in bulk",
    unit: "1/s",
    isFor: has("startInBulk"),
    measure: (product, ground) =>
      inDatabase(ground, product, ({ first }) =>
        rate(ground, seconds, 1_000, (count) => first.call("startInBulk", count)),
      ),
  });
}

/** All are started first. The processes that work are others than the one that starts, and asks whether all is done. */
function drain({ drained }: Size, processes: number): Workload {
  return oneReading({
    name: `W2: drain of plain runs, ${processes === 1 ? "one process" : "two processes"}`,
    unit: "1/s",
    isFor: (product) => has("work", "startSingly")(product) && (processes === 1 || product.name === "pawl"),
    measure: (product, ground) =>
      inDatabase(ground, product, async ({ first, startAnother }) => {
        const workers: Contestant[] = [];
        while (workers.length < processes) workers.push(await startAnother());
        const count = has("startInBulk")(product) ? drained : Math.ceil(drained / 20);
        if (has("startInBulk")(product)) await first.call("startInBulk", count);
        else await first.call("startSingly", count, 50);
        const cpuMs = async (): Promise<number> =>
          (await Promise.all(workers.map((worker) => worker.cpuMs()))).reduce((sum, each) => sum + each, 0);
        const cpuBefore = await cpuMs();
        const [ms, postgresMs] = await withPostgresMs(ground, count, async () => {
          const beganAt = performance.now();
          await Promise.all(workers.map((worker) => worker.call("work")));
          while ((await first.call("hasPlainJobs")).answer) await pause(20);
          return performance.now() - beganAt;
        });
        const nodeMs = ((await cpuMs()) - cpuBefore) / count;
        return { value: (count / ms) * 1_000, nodeMs, postgresMs };
      }),
  });
}

function fiveSteps({ seconds }: Size, inFlight: number): Workload {
  return oneReading({
    name: `W3: five steps, ${inFlight.toLocaleString("en")} in flight`,
    unit: "1/s",
    isFor: has("fiveSteps"),
    measure: (product, ground) =>
      inDatabase(ground, product, async ({ first }) => {
        if (product.name !== "limit") await first.call("work");
        const least = Math.max(100, 2 * inFlight);
        return await rate(ground, seconds, least, (count) => first.call("fiveSteps", count, inFlight));
      }),
  });
}
