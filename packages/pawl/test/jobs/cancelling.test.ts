import { describe, expect } from "vitest";
import { workflow, type PawlEvent } from "../../src/index.ts";
import { createGate, eventually, places, test, upTo, work } from "./job-test.ts";

const plain = workflow({ name: "plain", version: 1 }, async () => "done");

describe.each(places)("cancelling in %s", (place) => {
  test("ends a run that has not begun, without executing it", async ({ open, queue }) => {
    const pawl = open(place);
    let calls = 0;
    const job = workflow({ name: "job", version: 1, queue }, async () => {
      calls += 1;
    });
    const run = await pawl.start(job);
    const later = await pawl.start(job, undefined, { delay: "1h" });
    await run.cancel("changed my mind");
    await later.cancel();
    await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle();
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_CANCELLED",
      message: expect.stringContaining("changed my mind"),
      details: { runId: run.id, reason: "changed my mind" },
    });
    await expect(later.result()).rejects.toMatchObject({ code: "RUN_CANCELLED", details: { reason: null } });
    expect(calls).toBe(0);
  });

  test("ends a run that has not begun where no worker is", async ({ open, queue }) => {
    const pawl = open(place);
    const ready = await pawl.start(plain, undefined, { queue });
    const later = await pawl.start(plain, undefined, { queue, delay: "1h" });
    await ready.cancel();
    await later.cancel();
    expect(await ready.status()).toBe("cancelled");
    expect(await later.status()).toBe("cancelled");
  });

  test("aborts the step of a run that is executed, and ends it", async ({ open, queue }) => {
    const pawl = open(place);
    let reason: unknown;
    const begun = createGate();
    const slow = workflow({ name: "slow", version: 1, queue }, async (ctx) => {
      await ctx.step("wait", async ({ signal }) => {
        begun.open();
        await new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => resolve());
        });
        ({ reason } = signal);
      });
      return "never";
    });
    const run = await pawl.start(slow);
    await work(pawl, { workflows: [slow], queues: [queue] });
    await begun.opened;
    await run.cancel("enough");
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_CANCELLED",
      details: { reason: "enough" },
    });
    expect(reason).toBeInstanceOf(Error);
    expect(await pawl.get(run.id)).toMatchObject({ status: "cancelled", output: undefined, workerId: null });
    expect(await run.attempts()).toMatchObject([{ outcome: "cancelled", willRetry: false }]);
  });

  test("ends a run that sleeps or waits", async ({ open, queue }) => {
    const pawl = open(place);
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));
    const runs = await Promise.all([pawl.start(sleeper), pawl.start(waiter)]);
    await work(pawl, { workflows: [sleeper, waiter], queues: [queue] });
    for (const run of runs) {
      await eventually(() => run.status()).toBe("waiting");
      await run.cancel();
      await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    }
  });

  test("twice is cancelling once, with the first reason", async ({ open, queue }) => {
    const pawl = open(place);
    const run = await pawl.start(plain, undefined, { queue });
    await run.cancel("first");
    await run.cancel("second");
    await pawl.worker({ workflows: [plain], queues: [queue] }).runUntilIdle();
    await run.cancel("third");
    await expect(run.result()).rejects.toMatchObject({ details: { reason: "first" } });
  });

  test("does nothing to a run that has ended", async ({ open, queue }) => {
    const pawl = open(place);
    const failing = workflow({ name: "failing", version: 1, retry: { attempts: 1 } }, async () => {
      throw new Error("first");
    });
    const done = await pawl.start(plain, undefined, { queue });
    const failed = await pawl.start(failing, undefined, { queue });
    await pawl.worker({ workflows: [plain, failing], queues: [queue] }).runUntilIdle();
    const before = await Promise.all([pawl.get(done.id), pawl.get(failed.id)]);
    await Promise.all([done.cancel(), failed.cancel(), done.terminate(), failed.terminate()]);
    expect(await Promise.all([pawl.get(done.id), pawl.get(failed.id)])).toEqual(before);
    expect(await done.result()).toBe("done");
  });

  test("ends the children too, and tells them why", async ({ open, queue }) => {
    const pawl = open(place);
    const child = workflow({ name: "child", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      await Promise.all([ctx.call(child), ctx.call(child)]);
    });
    const run = await pawl.start(parent);
    await work(pawl, { workflows: [parent, child], queues: [queue] });
    const children = async () => (await pawl.list({ queue, workflow: "child" })).runs;
    await eventually(async () => (await children()).map(({ status }) => status)).toEqual([
      "waiting",
      "waiting",
    ]);
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    await eventually(async () => (await children()).map(({ status }) => status)).toEqual([
      "cancelled",
      "cancelled",
    ]);
    for (const { id } of await children())
      await expect(pawl.handle(id).result()).rejects.toMatchObject({ details: { reason: "parent" } });
  });

  test("of many at once ends each of them once", async ({ open, queue }) => {
    const kinds: string[] = [];
    const pawl = open(place, { onEvent: ({ kind }: PawlEvent) => kinds.push(kind) });
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));
    const runs = await pawl.startMany(
      waiter,
      upTo(40).map(() => ({})),
    );
    await work(pawl, { workflows: [waiter], queues: [queue] });
    await Promise.all(runs.map((run) => run.cancel()));
    const ends = await Promise.allSettled(runs.map((run) => run.result()));
    expect(ends.every(({ status }) => status === "rejected")).toBe(true);
    expect(await Promise.all(runs.map((run) => run.status()))).toEqual(runs.map(() => "cancelled"));
  });

  test("lets the code tidy up, within its 30 s", async ({ open, queue }) => {
    const pawl = open(place);
    const tidied: string[] = [];
    const begun = createGate();
    const careful = workflow({ name: "careful", version: 1, queue }, async (ctx) => {
      try {
        await ctx.step("reserve", async ({ signal }) => {
          begun.open();
          await new Promise<void>((_, reject) => {
            signal.addEventListener("abort", () => reject(new Error("aborted")));
          });
        });
      } finally {
        tidied.push("tidied");
      }
    });
    const run = await pawl.start(careful);
    await work(pawl, { workflows: [careful], queues: [queue] });
    await begun.opened;
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    expect(tidied).toEqual(["tidied"]);
  });

  test("takes a reason of up to a thousand characters", async ({ open, queue }) => {
    const pawl = open(place);
    const run = await pawl.start(plain, undefined, { queue });
    await expect(run.cancel("x".repeat(1_001))).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(run.terminate("x".repeat(1_001))).rejects.toMatchObject({ code: "INVALID_OPTION" });
    expect(await run.status()).toBe("pending");
    await run.cancel("ü".repeat(1_000));
  });
});

