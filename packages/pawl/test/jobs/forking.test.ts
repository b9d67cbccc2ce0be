import { randomBytes } from "node:crypto";
import { describe, expect } from "vitest";
import { z } from "zod";
import { aesGcmCodec, workflow } from "../../src/index.ts";
import { createGate, eventually, places, test, work } from "./job-test.ts";

/** Three steps, of which the last may fail; says what ran. */
function createOrder(queue: string) {
  const state = { calls: [] as string[], isBroken: false };
  const order = workflow(
    { name: "order", version: 1, queue, retry: { attempts: 1 } },
    async (ctx, input: { readonly amount: number }) => {
      const id = ctx.uuid();
      const at = ctx.now();
      const held = await ctx.step("reserve", () => {
        state.calls.push("reserve");
        return { amount: input.amount, when: new Date(0) };
      });
      const refused = await ctx
        .step("check", () => {
          state.calls.push("check");
          throw Object.assign(new Error("refused"), { code: "E_NO" });
        })
        .catch((error: unknown) => (error as { readonly code: string }).code);
      await ctx.sleep(1);
      const paid = await ctx.step("charge", () => {
        state.calls.push("charge");
        if (state.isBroken) throw new Error("no");
        return input.amount;
      });
      return { id, at, held, refused, paid };
    },
  );
  return { order, state };
}

const codec = aesGcmCodec({ keys: [{ id: "1", key: randomBytes(32) }] });

