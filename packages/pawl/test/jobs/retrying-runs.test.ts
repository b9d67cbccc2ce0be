import { describe, expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { eventually, places, test, upTo, work } from "./job-test.ts";

describe.each(places)("retrying a run in %s", (place) => {
  test("goes on where it failed, and keeps what was finished", async ({ open, queue }) => {
    const pawl = open(place);
    const calls: string[] = [];
    let isBroken = true;
    const job = workflow({ name: "job", version: 1, queue, retry: { attempts: 1 } }, async (ctx) => {
      await ctx.step("first", () => calls.push("first"));
      return ctx.step("second", () => {
        calls.push("second");
        if (isBroken) throw new Error("no");
        return "done";
      });
    });
    await work(pawl, { workflows: [job], queues: [queue] });
    const run = await pawl.start(job);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    isBroken = false;
    await run.retry();
    expect(await run.result()).toBe("done");
    expect(calls).toEqual(["first", "second", "second"]);
    await expect(pawl.retry(run.id)).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  test("from the start, remembers nothing, and keeps its history, key and input", async ({ open, queue }) => {
    const pawl = open(place);
    let calls = 0;
    const job = workflow({ name: "job", version: 1, queue }, async (ctx, input: number) => {
      const count = await ctx.step("count", () => (calls += 1));
      const signal = await ctx.waitForSignal("go");
      return [input, count, signal];
    });
    await work(pawl, { workflows: [job], queues: [queue] });
    const run = await pawl.start(job, 7, { key: queue });
    await run.signal("go", "one");
    expect(await run.result()).toEqual([7, 1, "one"]);
    await run.retry({ from: "start" });
    await run.retry({ from: "start" });
    await run.signal("go", "two");
    expect(await run.result()).toEqual([7, 2, "two"]);
    const history = await run.history();
    expect(history.map(({ kind }) => kind)).toEqual([
      "step_completed",
      "signal_received",
      "completed",
      "redriven",
      "step_completed",
      "signal_received",
      "completed",
    ]);
    expect(history[3]?.data).toEqual({ from: "start" });
    expect((await pawl.start(job, 7, { key: queue })).id).toBe(run.id);
    const numbers = (await run.attempts()).map(({ attempt, outcome }) => [attempt, outcome]);
    expect(numbers).toEqual([
      [1, "completed"],
      [2, "completed"],
    ]);
  });

  test("from the start, starts its children anew and hears of no old one", async ({ open, queue }) => {
    const pawl = open(place);
    let children = 0;
    const child = workflow({ name: "child", version: 1, queue }, async () => (children += 1));
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => ctx.call(child));
    await work(pawl, { workflows: [parent, child], queues: [queue] });
    const run = await pawl.start(parent);
    expect(await run.result()).toBe(1);
    await run.retry({ from: "start" });
    await eventually(() => run.status()).toBe("completed");
    expect(await run.result()).toBe(2);
  });

  test("a failed step of a life from the start is tried again like any other", async ({ open, queue }) => {
    const pawl = open(place);
    const calls: string[] = [];
    let isBroken = false;
    const job = workflow({ name: "job", version: 1, queue, retry: { attempts: 1 } }, async (ctx) => {
      await ctx.step("first", () => calls.push("first"));
      await ctx.step("second", () => {
        calls.push("second");
        if (isBroken) throw new Error("no");
      });
    });
    await work(pawl, { workflows: [job], queues: [queue] });
    const run = await pawl.start(job);
    await run.result();
    isBroken = true;
    await run.retry({ from: "start" });
    await eventually(() => run.status()).toBe("failed");
    isBroken = false;
    await run.retry();
    await eventually(() => run.status()).toBe("completed");
    expect(calls).toEqual(["first", "second", "first", "second", "second"]);
  });

  test("what is not there, or wrongly asked for, is refused", async ({ open }) => {
    const pawl = open(place);
    const missing = "019b76da-0000-7000-8000-000000000001";
    await expect(pawl.retry(missing)).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    await expect(pawl.retry(missing, { from: "strat" as never })).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
    await expect(pawl.cancelAll({ statsu: "running" } as never)).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining('"status"'),
    });
    await expect(pawl.pauseAll({ status: "failed" as never })).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
  });
});

describe.each(places)("runs by filter in %s", (place) => {
  const waiting = (queue: string) =>
    workflow({ name: "waiting", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));

  test("are cancelled, whatever they do at the moment, and only those that fit", async ({ open, queue }) => {
    const pawl = open(place);
    const job = waiting(queue);
    const held = workflow({ name: "held", version: 1, queue }, async (ctx) =>
      ctx.step("hang", ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject))),
    );
    const tags = [`${queue} mine`];
    const waits = await pawl.startMany(
      job,
      upTo(3).map(() => ({})),
      { tags },
    );
    const runs = [...waits, await pawl.start(held, undefined, { tags })];
    const other = await pawl.start(job);
    await work(pawl, { workflows: [job, held], queues: [queue] });
    for (const run of [...waits, other]) await eventually(() => run.status()).toBe("waiting");
    const later = await pawl.start(job, undefined, { tags, delay: "1d" });
    expect(await pawl.cancelAll({ tags }, { reason: "all of them" })).toBe(5);
    for (const run of [...runs, later]) {
      await eventually(() => run.status()).toBe("cancelled");
      await expect(run.result()).rejects.toMatchObject({ details: { reason: "all of them" } });
    }
    expect(await other.status()).toBe("waiting");
    expect(await pawl.cancelAll({ tags })).toBe(0);
    expect(await pawl.cancelAll({ queue, limit: 1 })).toBe(1);
  });

  test("are paused and resumed", async ({ open, queue }) => {
    const pawl = open(place);
    const job = waiting(queue);
    const runs = await pawl.startMany(
      job,
      upTo(4).map(() => ({})),
    );
    expect(await pawl.pauseAll({ queue, status: "pending", limit: 3 })).toBe(3);
    expect(await pawl.pauseAll({ queue })).toBe(1);
    expect(await pawl.pauseAll({ queue })).toBe(0);
    for (const run of runs) expect(await run.status()).toBe("paused");
    expect(await pawl.resumeAll({ queue, workflow: "waiting" })).toBe(4);
    expect(await pawl.resumeAll({ queue })).toBe(0);
    for (const run of runs) expect(await run.status()).toBe("pending");
  });

  test("more than a page of them, in several statuses", { timeout: 60_000 }, async ({ open, queue }) => {
    const pawl = open(place);
    const job = waiting(queue);
    await pawl.startMany(
      job,
      upTo(700).map(() => ({})),
    );
    await pawl.startMany(
      job,
      upTo(600).map(() => ({})),
      { delay: "1d" },
    );
    expect(await pawl.cancelAll({ queue })).toBe(1_300);
    expect((await pawl.list({ queue, status: "pending" })).runs).toEqual([]);
  });

  test("are retried from the start, completed ones too", async ({ open, queue }) => {
    const pawl = open(place);
    let calls = 0;
    const job = workflow({ name: "job", version: 1, queue }, async () => (calls += 1));
    await pawl.startMany(
      job,
      upTo(3).map(() => ({})),
    );
    const worker = pawl.worker({ workflows: [job], queues: [queue] });
    await worker.runUntilIdle();
    expect(await pawl.retryAll({ queue }, { from: "start" })).toBe(0);
    expect(await pawl.retryAll({ queue, status: "completed" }, { from: "start" })).toBe(3);
    await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle();
    expect(calls).toBe(6);
  });
});
