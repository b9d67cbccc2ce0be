import { describe, expect } from "vitest";
import { workflow, type Workflow } from "../../src/index.ts";
import { createGate, eventually, places, test, upTo, work } from "./job-test.ts";

describe.each(places)("a job executed in %s", (place) => {
  test("may be a plain function, and return nothing", async ({ open, queue }) => {
    const pawl = open(place);
    const plain = workflow({ name: "plain", version: 1, queue }, (_, input: number) => input + 1);
    const silent = workflow({ name: "silent", version: 1, queue }, () => {});
    const runs = [await pawl.start(plain, 1), await pawl.start(silent)] as const;
    await pawl.worker({ workflows: [plain, silent], queues: [queue] }).runUntilIdle();
    expect(await runs[0].result()).toBe(2);
    expect(await runs[1].result()).toBeUndefined();
  });

  test("that throws at once, before it returns a promise, fails like any other", async ({ open, queue }) => {
    const pawl = open(place);
    const hasty = workflow(
      { name: "hasty", version: 1, queue, retry: { attempts: 1 } },
      (): Promise<void> => {
        throw new Error("at once");
      },
    );
    const run = await pawl.start(hasty);
    await pawl.worker({ workflows: [hasty], queues: [queue] }).runUntilIdle();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { message: "at once" } });
  });

  test("knows who it is", async ({ open, queue }) => {
    const pawl = open(place);
    const self = workflow({ name: "self", version: 4, queue }, async (ctx) => ({ ...ctx.run }));
    const run = await pawl.start(self, undefined, { key: queue });
    await pawl.worker({ workflows: [self], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toEqual({
      id: run.id,
      workflow: "self",
      version: 4,
      attempt: 1,
      key: queue,
      parentId: null,
    });
  });

  test("gets a copy of its input: what it does to it changes nothing stored", async ({ open, queue }) => {
    const pawl = open(place);
    const given = { items: [1, 2] };
    const greedy = workflow(
      { name: "greedy", version: 1, queue, retry: { initial: 0 } },
      async (ctx, input: typeof given) => {
        input.items.push(99);
        if (ctx.run.attempt === 1) throw new Error("once more");
        return input.items;
      },
    );
    const run = await pawl.start(greedy, given);
    given.items.push(3);
    await pawl.worker({ workflows: [greedy], queues: [queue] }).runUntilIdle({ linger: "1s" });
    expect(await run.result()).toEqual([1, 2, 99]);
    expect((await pawl.get(run.id))!.input).toEqual({ items: [1, 2] });
  });

  test("returns dates, maps and large numbers as they are", async ({ open, queue }) => {
    const pawl = open(place);
    const value = {
      at: new Date(0),
      map: new Map([[1, new Set(["x"])]]),
      big: 2n ** 80n,
      bytes: new Uint8Array([1, 2]),
    };
    const rich = workflow({ name: "rich", version: 1, queue }, async (_, input: typeof value) => input);
    const run = await pawl.start(rich, value);
    await pawl.worker({ workflows: [rich], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toEqual(value);
    expect((await pawl.get(run.id))!.output).toEqual(value);
  });

  test("whose output is too large fails, and is not tried again", async ({ open, queue }) => {
    const pawl = open(place, { maxPayloadBytes: 1_000 });
    let calls = 0;
    const large = workflow({ name: "large", version: 1, queue, retry: { initial: 0 } }, async () => {
      calls += 1;
      return "x".repeat(2_000);
    });
    const run = await pawl.start(large);
    await pawl.worker({ workflows: [large], queues: [queue] }).runUntilIdle({ linger: 200 });
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { code: "INVALID_PAYLOAD" },
    });
    expect(calls).toBe(1);
  });

  test("has the same idempotency key at every attempt of a step, and another for every other", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const keys: string[] = [];
    const job = workflow({ name: "job", version: 1, queue, retry: { initial: 0 } }, async (ctx) => {
      await ctx.step("pay", ({ idempotencyKey, attempt }) => {
        keys.push(idempotencyKey);
        if (attempt === 1) throw new Error("once more");
      });
      await ctx.step("pay", ({ idempotencyKey }) => keys.push(idempotencyKey));
    });
    await pawl.startMany(job, [{}, {}]);
    await pawl.worker({ workflows: [job], queues: [queue], concurrency: 1 }).runUntilIdle({ linger: "1s" });
    expect(keys).toHaveLength(6);
    expect(new Set(keys).size).toBe(4);
  });

  test("is awaited by as many as like, from any handle, before and after its end", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const gate = createGate();
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) =>
      ctx.step("wait", () => gate.opened.then(() => 7)),
    );
    const run = await pawl.start(job);
    await work(pawl, { workflows: [job], queues: [queue] });
    const waiting = upTo(100).map(() => pawl.handle(run.id, job).result());
    gate.open();
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([7]));
    expect(await pawl.handle(run.id).result()).toBe(7);
  });

  test("can be waited for no longer than one likes", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => {});
    const run = await pawl.start(job);
    await expect(run.result({ signal: AbortSignal.timeout(20) })).rejects.toMatchObject({
      name: "TimeoutError",
    });
    expect(await run.status()).toBe("pending");
  });

  test("of an old version goes on with the old code beside the new", async ({ open, queue }) => {
    const pawl = open(place);
    const versions = [1, 2].map((version): Workflow<undefined, number> =>
      workflow({ name: "job", version, queue }, async () => version),
    );
    const runs = [];
    for (const version of versions) runs.push(await pawl.start(version));
    await pawl.worker({ workflows: versions, queues: [queue] }).runUntilIdle();
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 2]);
  });

  test("cannot be one of two with the same name and version", ({ open }) => {
    const twins = [1, 2].map(() => workflow({ name: "twin", version: 1 }, async () => {}));
    expect(() => open(place).worker({ workflows: twins })).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
    expect(() => open(place).worker({ workflows: [] })).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
  });

  test("far in the future is kept for then", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => "now");
    const at = new Date(8.64e15);
    const run = await pawl.start(job, undefined, { at });
    expect(await pawl.get(run.id)).toMatchObject({ dueAt: at, status: "pending" });
    const years = await pawl.start(job, undefined, { delay: "365000d" });
    expect((await pawl.get(years.id))!.dueAt!.getUTCFullYear()).toBeGreaterThan(3_000);
    await run.reschedule({ delay: 0 });
    await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toBe("now");
  });

  test("that was cancelled before it began has made no attempt", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => {});
    const run = await pawl.start(job);
    await run.cancel("no");
    await eventually(() => run.status()).toBe("cancelled");
    expect(await run.attempts()).toEqual([]);
    expect((await run.history()).map(({ kind }) => kind)).toEqual(["cancel_requested", "cancelled"]);
  });

  test("whose parent is terminated is cancelled", async ({ open, queue }) => {
    const pawl = open(place);
    const child = workflow({ name: "child", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => ctx.call(child));
    const run = await pawl.start(parent);
    await work(pawl, { workflows: [parent, child], queues: [queue] });
    const children = async () =>
      (await pawl.list({ queue, workflow: "child" })).runs.map(({ status }) => status);
    await eventually(children).toEqual(["waiting"]);
    await run.terminate();
    await eventually(children).toEqual(["cancelled"]);
  });

  test("may go to five hundred queues in one call", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1 }, async (_, input: number) => input);
    const queues = upTo(500).map((index) => `${queue} ${index}`);
    await pawl.startMany(
      job,
      queues.map((name, input) => ({ input, queue: name })),
    );
    const summary = await pawl.worker({ workflows: [job], queues, concurrency: 50 }).runUntilIdle();
    expect(summary).toMatchObject({ completed: 500 });
  });
});