describe.each(places)("terminating in %s", (place) => {
  test("ends a run at once, wherever it is, and needs no worker", async ({ open, queue }) => {
    const pawl = open(place);
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const ready = await pawl.start(plain, undefined, { queue });
    const later = await pawl.start(plain, undefined, { queue, delay: "1h" });
    const sleeping = await pawl.start(sleeper);
    await pawl.worker({ workflows: [sleeper], queues: [queue] }).runUntilIdle();
    for (const run of [ready, later, sleeping]) {
      await run.terminate("broken");
      expect(await run.status()).toBe("cancelled");
      await expect(run.result()).rejects.toMatchObject({
        code: "RUN_CANCELLED",
        details: { reason: "broken" },
      });
      await run.terminate("again");
    }
  });

  test("takes a run from its worker: the step is aborted, and what its code still does counts for nothing", async ({
    open,
    queue,
  }) => {
    const events: PawlEvent[] = [];
    const pawl = open(place, { onEvent: (event) => events.push(event) });
    const calls: string[] = [];
    const begun = createGate();
    const ended = createGate();
    const slow = workflow({ name: "slow", version: 1, queue }, async (ctx) => {
      await ctx.step("before", () => calls.push("before"));
      await ctx.step("wait", async ({ signal }) => {
        begun.open();
        await new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => resolve());
        });
        calls.push("aborted");
      });
      ended.open();
      await ctx.step("after", () => calls.push("after"));
      return "never";
    });
    const run = await pawl.start(slow);
    await work(pawl, { workflows: [slow], queues: [queue], heartbeat: 100 });
    await begun.opened;
    await run.terminate("stuck");
    expect(await pawl.get(run.id)).toMatchObject({ status: "cancelled", workerId: null });
    const history = (await run.history()).map(({ kind, name }) => [kind, name]);
    await eventually(() => calls.includes("aborted")).toBe(true);
    await eventually(() => events.map(({ kind }) => kind).includes("lease.lost")).toBe(true);
    expect(calls).toEqual(["before", "aborted"]);
    expect((await run.history()).map(({ kind, name }) => [kind, name])).toEqual(history);
    expect(await run.status()).toBe("cancelled");
    await expect(run.result()).rejects.toMatchObject({ details: { reason: "stuck" } });
  });

  test("leaves the worker able to go on with others", async ({ open, queue }) => {
    const pawl = open(place);
    const begun = createGate();
    const stuck = workflow({ name: "stuck", version: 1, queue }, async (ctx, hang: boolean) =>
      ctx.step("hang", async ({ signal }) => {
        if (!hang) return "fine";
        begun.open();
        await new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => resolve());
        });
        return "late";
      }),
    );
    const first = await pawl.start(stuck, true);
    await work(pawl, { workflows: [stuck], queues: [queue], concurrency: 1, lease: "300ms" });
    await begun.opened;
    const second = await pawl.start(stuck, false);
    await first.terminate();
    expect(await second.result()).toBe("fine");
  });
});

describe.each(places)("pausing in %s", (place) => {
  test("keeps a run from going on until it is resumed", async ({ open, queue }) => {
    const pawl = open(place);
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));
    const run = await pawl.start(waiter);
    await work(pawl, { workflows: [waiter], queues: [queue] });
    await eventually(() => run.status()).toBe("waiting");
    await run.pause();
    await eventually(() => run.status()).toBe("paused");
    await run.signal("go", 7);
    await run.pause();
    await run.resume();
    expect(await run.result()).toBe(7);
    await expect(run.pause()).rejects.toMatchObject({ code: "RUN_ENDED" });
    await expect(run.resume()).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  test("does not keep a run from being cancelled", async ({ open, queue }) => {
    const pawl = open(place);
    const run = await pawl.start(plain, undefined, { queue });
    await run.pause();
    await work(pawl, { workflows: [plain], queues: [queue] });
    await eventually(() => run.status()).toBe("paused");
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
  });
});
