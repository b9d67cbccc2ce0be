import { describe, expect } from "vitest";
import { workflow, type Duration, type Pawl } from "../../src/index.ts";
import { eventually, test, upTo, work } from "./job-test.ts";

/** How long a run that is started stays untouched, run after run, on a worker that is idle each time. */
async function measureWakeUps(
  pawl: Pawl,
  queue: string,
  pollInterval: Duration,
  times: number,
): Promise<readonly number[]> {
  const begun: number[] = [];
  const job = workflow({ name: "job", version: 1, queue }, async () => {
    begun.push(performance.now());
  });
  await work(pawl, { workflows: [job], queues: [queue], pollInterval });
  const waits: number[] = [];
  for (const before of upTo(times)) {
    const startedAt = performance.now();
    const run = await pawl.start(job);
    await eventually(() => begun.length).toBe(before + 1);
    await eventually(() => run.status()).toBe("completed");
    waits.push(begun[before]! - startedAt);
  }
  return waits.sort((left, right) => left - right);
}

const percentile = (waits: readonly number[], share: number): number =>
  waits[Math.min(waits.length - 1, Math.floor(waits.length * share))]!;

function report(what: string, waits: readonly number[]): void {
  if (process.env["PAWL_REPORT"] === undefined) return;
  console.log(what, { p50: percentile(waits, 0.5), p95: percentile(waits, 0.95), most: waits.at(-1) });
}

describe("an idle worker", () => {
  test("begins a run as it is started, long before it would look for it", async ({ open, queue }) => {
    const waits = await measureWakeUps(open(), queue, "1m", 60);
    report("notified", waits);
    expect(percentile(waits, 0.5)).toBeLessThan(250);
  });

  test("that does not listen begins a run when it next looks", async ({ open, queue }) => {
    const waits = await measureWakeUps(open("postgres", { listen: false }), queue, "20ms", 30);
    report("polling", waits);
    expect(percentile(waits, 0.5)).toBeLessThan(500);
  });

  test("that does not listen does all the others do", async ({ open, queue }) => {
    const pawl = open("postgres", { listen: false });
    const child = workflow({ name: "child", version: 1, queue }, async () => 1);
    const parent = workflow({ name: "parent", version: 1, queue, retry: { initial: 0 } }, async (ctx) => {
      const one = await ctx.call(child);
      if (ctx.run.attempt === 1) throw new Error("once");
      await ctx.sleep(20);
      return one + (await ctx.waitForSignal<number>("more"));
    });
    const slow = workflow({ name: "slow", version: 1, queue }, async (ctx) => {
      await ctx.step(
        "wait",
        ({ signal }) =>
          new Promise<void>((resolve) => {
            signal.addEventListener("abort", () => resolve());
          }),
      );
    });
    await work(pawl, { workflows: [parent, child, slow], queues: [queue], lease: "600ms" });
    const run = await pawl.start(parent);
    await run.signal("more", 41);
    expect(await run.result()).toBe(42);
    const stuck = await pawl.start(slow);
    await eventually(() => stuck.status()).toBe("running");
    await stuck.cancel("by poll");
    await expect(stuck.result()).rejects.toMatchObject({
      code: "RUN_CANCELLED",
      details: { reason: "by poll" },
    });
  });

  test("in one process hears of a run that another Pawl starts", async ({ open, queue }) => {
    const job = workflow({ name: "job", version: 1, queue }, async () => "heard");
    await work(open(), { workflows: [job], queues: [queue], pollInterval: "1m" });
    expect(await (await open().start(job)).result()).toBe("heard");
  });

  test("hears of a run when the caller's transaction commits", async ({ open, pool, queue }) => {
    const pawl = open();
    const job = workflow({ name: "job", version: 1, queue }, async () => "heard");
    await work(pawl, { workflows: [job], queues: [queue], pollInterval: "1m" });
    const client = await pool.connect();
    await client.query("begin");
    const run = await pawl.start(job, undefined, { tx: client });
    await client.query("commit");
    client.release();
    expect(await run.result()).toBe("heard");
  });

  test("wakes for a run for later when its time comes, though nobody tells it then", async ({
    open,
    queue,
  }) => {
    const pawl = open();
    let begunAt = 0;
    const job = workflow({ name: "job", version: 1, queue }, async () => {
      begunAt = Date.now();
    });
    await work(pawl, { workflows: [job], queues: [queue], pollInterval: "1m" });
    const at = new Date(Date.now() + 400);
    await (await pawl.start(job, undefined, { at })).result();
    expect(begunAt - at.getTime()).toBeGreaterThanOrEqual(-20);
    expect(begunAt - at.getTime()).toBeLessThan(15_000);
  });

  test("wakes for the second of two late runs too, and for one put between them", async ({ open, queue }) => {
    const pawl = open();
    const order: number[] = [];
    const job = workflow({ name: "job", version: 1, queue }, async (_, ms: number) => {
      order.push(ms);
    });
    await work(pawl, { workflows: [job], queues: [queue], pollInterval: "1m" });
    const from = Date.now() + 2_000;
    const runs = [];
    for (const ms of [700, 300, 500]) runs.push(await pawl.start(job, ms, { at: new Date(from + ms) }));
    await Promise.all(runs.map((run) => run.result()));
    expect(order).toEqual([300, 500, 700]);
  });
});
