import { describe, expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { createGate, eventually, factsOf, places, replay, test } from "./model-test.ts";

describe.each(places)("a run whose code pauses in %s", (place) => {
  test("is paused until it is resumed, and goes on from there", async ({ open, queue }) => {
    const ran: string[] = [];
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => {
      await ctx.step("before", () => ran.push("before"));
      await ctx.pause("Look at the mirror");
      await ctx.step("between", () => ran.push("between"));
      await ctx.pause();
      return ctx.step("after", () => ran.push("after"));
    });
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    const run = await pawl.start(job);
    await eventually(() => run.status()).toBe("paused");
    expect(ran).toEqual(["before"]);
    const paused = (await run.history()).find(({ kind }) => kind === "paused");
    expect(paused).toMatchObject({ name: "pause", data: { reason: "Look at the mirror" } });
    await run.resume();
    await eventually(() => factsOf(run, "paused")).toEqual(["pause", "pause#2"]);
    await eventually(() => run.status()).toBe("paused");
    await run.resume();
    expect(await run.result()).toBe(3);
    expect(ran).toEqual(["before", "between", "after"]);
  });

  test("takes no resume from before it paused, and one that comes while it is held", async ({
    open,
    queue,
  }) => {
    const gates = [createGate(), createGate()];
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => {
      await ctx.step("early", () => gates[0]!.opened);
      const beside = ctx.step("beside", () => gates[1]!.opened);
      await ctx.pause();
      await beside;
      return ctx.now();
    });
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    const run = await pawl.start(job);
    await eventually(() => run.status()).toBe("running");
    await run.resume();
    await eventually(async () => (await run.history()).map(({ kind }) => kind)).toEqual(["resumed"]);
    gates[0]!.open();
    // A step is in progress: the run is held, and its pause is a fact.
    await eventually(() => factsOf(run, "step_completed")).toEqual(["early"]);
    await eventually(() => factsOf(run, "paused")).toEqual(["pause"]);
    await run.resume();
    await eventually(() => factsOf(run, "resumed")).toEqual([null, null, "pause"]);
    gates[1]!.open();
    await run.result();
  });

  test("reads how its children ended once it is resumed, and fires no timer before", async ({
    open,
    queue,
  }) => {
    const child = workflow({ name: "child", version: 1, queue }, async () => "child");
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) =>
      Promise.all([ctx.call(child), ctx.sleep(1), ctx.pause()]),
    );
    const pawl = open(place);
    await replay(pawl, queue, [job, child]);
    const run = await pawl.start(job);
    await eventually(() => run.status()).toBe("paused");
    await eventually(async () => (await pawl.list({ queue, workflow: "child" })).runs[0]?.status).toBe(
      "completed",
    );
    expect(await factsOf(run, "timer_fired")).toEqual([]);
    expect(await factsOf(run, "child_ended")).toEqual([]);
    await run.resume();
    expect(await run.result()).toEqual(["child", undefined, undefined]);
  });

  test("is forked beyond its pauses, which are not asked for again", async ({ open, queue }) => {
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => {
      await ctx.step("a", () => 1);
      await ctx.pause();
      await ctx.step("b", () => 2);
      return ctx.step("c", () => 3);
    });
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    const run = await pawl.start(job);
    await eventually(() => run.status()).toBe("paused");
    await run.resume();
    await run.result();
    const fork = await run.fork({ from: "c" });
    expect(await fork.result()).toBe(3);
    expect(await factsOf(fork, "paused")).toEqual(["pause"]);
  });

  test("can be cancelled", async ({ open, queue }) => {
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => ctx.pause());
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    const run = await pawl.start(job);
    await eventually(() => run.status()).toBe("paused");
    await run.cancel("no");
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
  });

  test("is paused by an operator too, and one resume lets it go on", async ({ open, queue }) => {
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => {
      await ctx.pause();
      return "done";
    });
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    const run = await pawl.start(job);
    await eventually(() => run.status()).toBe("paused");
    await run.pause();
    await run.resume();
    expect(await run.result()).toBe("done");
  });
});

describe.each(places)("a child in %s", (place) => {
  test("may have retries of its own, and expire unless it is begun in time", async ({ open, queue }) => {
    let calls = 0;
    const child = workflow({ name: "child", version: 1, queue }, async () => {
      calls += 1;
      throw new Error("failure");
    });
    const parent = workflow({ name: "parent", version: 1, queue, retry: { attempts: 1 } }, async (ctx) => {
      const codeOf = (error: unknown): unknown => (error as { readonly code?: string }).code;
      return [
        await ctx.call(child, undefined, { retry: { attempts: 2, initial: 0 } }).catch(codeOf),
        await ctx.call(child, undefined, { queue: `${queue}-nobody`, expiresIn: 20 }).catch(codeOf),
      ];
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    expect(await (await pawl.start(parent)).result()).toEqual(["RUN_FAILED", "RUN_EXPIRED"]);
    expect(calls).toBe(2);
  });
});