describe.each(places)("a fork in %s", (place) => {
  for (const [how, options] of [
    ["plain", {}],
    ["encrypted", { codec }],
  ] as const) {
    test(`knows the updates, the values and what was written before, ${how}`, async ({ open, queue }) => {
      const pawl = open(place, options);
      const showing = workflow({ name: "showing", version: 1, queue }, async (ctx) => {
        const got: unknown[] = [];
        ctx.onUpdate<bigint>("add", (n) => got.push(n));
        await ctx.publish("shown", 1n);
        await ctx.stream("words").write("one");
        await ctx.waitForSignal("go");
        return ctx.step("last", () => got);
      });
      await work(pawl, { workflows: [showing], queues: [queue] });
      const source = await pawl.start(showing);
      expect(await source.update("add", 5n)).toBe(1);
      await source.signal("go", new Date(0));
      expect(await source.result()).toEqual([5n]);
      const fork = await source.fork({ from: "last" });
      expect(await fork.result()).toEqual([5n]);
      expect(await fork.published("shown")).toBe(1n);
    });

    test(`goes on from a step, with all that came before, ${how}`, async ({ open, queue }) => {
      const pawl = open(place, options);
      const { order, state } = createOrder(queue);
      await work(pawl, { workflows: [order], queues: [queue] });
      const source = await pawl.start(order, { amount: 5 }, { tags: [queue], priority: 3 });
      const first = await source.result();
      state.calls.length = 0;
      const fork = await source.fork({ from: "charge" });
      expect(fork.id).not.toBe(source.id);
      expect(await fork.result()).toEqual(first);
      expect(state.calls).toEqual(["charge"]);
      expect(await pawl.get(fork.id)).toMatchObject({
        forkedFrom: source.id,
        parentId: null,
        tags: [queue],
        priority: 3,
        input: { amount: 5 },
      });
      const history = await fork.history();
      expect(history.map(({ kind, name }) => [kind, name])).toEqual([
        ["forked", null],
        ["step_completed", "reserve"],
        ["step_failed", "check"],
        ["timer_set", "sleep"],
        ["timer_fired", "sleep"],
        ["step_completed", "charge"],
        ["completed", null],
      ]);
      expect(history[2]?.data).toMatchObject({ code: "E_NO", message: "refused" });
      expect(await source.history()).toHaveLength(6);
    });
  }

  test("of a failed run begins with the step that failed", async ({ open, queue }) => {
    const pawl = open(place);
    const { order, state } = createOrder(queue);
    state.isBroken = true;
    await work(pawl, { workflows: [order], queues: [queue] });
    const source = await pawl.start(order, { amount: 5 });
    await expect(source.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    state.isBroken = false;
    const fork = await pawl.fork(source.id, { from: "charge" });
    expect(await fork.result()).toMatchObject({ paid: 5 });
    expect(state.calls).toEqual(["reserve", "check", "charge", "charge"]);
    expect(await source.status()).toBe("failed");
  });

  test("of a fork remembers what both have done", async ({ open, queue }) => {
    const pawl = open(place, { codec });
    const { order, state } = createOrder(queue);
    await work(pawl, { workflows: [order], queues: [queue] });
    const source = await pawl.start(order, { amount: 5 });
    const first = await source.result();
    const fork = await source.fork({ from: "check" });
    const { id, at } = await fork.result();
    expect([id, at]).toEqual([first.id, first.at]);
    state.calls.length = 0;
    const again = await fork.fork({ from: "charge" });
    expect(await again.result()).toMatchObject({ id, at });
    expect(state.calls).toEqual(["charge"]);
  });

  test("with another input sees it from there on", async ({ open, queue }) => {
    const pawl = open(place, { codec });
    const { order } = createOrder(queue);
    await work(pawl, { workflows: [order], queues: [queue] });
    const source = await pawl.start(order, { amount: 5 });
    await source.result();
    const fork = await source.fork({ from: "charge", input: { amount: 9 } });
    expect(await fork.result()).toMatchObject({ held: { amount: 5 }, paid: 9 });
    const fresh = await source.fork({ from: "reserve", input: { amount: 9 } });
    expect(await fresh.result()).toMatchObject({ held: { amount: 9 }, paid: 9 });
  });

  test("parses another input with the workflow's schema", async ({ open, queue }) => {
    const pawl = open(place);
    const input = z.object({ n: z.coerce.number() });
    const job = workflow({ name: "parsed", version: 1, queue, input }, async (ctx, { n }) =>
      ctx.step("twice", () => n * 2),
    );
    await work(pawl, { workflows: [job], queues: [queue] });
    const source = await pawl.start(job, { n: "4" });
    expect(await source.result()).toBe(8);
    expect(await (await source.fork({ from: "twice" })).result()).toBe(8);
    expect(await (await source.fork({ from: "twice", input: { n: "5" } })).result()).toBe(10);
  });

  test("of a live run leaves it alone, and begins anew what has not ended", async ({ open, queue }) => {
    const pawl = open(place);
    const gate = createGate();
    const counts = { child: 0, beside: 0 };
    const child = workflow({ name: "child", version: 1, queue }, async (ctx) => {
      counts.child += 1;
      return ctx.waitForSignal("go");
    });
    const job = workflow({ name: "live", version: 1, queue }, async (ctx) => {
      const answer = ctx.call(child);
      await ctx.step("beside", () => (counts.beside += 1));
      const signal = await ctx.waitForSignal("next");
      await ctx.step("after", () => gate.opened);
      return [await answer, signal];
    });
    await work(pawl, { workflows: [job, child], queues: [queue] });
    const source = await pawl.start(job);
    await source.signal("next", 1);
    await eventually(async () => (await source.history()).map(({ kind }) => kind)).toContain(
      "signal_received",
    );
    const fork = await source.fork({ from: "signal:next" });
    await fork.signal("next", 2);
    gate.open();
    await eventually(() => counts.child).toBe(2);
    const { runs } = await pawl.list({ queue, workflow: "child" });
    for (const { id } of runs) await eventually(() => pawl.handle(id).status()).toBe("waiting");
    for (const { id, parentId } of runs)
      await pawl.signal(id, "go", parentId === fork.id ? "fork" : "source");
    expect(await fork.result()).toEqual(["fork", 2]);
    expect(await source.result()).toEqual(["source", 1]);
    expect(counts.beside).toBe(1);
  });

  test("keeps how a child ended, which was written for the child", async ({ open, queue }) => {
    const pawl = open(place, { codec });
    let children = 0;
    const child = workflow({ name: "child", version: 1, queue }, async () => ({ n: (children += 1) }));
    const job = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      const answer = await ctx.call(child);
      return ctx.step("after", () => answer);
    });
    await work(pawl, { workflows: [job, child], queues: [queue] });
    const source = await pawl.start(job);
    await source.result();
    expect(await (await source.fork({ from: "after" })).result()).toEqual({ n: 1 });
    expect(await (await source.fork({ from: "child" })).result()).toEqual({ n: 2 });
  });

  test("of a run that was tried twice leaves out what failed and was tried again", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const calls: string[] = [];
    const job = workflow(
      { name: "attempts", version: 1, queue, retry: { attempts: 2, initial: 0 } },
      async (ctx) => {
        await ctx.step("first", () => calls.push("first"));
        await ctx.step("flaky", () => {
          if (calls.push("flaky") === 2) throw new Error("once");
        });
        return ctx.step("last", () => calls.push("last"));
      },
    );
    await work(pawl, { workflows: [job], queues: [queue] });
    const source = await pawl.start(job);
    expect(await source.result()).toBe(4);
    const fork = await source.fork({ from: "last" });
    expect(await fork.result()).toBe(5);
    expect(calls).toEqual(["first", "flaky", "flaky", "last", "last"]);
    expect((await fork.history()).map(({ kind }) => kind)).toEqual([
      "step_completed",
      "forked",
      "step_completed",
      "step_completed",
      "completed",
    ]);
    await fork.retry({ from: "start" });
    await eventually(() => fork.status()).toBe("completed");
    expect(calls.slice(5)).toEqual(["first", "flaky", "last"]);
  });

  test("has a key like any run, and can be cancelled before it began", async ({ open, queue }) => {
    const pawl = open(place, { codec });
    const { order } = createOrder(queue);
    const source = await pawl.start(order, { amount: 5 });
    await work(pawl, { workflows: [order], queues: [queue] });
    await source.result();
    const key = `${queue} fork`;
    const fork = await source.fork({ from: "charge", key, tags: [], queue: `${queue}-other` });
    expect((await source.fork({ from: "charge", key })).id).toBe(fork.id);
    await expect(source.fork({ from: "charge", key, input: { amount: 6 } })).rejects.toMatchObject({
      code: "KEY_CONFLICT",
    });
    await fork.cancel("not needed");
    expect(await fork.status()).toBe("cancelled");
    expect(await pawl.get(fork.id)).toMatchObject({ tags: [], queue: `${queue}-other` });
  });

  test("is refused where there is no such step or run, and says which there are", async ({ open, queue }) => {
    const pawl = open(place);
    const { order } = createOrder(queue);
    const source = await pawl.start(order, { amount: 5 });
    await expect(source.fork({ from: "charge" })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining("asked for nothing yet"),
    });
    await work(pawl, { workflows: [order], queues: [queue] });
    await source.result();
    await expect(source.fork({ from: "chrage" })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining('"reserve", "check", "sleep", "charge"'),
      details: { known: ["reserve", "check", "sleep", "charge"] },
    });
    await expect(source.fork({} as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(source.fork({ from: "charge", step: 1 } as never)).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
    const missing = "019b76da-0000-7000-8000-000000000001";
    await expect(pawl.fork(missing, { from: "a" })).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  });
});

describe("a fork whose code does not fit", () => {
  test("is blocked before anything runs", async ({ open, queue }) => {
    const pawl = open("postgres");
    const calls: string[] = [];
    const job = workflow({ name: "branch", version: 1, queue }, async (ctx, input: string) => {
      await ctx.step(input, () => calls.push(input));
      await ctx.step("last", () => calls.push("last"));
    });
    await work(pawl, { workflows: [job], queues: [queue] });
    const source = await pawl.start(job, "left");
    await source.result();
    const fork = await source.fork({ from: "last", input: "right" });
    await eventually(() => fork.status()).toBe("blocked");
    expect(calls).toEqual(["left", "last"]);
    await fork.terminate();
  });
});
