import { describe, expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { places, test, upTo } from "./job-test.ts";

describe.each(places)("running until idle in %s", (place) => {
  test("returns when there is nothing, and says so", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => {});
    const summary = await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle();
    expect(summary).toMatchObject({ isIdle: true, claimed: 0, completed: 0, failed: 0 });
  });

  test("executes more runs than it has slots", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => ctx.step("work", () => 1));
    const runs = await pawl.startMany(
      job,
      upTo(120).map(() => ({})),
    );
    const summary = await pawl.worker({ workflows: [job], queues: [queue], concurrency: 3 }).runUntilIdle();
    expect(summary).toMatchObject({ isIdle: true, claimed: 120, completed: 120 });
    for (const run of runs.slice(0, 10)) expect(await run.status()).toBe("completed");
  });

  test("executes children and what was signalled before", async ({ open, queue }) => {
    const pawl = open(place);
    const child = workflow({ name: "child", version: 1, queue }, async (_, input: number) => input);
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      const parts = await Promise.all([1, 2, 3].map((input) => ctx.call(child, input)));
      const more = await ctx.waitForSignal<number>("more");
      return parts.reduce((sum, part) => sum + part, more);
    });
    const run = await pawl.start(parent);
    await run.signal("more", 4);
    await pawl.worker({ workflows: [parent, child], queues: [queue], concurrency: 1 }).runUntilIdle();
    expect(await run.result()).toBe(10);
  });

  test("goes on over failures, and counts them", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow(
      { name: "job", version: 1, queue, retry: { attempts: 2, initial: 0 } },
      async (_, input: number) => {
        if (input === 1) throw new Error("always");
        return input;
      },
    );
    await pawl.startMany(
      job,
      upTo(4).map((input) => ({ input })),
    );
    const summary = await pawl
      .worker({ workflows: [job], queues: [queue], concurrency: 1 })
      .runUntilIdle({ linger: 200 });
    expect(summary).toMatchObject({ isIdle: true, completed: 3, failed: 1 });
  });

  test("shares the work with another that does the same", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => ctx.step("work", () => 1));
    await pawl.startMany(
      job,
      upTo(100).map(() => ({})),
    );
    const summaries = await Promise.all(
      [1, 2].map(() => pawl.worker({ workflows: [job], queues: [queue], concurrency: 2 }).runUntilIdle()),
    );
    expect(summaries[0]!.completed + summaries[1]!.completed).toBe(100);
  });

  test("ends when its time is up, though there is more", async ({ open, queue }) => {
    const pawl = open(place);
    const endless = workflow({ name: "endless", version: 1, queue }, async (ctx) =>
      ctx.step(
        "hang",
        ({ signal }) =>
          new Promise<void>((resolve) => {
            signal.addEventListener("abort", () => resolve());
            setTimeout(resolve, 50);
          }),
      ),
    );
    await pawl.startMany(
      endless,
      upTo(1_000).map(() => ({})),
    );
    const summary = await pawl
      .worker({ workflows: [endless], queues: [queue], concurrency: 2 })
      .runUntilIdle({ timeout: 200 });
    expect(summary.isIdle).toBe(false);
    expect(summary.completed).toBeLessThan(100);
    expect((await pawl.list({ queue, status: "running" })).runs).toEqual([]);
  });
});
