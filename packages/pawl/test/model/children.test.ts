import { describe, expect } from "vitest";
import { z } from "zod";
import { workflow, type PawlError, type RunId, type RunStatus, type Workflow } from "../../src/index.ts";
import { createGate, eventually, places, replay, test, upTo } from "./model-test.ts";

const once = { attempts: 1 } as const;

/** Child workflows of Temporal, DBOS and OpenWorkflow. */
describe.each(places)("a child in %s", (place) => {
  const codeOf = (error: unknown): string => (error as PawlError).code;

  // Temporal, OpenWorkflow, DBOS
  test("gives its output to its parent, and can be asked by its id, too", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue }, async (_, input: number) => input + 1);
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      const started = await ctx.start(child, 1);
      return { id: started.id, called: await ctx.call(child, 5), started: await started.result() };
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    const run = await pawl.start(parent);
    const { id, called, started } = await run.result();
    expect([called, started]).toEqual([6, 2]);
    expect(await pawl.handle(id, child).result()).toBe(2);
    expect(await pawl.get(id)).toMatchObject({ parentId: run.id, rootId: run.id });
  });

  // Temporal: the error of a child is the cause of the error of its parent
  test("that fails fails its parent, with the whole chain of causes", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue, retry: once }, async () => {
      throw new TypeError("failure");
    });
    const parent = workflow({ name: "parent", version: 1, queue, retry: once }, async (ctx) =>
      ctx.call(child),
    );
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    await expect((await pawl.start(parent)).result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { code: "RUN_FAILED", cause: { name: "TypeError", message: "failure" } },
    });
  });

  // DBOS, Temporal
  test("that fails may be caught, and the parent goes on the same way when replayed", async ({
    open,
    queue,
  }) => {
    let calls = 0;
    const child = workflow({ name: "child", version: 1, queue, retry: once }, async () => {
      calls += 1;
      throw new Error("failure");
    });
    const parent = workflow({ name: "parent", version: 1, queue, retry: once }, async (ctx) => {
      const told = await ctx.call(child).catch(codeOf);
      await ctx.step("note", () => {});
      await ctx.sleep(1);
      return told;
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    expect(await (await pawl.start(parent)).result()).toBe("RUN_FAILED");
    expect(calls).toBe(1);
  });

  // Temporal: child-workflow-timeout, -termination, -cancel
  test("that times out, is terminated or cancelled says so to its parent", async ({ open, queue }) => {
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const parent = workflow({ name: "parent", version: 1, queue, retry: once }, async (ctx) => {
      const children = await Promise.all([ctx.start(sleeper), ctx.start(sleeper)]);
      await ctx.publish(
        "ids",
        children.map(({ id }) => id),
      );
      return Promise.all([
        ctx.call(sleeper, undefined, { timeout: 20 }).catch(codeOf),
        ...children.map((started) => started.result().catch(codeOf)),
      ]);
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, sleeper]);
    const run = await pawl.start(parent);
    await eventually(() => run.published("ids")).toHaveLength(2);
    const [first, second] = (await run.published("ids")) as RunId[];
    await pawl.terminate(first!, "now");
    await pawl.cancel(second!, "please");
    expect(await run.result()).toEqual(["RUN_TIMED_OUT", "RUN_CANCELLED", "RUN_CANCELLED"]);
  });

  // Temporal: cancellation of a parent reaches its children; parent close policy "abandon" keeps one
  test("is cancelled with its parent, and so are its own; one that is detached goes on", async ({
    open,
    queue,
  }) => {
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));
    const middle = workflow({ name: "middle", version: 1, queue }, async (ctx) => ctx.call(sleeper));
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      await ctx.start(sleeper, undefined, { detached: true, tags: [`${queue} detached`] });
      await ctx.call(middle);
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, middle, sleeper]);
    const run = await pawl.start(parent);
    const statuses = async (): Promise<Record<string, RunStatus>> => {
      const { runs } = await pawl.list({ queue });
      return Object.fromEntries(
        runs.map(({ workflow: name, tags, status }) => [tags.length > 0 ? "detached" : name, status]),
      );
    };
    await eventually(statuses).toEqual({
      parent: "waiting",
      middle: "waiting",
      sleeper: "waiting",
      detached: "waiting",
    });
    await run.cancel();
    await eventually(statuses).toEqual({
      parent: "cancelled",
      middle: "cancelled",
      sleeper: "cancelled",
      detached: "waiting",
    });
    const { runs } = await pawl.list({ queue, tags: [`${queue} detached`] });
    await pawl.signal(runs[0]!.id, "go", "alone");
    expect(await pawl.handle(runs[0]!.id).result()).toBe("alone");
  });

  // DBOS: a started workflow outlives its parent. Temporal's default terminates it.
  test("that was started goes on when its parent completes", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));
    const parent = workflow(
      { name: "parent", version: 1, queue },
      async (ctx) => (await ctx.start(child)).id,
    );
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    const id = await (await pawl.start(parent)).result();
    await pawl.signal(id, "go", "still here");
    expect(await pawl.handle(id).result()).toBe("still here");
  });

  // OpenWorkflow: fan-out of 300; Temporal: many children
  test("is one of three hundred, each started once and joined in order", async ({ open, queue }) => {
    const runs: string[] = [];
    const child = workflow({ name: "child", version: 1, queue }, async (ctx, index: number) =>
      ctx.step("work", () => {
        runs.push(ctx.run.id);
        return index;
      }),
    );
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      const results = await Promise.all(upTo(300).map((index) => ctx.call(child, index)));
      await ctx.step("notify", () => {});
      return results;
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    expect(await (await pawl.start(parent)).result()).toEqual(upTo(300));
    expect(runs).toHaveLength(300);
    expect(new Set(runs).size).toBe(300);
  }, 60_000);

  // OpenWorkflow: one of many fails
  test("that fails among many fails the parent, and nothing after the join runs", async ({ open, queue }) => {
    let isNotified = false;
    const child = workflow({ name: "child", version: 1, queue, retry: once }, async (_, index: number) => {
      if (index === 15) throw new Error("failure at 15");
      return index;
    });
    const parent = workflow({ name: "parent", version: 1, queue, retry: once }, async (ctx) => {
      await Promise.all(upTo(30).map((index) => ctx.call(child, index)));
      await ctx.step("notify", () => {
        isNotified = true;
      });
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    await expect((await pawl.start(parent)).result()).rejects.toMatchObject({
      cause: { code: "RUN_FAILED", cause: { message: "failure at 15" } },
    });
    expect(isNotified).toBe(false);
    const { runs } = await pawl.list({ queue, workflow: "child", limit: 100 });
    expect(runs).toHaveLength(30);
  });

  // OpenWorkflow: no second child while the parent waits and is replayed
  test("is started once, however often its parent is replayed meanwhile", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue }, async (ctx) => {
      await ctx.waitForSignal("go");
      return "done";
    });
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      const waiting = ctx.call(child);
      for (let turn = 0; turn < 3; turn++) await ctx.waitForSignal("wake");
      return waiting;
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    const run = await pawl.start(parent);
    for (let turn = 0; turn < 3; turn++) {
      await run.signal("wake");
      await eventually(
        async () => (await run.history()).filter(({ kind }) => kind === "signal_received").length,
      ).toBe(turn + 1);
    }
    const { runs } = await pawl.list({ queue, workflow: "child" });
    expect(runs).toHaveLength(1);
    await pawl.signal(runs[0]!.id, "go");
    expect(await run.result()).toBe("done");
  });

  // OpenWorkflow: the child ends before its parent waits
  test("that has ended before its parent asks gives its output at once", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue }, async () => "early");
    const gate = createGate();
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      const started = await ctx.start(child);
      await ctx.step("wait", () => gate.opened);
      return started.result();
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    const run = await pawl.start(parent);
    await eventually(async () => (await pawl.list({ queue, workflow: "child" })).runs[0]?.status).toBe(
      "completed",
    );
    gate.open();
    expect(await run.result()).toBe("early");
  });

  // OpenWorkflow: input is checked before a child is made
  test("is not started with an input that its schema refuses", async ({ open, queue }) => {
    const child = workflow(
      { name: "child", version: 1, queue, input: z.object({ email: z.email() }) },
      async (_, { email }) => email,
    );
    const parent = workflow({ name: "parent", version: 1, queue, retry: once }, async (ctx) =>
      ctx.call(child, { email: "no email" }),
    );
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    await expect((await pawl.start(parent)).result()).rejects.toMatchObject({
      cause: { code: "INVALID_PAYLOAD" },
    });
    expect((await pawl.list({ queue, workflow: "child" })).runs).toEqual([]);
  });

  // Temporal: another task queue; DBOS: enqueue in a queue
  test("may go to another queue, whose workers alone execute it", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1 }, async (ctx) => ctx.run.parentId);
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) =>
      ctx.call(child, undefined, { queue: `${queue}-other` }),
    );
    const pawl = open(place);
    await replay(pawl, queue, [parent]);
    const run = await pawl.start(parent);
    await eventually(async () => (await pawl.list({ queue: `${queue}-other` })).runs.length).toBe(1);
    await replay(pawl, `${queue}-other`, [child]);
    expect(await run.result()).toBe(run.id);
  });

  // Temporal: child-workflow-unregistered, "workflow not found results in task retry"
  test("that no worker knows waits, and the backlog shows it", async ({ open, queue }) => {
    const child = workflow({ name: "unknown-child", version: 3, queue }, async () => "known now");
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => ctx.call(child));
    const pawl = open(place);
    await replay(pawl, queue, [parent]);
    const run = await pawl.start(parent);
    await eventually(() => pawl.backlog()).toContainEqual(
      expect.objectContaining({ queue, workflow: "unknown-child", version: 3 }),
    );
    await replay(pawl, queue, [child]);
    expect(await run.result()).toBe("known now");
  });

  // Temporal, DBOS: recursion
  test("may be a run of its parent's own workflow", async ({ open, queue }) => {
    const fibonacci: Workflow<number, number> = workflow(
      { name: "fibonacci", version: 1, queue },
      async (ctx, n: number): Promise<number> => {
        if (n < 2) return n;
        const [a, b] = await Promise.all([ctx.call(fibonacci, n - 1), ctx.call(fibonacci, n - 2)]);
        return a + b;
      },
    );
    const pawl = open(place);
    await replay(pawl, queue, [fibonacci]);
    expect(await (await pawl.start(fibonacci, 6)).result()).toBe(8);
  });

  // Temporal: a parent that is tried again has new children
  test("that failed is started anew by the parent's next attempt; one that completed is not", async ({
    open,
    queue,
  }) => {
    const calls: string[] = [];
    const child = workflow({ name: "child", version: 1, queue, retry: once }, async (_, name: string) => {
      calls.push(name);
      if (name === "bad" && calls.filter((call) => call === "bad").length === 1) throw new Error("once");
      return name;
    });
    const parent = workflow({ name: "parent", version: 1, queue, retry: { initial: 0 } }, async (ctx) => [
      await ctx.call(child, "good"),
      await ctx.call(child, "bad"),
    ]);
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    expect(await (await pawl.start(parent)).result()).toEqual(["good", "bad"]);
    expect(calls).toEqual(["good", "bad", "bad"]);
  });
});
