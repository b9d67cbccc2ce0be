import { describe, expect } from "vitest";
import { z } from "zod";
import { workflow, type RunId } from "../../src/index.ts";
import { eventually, factsOf, places, replay, test, upTo } from "./model-test.ts";

const once = { attempts: 1 } as const;
const nobody = "01900000-0000-7000-8000-000000000000";

/** Send and recv of DBOS, signals of Temporal and OpenWorkflow, events of Absurd. */
describe.each(places)("a signal in %s", (place) => {
  // Temporal, Absurd, DBOS
  test("that was sent before the run began is there when it waits", async ({ open, queue }) => {
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));
    const pawl = open(place);
    const run = await pawl.start(waiter);
    await run.signal("go", { early: true });
    await replay(pawl, queue, [waiter]);
    expect(await run.result()).toEqual({ early: true });
  });

  // Absurd, OpenWorkflow
  test("wakes a run that waits for it, and the wait shows meanwhile", async ({ open, queue }) => {
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => {
      const told = await ctx.waitForSignal("go", { timeout: "1h" });
      await ctx.sleep(1);
      return ctx.step("after", () => told);
    });
    const pawl = open(place);
    await replay(pawl, queue, [waiter]);
    const run = await pawl.start(waiter);
    await eventually(() => run.status()).toBe("waiting");
    expect((await pawl.get(run.id))!.wants).toContain("signal:go");
    await run.signal("go", 42);
    expect(await run.result()).toBe(42);
  });

  // DBOS, Temporal
  test("of one name is taken in the order sent, apart from those of other names", async ({ open, queue }) => {
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => {
      const taken: unknown[] = [];
      for (let turn = 0; turn < 50; turn++) taken.push(await ctx.waitForSignal("a"));
      return [taken, await ctx.waitForSignal("b")];
    });
    const pawl = open(place);
    const run = await pawl.start(waiter);
    await run.signal("b", "other");
    for (const index of upTo(25)) await run.signal("a", index);
    await replay(pawl, queue, [waiter]);
    for (const index of upTo(25)) await run.signal("a", 25 + index);
    expect(await run.result()).toEqual([upTo(50), "other"]);
  });

  // DBOS: recv gives null
  test("that does not come in time is null, and one that comes later does not change that", async ({
    open,
    queue,
  }) => {
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => {
      const first = await ctx.waitForSignal("go", { timeout: 10 });
      await ctx.step("noted", () => {});
      const second = await ctx.waitForSignal("go");
      await ctx.sleep(1);
      return [first, second];
    });
    const pawl = open(place);
    await replay(pawl, queue, [waiter]);
    const run = await pawl.start(waiter);
    await eventually(() => factsOf(run, "step_completed")).toEqual(["noted"]);
    await run.signal("go", "late");
    expect(await run.result()).toEqual([null, "late"]);
  });

  // DBOS
  test("may be waited for not at all: what is there is taken, else null", async ({ open, queue }) => {
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => [
      await ctx.waitForSignal("go", { timeout: 0 }),
      await ctx.waitForSignal("go", { timeout: 0 }),
    ]);
    const pawl = open(place);
    const run = await pawl.start(waiter);
    await run.signal("go", "there");
    await replay(pawl, queue, [waiter]);
    expect(await run.result()).toEqual(["there", null]);
  });

  // DBOS: idempotency key of send
  test("that is sent twice under one key is one", async ({ open, queue }) => {
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => [
      await ctx.waitForSignal("go"),
      await ctx.waitForSignal("go", { timeout: 30 }),
    ]);
    const pawl = open(place);
    const run = await pawl.start(waiter);
    for (const payload of [1, 1, 1]) await run.signal("go", payload, { idempotencyKey: "webhook 7" });
    await replay(pawl, queue, [waiter]);
    expect(await run.result()).toEqual([1, null]);
  });

  // DBOS, Temporal
  test("to a run that does not exist is refused", async ({ open }) => {
    const pawl = open(place);
    await expect(pawl.signal(nobody, "go")).rejects.toMatchObject({
      code: "RUN_NOT_FOUND",
    });
  });

  // Temporal
  test("to a run that has ended is refused", async ({ open, queue }) => {
    const quick = workflow({ name: "quick", version: 1, queue }, async () => {});
    const pawl = open(place);
    await replay(pawl, queue, [quick]);
    const run = await pawl.start(quick);
    await run.result();
    await expect(run.signal("go")).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  // DBOS: send from a workflow, once; Temporal: external signal; OpenWorkflow: sendSignal is replay-safe
  test("may come from a step of another run, and is sent once", async ({ open, queue }) => {
    const pawl = open(place);
    const receiver = workflow({ name: "receiver", version: 1, queue }, async (ctx) => [
      await ctx.waitForSignal("go"),
      await ctx.waitForSignal("go", { timeout: 50 }),
    ]);
    const sender = workflow(
      { name: "sender", version: 1, queue, retry: { initial: 0 } },
      async (ctx, runId: RunId) => {
        await ctx.step("send", ({ idempotencyKey }) => pawl.signal(runId, "go", "hello", { idempotencyKey }));
        if (ctx.run.attempt === 1) throw new Error("after the send");
      },
    );
    await replay(pawl, queue, [receiver, sender]);
    const run = await pawl.start(receiver);
    await (await pawl.start(sender, run.id)).result();
    expect(await run.result()).toEqual(["hello", null]);
  });

  // Temporal: a parent signals its child by its handle
  test("may go from a parent to a child that it started", async ({ open, queue }) => {
    const pawl = open(place);
    const child = workflow({ name: "child", version: 1, queue }, async (ctx) => ctx.waitForSignal("unblock"));
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      const started = await ctx.start(child);
      await ctx.step("unblock", () => pawl.signal(started.id, "unblock", "by parent"));
      return started.result();
    });
    await replay(pawl, queue, [parent, child]);
    expect(await (await pawl.start(parent)).result()).toBe("by parent");
  });

  // Temporal: interrupt-signal, unblock-or-cancel
  test("may interrupt what the run does", async ({ open, queue }) => {
    const busy = workflow({ name: "busy", version: 1, queue, retry: once }, async (ctx) => {
      const first = await ctx.race({
        work: async (inner) => {
          for (;;) await inner.sleep("1h");
        },
        interrupt: ctx.waitForSignal<string>("interrupt"),
      });
      throw new Error(first.value);
    });
    const pawl = open(place);
    await replay(pawl, queue, [busy]);
    const run = await pawl.start(busy);
    await eventually(() => run.status()).toBe("waiting");
    await run.signal("interrupt", "just because");
    await expect(run.result()).rejects.toMatchObject({ cause: { message: "just because" } });
  });

  // OpenWorkflow: data is checked against a schema
  test("is checked by its schema, and one that does not fit is the sender's error", async ({
    open,
    queue,
  }) => {
    const waiter = workflow(
      { name: "waiter", version: 1, queue, signals: { approve: z.object({ approved: z.boolean() }) } },
      async (ctx) => ctx.waitForSignal("approve"),
    );
    const pawl = open(place);
    await replay(pawl, queue, [waiter]);
    const run = await pawl.start(waiter);
    const wrong = { approved: "yes" } as unknown as { approved: boolean };
    await expect(run.signal("approve", wrong)).rejects.toMatchObject({ code: "INVALID_PAYLOAD" });
    await run.signal("approve", { approved: true });
    expect(await run.result()).toEqual({ approved: true });
  });

  // Temporal: several handlers; OpenWorkflow refuses a second wait for the same signal
  test("goes to the wait that was asked first, of two for its name", async ({ open, queue }) => {
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) =>
      Promise.all([ctx.waitForSignal("go"), ctx.waitForSignal("go")]),
    );
    const pawl = open(place);
    await replay(pawl, queue, [waiter]);
    const run = await pawl.start(waiter);
    await run.signal("go", 1);
    await eventually(() => factsOf(run, "signal_received").then(({ length }) => length)).toBe(1);
    await run.signal("go", 2);
    expect(await run.result()).toEqual([1, 2]);
  });

  // Absurd: one event, many waiters. Here each run is told.
  test("is told to each of many runs that fit a filter", async ({ open, queue }) => {
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx, index: number) => [
      index,
      await ctx.waitForSignal("news"),
    ]);
    const pawl = open(place);
    const runs = await pawl.startMany(
      waiter,
      upTo(3).map((input) => ({ input })),
    );
    await replay(pawl, queue, [waiter]);
    for await (const { id } of pawl.listAll({ queue, workflow: "waiter" }))
      await pawl.signal(id, "news", "all");
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(
      upTo(3).map((index) => [index, "all"]),
    );
  });

  // Temporal: signal with start
  test("starts the run of its key where there is none, and of many at once none is lost", async ({
    open,
    queue,
  }) => {
    const basket = workflow({ name: "basket", version: 1, queue }, async (ctx) => {
      const things: unknown[] = [];
      while (things.length < 8) things.push(await ctx.waitForSignal("add"));
      return things;
    });
    const pawl = open(place);
    await replay(pawl, queue, [basket]);
    const runs = await Promise.all(
      upTo(8).map((payload) => pawl.signalOrStart(basket, { key: queue, signal: "add", payload })),
    );
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
    expect(new Set(await runs[0]!.result())).toEqual(new Set(upTo(8)));
  });
});
