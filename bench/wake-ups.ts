import { setTimeout as pause } from "node:timers/promises";
import type { Contestant } from "./contestant.ts";
import { quantile } from "./quantile.ts";
import { has, inDatabase, oneReading, type Size, type Workload } from "./workload.ts";

/** How long the neighbour is looked at before the timers fire. */
const calmMs = 3_000;

/** W9: many runs that go on at the same time. */
export function wakeUpWorkloads({ timers: count }: Size): readonly Workload[] {
  return [wake(10_000), timers(count), neighbour(count)];
}

function wake(count: number): Workload {
  return oneReading({
    name: `W9: ${count.toLocaleString("en")} parked runs, signalled at once, until all go on`,
    unit: "ms",
    isFor: has("park", "wake"),
    measure: (product, ground) =>
      inDatabase(ground, product, async ({ first }) => {
        await first.call("work");
        await first.call("park", count / 10);
        await first.call("wake");
        await first.call("park", count);
        const { ms, cpuMs } = await first.call("wake");
        return { value: ms, nodeMs: cpuMs / count, postgresMs: null };
      }),
  });
}

function timers(count: number): Workload {
  return oneReading({
    name: `W9: ${count.toLocaleString("en")} timers due in one second, until all have fired`,
    unit: "ms",
    isFor: has("setTimers", "awaitTimers"),
    measure: (product, ground) =>
      inDatabase(ground, product, async ({ first }) => {
        await first.call("work");
        await first.call("setTimers", count);
        const { answer } = await first.call("awaitTimers");
        return { value: answer, nodeMs: null, postgresMs: null };
      }),
  });
}

/** Apart from `timers`, since a second process may help with those. */
function neighbour(count: number): Workload {
  return oneReading({
    name: `W9: p95 of a plain run on another queue while ${count.toLocaleString("en")} timers fire, of that before`,
    unit: "times",
    isFor: has("setTimers", "awaitTimers", "elsewhere"),
    measure: (product, ground) =>
      inDatabase(ground, product, async ({ first, startAnother }) => {
        await first.call("work");
        const other = await startAnother();
        await other.call("elsewhere", 20);
        const { answer: dueInMs } = await first.call("setTimers", count);
        const dueAt = performance.now() + dueInMs;
        // Where the timers were due before all of them slept there was no calm, and there is no figure.
        const leftMs = Math.max(0, dueAt - performance.now() - 500);
        await pause(Math.max(0, leftMs - calmMs));
        const before = await timeUntil(other, pause(Math.min(leftMs, calmMs)));
        await pause(Math.max(0, dueAt - performance.now()));
        const meanwhile = await timeUntil(other, first.call("awaitTimers"));
        const [p95Before, p95] = [quantile(before, 0.95), quantile(meanwhile, 0.95)];
        const more = {
          "before: p95 ms": p95Before,
          "before: latencies": before.length,
          "meanwhile: p95 ms": p95,
          "meanwhile: latencies": meanwhile.length,
        };
        return { value: p95 / p95Before, nodeMs: null, postgresMs: null, more };
      }),
  });
}

async function timeUntil(contestant: Contestant, ended: Promise<unknown>): Promise<readonly number[]> {
  const until = new AbortController();
  const watching = ended.finally(() => until.abort());
  const latencies: number[] = [];
  while (!until.signal.aborted) latencies.push(...(await contestant.call("elsewhere", 5)).answer);
  await watching;
  return latencies;
}
