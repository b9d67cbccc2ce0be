import { describe, expect } from "vitest";
import { NonRetryableError, RetryAfterError, workflow, type PawlEvent } from "../../src/index.ts";
import { eventually, places, test, upTo, work } from "./job-test.ts";

const instantly = { initial: 0 } as const;

class PaymentError extends Error {
  override readonly name = "PaymentError";
  readonly code = "DECLINED";
}

describe.each(places)("a job that throws in %s", (place) => {
  test("is tried again until it succeeds, and counts its attempts", async ({ open, queue }) => {
    const pawl = open(place);
    const seen: number[] = [];
    const flaky = workflow(
      { name: "flaky", version: 1, queue, retry: { attempts: 5, ...instantly } },
      async (ctx) => {
        seen.push(ctx.run.attempt);
        if (ctx.run.attempt < 3) throw new Error(`no luck ${ctx.run.attempt}`);
        return "luck";
      },
    );
    const run = await pawl.start(flaky);
    const summary = await pawl.worker({ workflows: [flaky], queues: [queue] }).runUntilIdle({ linger: "1s" });
    expect(seen).toEqual([1, 2, 3]);
    expect(summary).toMatchObject({ completed: 1, failed: 0 });
    expect(await run.result()).toBe("luck");
    const attempts = await run.attempts();
    expect(attempts).toMatchObject([
      { attempt: 1, outcome: "failed", willRetry: true },
      { attempt: 2, outcome: "failed", willRetry: true },
      { attempt: 3, outcome: "completed", willRetry: false, error: null },
    ]);
    expect(attempts.map(({ error }) => error?.message)).toEqual(["no luck 1", "no luck 2", undefined]);
  });

  test("is waiting until the next attempt, and says when that is", async ({ open, queue }) => {
    const pawl = open(place);
    const failing = workflow(
      { name: "failing", version: 1, queue, retry: { initial: "1h", jitter: false } },
      async () => {
        throw new Error("not now");
      },
    );
    const run = await pawl.start(failing);
    const before = Date.now();
    expect(await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle()).toMatchObject({
      claimed: 1,
      parked: 1,
      failed: 0,
    });
    const seen = await pawl.get(run.id);
    expect(seen).toMatchObject({ status: "waiting", attempt: 2, error: null });
    expect(seen!.dueAt!.getTime() - before).toBeGreaterThan(3_590_000);
    expect(seen!.dueAt!.getTime() - before).toBeLessThan(3_620_000);
    expect(await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle()).toMatchObject({
      claimed: 0,
    });
  });

  test("waits longer after each failure, up to the longest pause", async ({ open, queue }) => {
    const delays: (number | null)[] = [];
    const pawl = open(place, {
      onEvent: (event: PawlEvent) => {
        if (event.kind === "attempt.failed") delays.push(event.nextDelayMs);
      },
    });
    const retry = { attempts: 6, initial: 5, factor: 3, max: 60, jitter: false } as const;
    const failing = workflow({ name: "failing", version: 1, queue, retry }, async () => {
      throw new Error("never");
    });
    await pawl.start(failing);
    await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle({ linger: "2s" });
    expect(delays).toEqual([5, 15, 45, 60, 60]);
  });

  test("waits between half the pause and all of it, so that failures do not come back together", async ({
    open,
    queue,
  }) => {
    const delays: number[] = [];
    const pawl = open(place, {
      onEvent: (event: PawlEvent) => {
        if (event.kind === "attempt.failed") delays.push(event.nextDelayMs!);
      },
    });
    const failing = workflow({ name: "failing", version: 1, queue, retry: { initial: "1h" } }, async () => {
      throw new Error("never");
    });
    await pawl.startMany(
      failing,
      upTo(30).map(() => ({})),
    );
    await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle();
    expect(delays).toHaveLength(30);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(1_800_000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(3_600_000);
    expect(new Set(delays).size).toBeGreaterThan(20);
  });

  test("fails for good when its attempts are used up, with the last error", async ({ open, queue }) => {
    const pawl = open(place);
    const failing = workflow(
      { name: "failing", version: 1, queue, retry: { attempts: 3, ...instantly } },
      async (ctx) => {
        throw new PaymentError(`declined ${ctx.run.attempt}`, { cause: new Error("the bank") });
      },
    );
    const run = await pawl.start(failing);
    const summary = await pawl
      .worker({ workflows: [failing], queues: [queue] })
      .runUntilIdle({ linger: "1s" });
    expect(summary).toMatchObject({ claimed: 3, failed: 1 });
    const seen = await pawl.get(run.id);
    expect(seen).toMatchObject({
      status: "failed",
      endedAt: expect.any(Date),
      dueAt: null,
      error: {
        name: "PaymentError",
        message: "declined 3",
        code: "DECLINED",
        cause: { message: "the bank" },
      },
    });
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { name: "PaymentError", message: "declined 3", code: "DECLINED" },
    });
    expect((await run.attempts()).map(({ errorCode, willRetry }) => [errorCode, willRetry])).toEqual([
      ["DECLINED", true],
      ["DECLINED", true],
      ["DECLINED", false],
    ]);
  });

  test("has as many attempts as its start says", async ({ open, queue }) => {
    const pawl = open(place);
    let calls = 0;
    const failing = workflow({ name: "failing", version: 1, queue, retry: { attempts: 9 } }, async () => {
      calls += 1;
      throw new Error("never");
    });
    const once = await pawl.start(failing, undefined, { retry: { attempts: 1 } });
    await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle();
    expect(calls).toBe(1);
    expect(await once.status()).toBe("failed");
    const four = await pawl.start(failing, undefined, { retry: { delays: [0, 1, 0] } });
    await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle({ linger: "1s" });
    expect(calls).toBe(5);
    expect(await four.status()).toBe("failed");
  });

  test("fails at once where trying again is of no use", async ({ open, queue }) => {
    const pawl = open(place);
    const hopeless = workflow({ name: "hopeless", version: 1, queue }, async (ctx) => {
      await ctx.step("look", () => {
        throw new NonRetryableError("no such customer");
      });
    });
    const run = await pawl.start(hopeless);
    expect(await pawl.worker({ workflows: [hopeless], queues: [queue] }).runUntilIdle()).toMatchObject({
      claimed: 1,
      failed: 1,
    });
    expect(await run.attempts()).toHaveLength(1);
  });

  test("is tried again exactly when it asks to be", async ({ open, queue }) => {
    const pawl = open(place);
    const at = new Date(Date.now() + 7_200_000);
    const busy = workflow({ name: "busy", version: 1, queue }, async () => {
      throw new RetryAfterError("later", { after: at });
    });
    const run = await pawl.start(busy);
    await pawl.worker({ workflows: [busy], queues: [queue] }).runUntilIdle();
    expect(await pawl.get(run.id)).toMatchObject({ status: "waiting", dueAt: at });
  });

  test.for([
    ["a text", "just a text", "just a text"],
    ["nothing", undefined, "undefined"],
    ["an object", { message: "an object's" }, "an object's"],
    ["a frozen error", Object.freeze(new Error("cold")), "cold"],
  ] as const)("may throw %s", async ([, thrown, message], { open, queue }) => {
    const pawl = open(place);
    const odd = workflow({ name: "odd", version: 1, queue, retry: { attempts: 1 } }, async () => {
      throw thrown as Error;
    });
    const run = await pawl.start(odd);
    await pawl.worker({ workflows: [odd], queues: [queue] }).runUntilIdle();
    expect(await run.status()).toBe("failed");
    expect((await pawl.get(run.id))!.error!.message).toContain(message);
  });

  test("may throw what refers to itself, or is huge", async ({ open, queue }) => {
    const pawl = open(place);
    const circular = new Error("round");
    circular.cause = circular;
    const odd = workflow(
      { name: "odd", version: 1, queue, retry: { attempts: 1 } },
      async (_, big: boolean) => {
        throw big ? new Error("x".repeat(2_000_000)) : circular;
      },
    );
    const runs = await Promise.all([pawl.start(odd, false), pawl.start(odd, true)]);
    await pawl.worker({ workflows: [odd], queues: [queue] }).runUntilIdle();
    expect((await pawl.get(runs[0].id))!.error!.message).toBe("round");
    expect((await pawl.get(runs[1].id))!.error!.message.length).toBeLessThan(70_000);
  });

  test("does not keep the others from running", async ({ open, queue }) => {
    const pawl = open(place);
    const mixed = workflow(
      { name: "mixed", version: 1, queue, retry: { attempts: 1 } },
      async (_, input: number) => {
        if (input % 3 === 0) throw new Error("third");
        return input;
      },
    );
    await pawl.startMany(
      mixed,
      upTo(30).map((input) => ({ input })),
    );
    const summary = await pawl.worker({ workflows: [mixed], queues: [queue], concurrency: 2 }).runUntilIdle();
    expect(summary).toMatchObject({ isIdle: true, completed: 20, failed: 10 });
  });

  test("does not repeat the steps it had finished", async ({ open, queue }) => {
    const pawl = open(place);
    const calls: string[] = [];
    const steps = workflow({ name: "steps", version: 1, queue, retry: { ...instantly } }, async (ctx) => {
      const one = await ctx.step("one", () => (calls.push("one"), 1));
      const two = await ctx.step("two", () => {
        calls.push("two");
        if (calls.length < 4) throw new Error("two");
        return 2;
      });
      return one + two;
    });
    const run = await pawl.start(steps);
    await pawl.worker({ workflows: [steps], queues: [queue] }).runUntilIdle({ linger: "1s" });
    expect(calls).toEqual(["one", "two", "two", "two"]);
    expect(await run.result()).toBe(3);
  });

  test("whose output cannot be stored fails, and says why", async ({ open, queue }) => {
    const pawl = open(place);
    const odd = workflow({ name: "odd", version: 1, queue }, async () => () => {});
    const run = await pawl.start(odd);
    await pawl.worker({ workflows: [odd], queues: [queue] }).runUntilIdle({ linger: "1s" });
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { code: "INVALID_PAYLOAD" },
    });
  });

  test("and waits to be tried again can be cancelled, and is not tried again", async ({ open, queue }) => {
    const pawl = open(place);
    let calls = 0;
    const failing = workflow({ name: "failing", version: 1, queue, retry: { initial: "1h" } }, async () => {
      calls += 1;
      throw new Error("later");
    });
    const run = await pawl.start(failing);
    await work(pawl, { workflows: [failing], queues: [queue] });
    await eventually(() => run.status()).toBe("waiting");
    await run.cancel("not wanted any more");
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_CANCELLED",
      details: { reason: "not wanted any more" },
    });
    expect(calls).toBe(1);
  });

  test("and waits to be tried again can be tried now", async ({ open, queue }) => {
    const pawl = open(place);
    const failing = workflow(
      { name: "failing", version: 1, queue, retry: { initial: "1h" } },
      async (ctx) => {
        if (ctx.run.attempt === 1) throw new Error("later");
        return ctx.run.attempt;
      },
    );
    const run = await pawl.start(failing);
    await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle();
    await run.reschedule({ delay: 0 });
    await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toBe(2);
  });
});
