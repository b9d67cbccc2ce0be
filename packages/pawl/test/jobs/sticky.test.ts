import { describe, expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { eventually, places, test, work } from "./job-test.ts";

function createWaiter(queue: string) {
  const begun: string[] = [];
  const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => {
    begun.push("code");
    const order = await ctx.step("reserve", () => 7);
    const first = await ctx.waitForSignal("first", { timeout: "30d" });
    await ctx.sleep(20);
    const second = await ctx.waitForSignal("second");
    return [order, first, second];
  });
  return { waiter, begun };
}

describe.each(places)("a run of %s that waits", (place) => {
  test("goes on in the worker that has it in memory, without replay", async ({ open, queue }) => {
    const pawl = open(place);
    const { waiter, begun } = createWaiter(queue);
    await work(pawl, { workflows: [waiter], queues: [queue] });
    const run = await pawl.start(waiter);
    await eventually(() => run.status()).toBe("waiting");
    await run.signal("first", 1);
    await eventually(async () => (await pawl.get(run.id))?.wants).toContain("signal:second");
    await run.signal("second", 2);
    expect(await run.result()).toEqual([7, 1, 2]);
    expect(begun).toEqual(["code"]);
  });

  test("goes on elsewhere by replay", async ({ open, queue }) => {
    const pawl = open(place);
    const { waiter, begun } = createWaiter(queue);
    const worker = await work(pawl, { workflows: [waiter], queues: [queue] });
    const run = await pawl.start(waiter);
    await eventually(() => run.status()).toBe("waiting");
    await worker.stop();
    await work(pawl, { workflows: [waiter], queues: [queue] });
    await run.signal("first", 1);
    await run.signal("second", 2);
    expect(await run.result()).toEqual([7, 1, 2]);
    expect(begun).toEqual(["code", "code"]);
  });

  test("is replayed each time by a worker that keeps none", async ({ open, queue }) => {
    const pawl = open(place);
    const { waiter, begun } = createWaiter(queue);
    await work(pawl, { workflows: [waiter], queues: [queue], stickyRuns: 0 });
    const run = await pawl.start(waiter);
    await eventually(() => run.status()).toBe("waiting");
    await run.signal("first", 1);
    await run.signal("second", 2);
    expect(await run.result()).toEqual([7, 1, 2]);
    expect(begun.length).toBeGreaterThan(1);
  });
});
