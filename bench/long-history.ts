import { setTimeout as pause } from "node:timers/promises";
import { has, inDatabase, oneReading, withPostgresMs, type Size, type Workload } from "./workload.ts";

/** Of the worker that is killed, so that nobody waits for 15 s, the default; the one that takes over has the default. */
const killedLeaseMs = 2_000;

/** W7: a run of many steps, one after the other. */
export function longHistoryWorkloads(size: Size): readonly Workload[] {
  return [...[1_000, 5_000, 20_000].map(sequentialSteps), resume(size)];
}

/** Each of them, for the limit: one durable insert after the other. */
function sequentialSteps(count: number): Workload {
  return oneReading({
    name: `W7: a step, of ${count.toLocaleString("en")} one after the other`,
    unit: "ms",
    isFor: has("sequentialSteps"),
    measure: (product, ground) =>
      inDatabase(ground, product, async ({ first }) => {
        if (product.name !== "limit") await first.call("work");
        await first.call("sequentialSteps", 200);
        const [{ ms, cpuMs }, postgresMs] = await withPostgresMs(ground, count, () =>
          first.call("sequentialSteps", count),
        );
        return { value: ms / count, nodeMs: cpuMs / count, postgresMs };
      }),
  });
}

/** The process that takes over is there already, and has done nothing yet: its worker connects, reads and replays. */
function resume({ resumed }: Size): Workload {
  const steps = resumed.toLocaleString("en");
  return oneReading({
    name: `W7: the next step after ${steps}, from the start of a worker when a killed one's lease (${killedLeaseMs / 1_000} s) has ended`,
    unit: "ms",
    isFor: has("hang", "resume"),
    measure: (product, ground) =>
      inDatabase(ground, product, async ({ first, startAnother }) => {
        await first.call("hang", resumed, killedLeaseMs);
        await first.kill();
        const [next] = await Promise.all([startAnother(), pause(killedLeaseMs + 500)]);
        const { answer, cpuMs } = await next.call("resume");
        return { value: answer, nodeMs: cpuMs, postgresMs: null };
      }),
  });
}
