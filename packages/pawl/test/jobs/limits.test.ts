import { describe, expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { createGate, eventually, places, test, work } from "./job-test.ts";

const plain = workflow({ name: "plain", version: 1 }, async () => "done");
const unknown = workflow({ name: "nobody knows it", version: 1 }, async () => "never");

describe.each(places)("time limits in %s", (place) => {
  test("a run that nobody began in time expires", async ({ open, queue }) => {
    const pawl = open(place);
    const run = await pawl.start(unknown, undefined, { queue, expiresIn: 50 });
    await work(pawl, { workflows: [plain], queues: [queue], lease: "300ms" });
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_EXPIRED", details: { runId: run.id } });
    expect(await pawl.get(run.id)).toMatchObject({ status: "expired", endedAt: expect.any(Date) });
    expect(await run.attempts()).toEqual([]);
  });

  test("a run that has expired is not executed, though no sweep has seen it", async ({ open, queue }) => {
    const pawl = open(place);
    let calls = 0;
    const job = workflow({ name: "job", version: 1, queue }, async () => {
      calls += 1;
    });
    const run = await pawl.start(job, undefined, { expiresAt: new Date(Date.now() - 1_000) });
    await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle();
    expect(calls).toBe(0);
    expect(await run.status()).toBe("expired");
  });

  test("a run that has begun in time does not expire", async ({ open, queue }) => {
    const pawl = open(place);
    const gate = createGate();
    const slow = workflow({ name: "slow", version: 1, queue }, async (ctx) => {
      await ctx.step("wait", () => gate.opened);
      await ctx.sleep(20);
      return "fine";
    });
    await work(pawl, { workflows: [slow], queues: [queue], lease: "300ms" });
    const run = await pawl.start(slow, undefined, { expiresIn: 2_000 });
    await eventually(() => run.status()).toBe("running");
    const { expiresAt } = (await pawl.get(run.id))!;
    await eventually(() => Date.now() > expiresAt!.getTime() + 300).toBe(true);
    gate.open();
    expect(await run.result()).toBe("fine");
  });

  test("a run for later can expire while it waits for its time to be claimed", async ({ open, queue }) => {
    const pawl = open(place);
    const run = await pawl.start(unknown, undefined, { queue, delay: 30, expiresIn: 60 });
    await work(pawl, { workflows: [plain], queues: [queue], lease: "300ms" });
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_EXPIRED" });
  });

  test("a run that nobody began by its deadline times out", async ({ open, queue }) => {
    const pawl = open(place);
    const run = await pawl.start(unknown, undefined, { queue, timeout: 50 });
    await work(pawl, { workflows: [plain], queues: [queue], lease: "300ms" });
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_TIMED_OUT", details: { runId: run.id } });
    expect(await run.status()).toBe("timed_out");
  });

  test("a step is aborted when the run's time is up", async ({ open, queue }) => {
    const pawl = open(place);
    let aborted = false;
    const slow = workflow({ name: "slow", version: 1, queue }, async (ctx) => {
      await ctx.step("wait", async ({ signal }) => {
        await new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => resolve());
        });
        ({ aborted } = signal);
      });
    });
    await work(pawl, { workflows: [slow], queues: [queue] });
    const run = await pawl.start(slow, undefined, { timeout: 2_000 });
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
    expect(aborted).toBe(true);
    expect(await run.attempts()).toMatchObject([{ outcome: "timed_out", willRetry: false }]);
  });

  test("a run that sleeps past its deadline times out, and is not tried again", async ({ open, queue }) => {
    const pawl = open(place);
    const sleeper = workflow({ name: "sleeper", version: 1, queue, timeout: 2_000 }, async (ctx) =>
      ctx.sleep("1h"),
    );
    await work(pawl, { workflows: [sleeper], queues: [queue] });
    const run = await pawl.start(sleeper);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
    expect(await run.attempts()).toHaveLength(1);
  });

  test("a run that waits to be tried again times out at its deadline", async ({ open, queue }) => {
    const pawl = open(place);
    const failing = workflow({ name: "failing", version: 1, queue, retry: { initial: "1h" } }, async () => {
      throw new Error("later");
    });
    const run = await pawl.start(failing, undefined, { timeout: 300 });
    await work(pawl, { workflows: [failing], queues: [queue] });
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
  });

  test("a start's own limit goes before the workflow's", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue, timeout: "1h" }, async () => "done");
    const deadline = new Date(Date.now() + 86_400_000);
    const own = await pawl.start(job, undefined, { deadline });
    expect((await pawl.get(own.id))!.deadlineAt).toEqual(deadline);
    const usual = await pawl.start(job);
    const usualAt = (await pawl.get(usual.id))!.deadlineAt!.getTime();
    expect(Math.abs(usualAt - Date.now() - 3_600_000)).toBeLessThan(5_000);
    await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle();
    expect(await own.result()).toBe("done");
  });
});
