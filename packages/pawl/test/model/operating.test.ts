import { describe, expect } from "vitest";
import { workflow, type RunId } from "../../src/index.ts";
import { eventually, factsOf, places, replay, test, upTo } from "./model-test.ts";

const once = { attempts: 1 } as const;
const nobody = "01900000-0000-7000-8000-000000000000" as RunId;

/** Workflow ids of DBOS and Temporal, idempotency keys of Absurd and OpenWorkflow. */
describe.each(places)("a start with a key in %s", (place) => {
  // DBOS, Absurd, OpenWorkflow
  test("is one run, however many start it at once, and each gets its result", async ({ open, queue }) => {
    let calls = 0;
    const job = workflow({ name: "job", version: 1, queue }, async (ctx, input: number) =>
      ctx.step("work", () => {
        calls += 1;
        return input;
      }),
    );
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    const runs = await Promise.all(upTo(10).map(() => pawl.start(job, 7, { key: queue })));
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(upTo(10).map(() => 7));
    expect(await (await pawl.start(job, 7, { key: queue })).result()).toBe(7);
    expect(calls).toBe(1);
  });

  // Temporal: already started; DBOS: a conflicting workflow under the same id
  test("of another workflow or input is refused, and so is a second one where one says so", async ({
    open,
    queue,
  }) => {
    const job = workflow({ name: "job", version: 1, queue }, async (_, input: number) => input);
    const other = workflow({ name: "other", version: 1, queue }, async (_, input: number) => input);
    const pawl = open(place);
    await pawl.start(job, 7, { key: queue });
    for (const start of [
      () => pawl.start(other, 7, { key: queue }),
      () => pawl.start(job, 8, { key: queue }),
      () => pawl.start(job, 7, { key: queue, onConflict: "reject" as const }),
    ])
      await expect(start()).rejects.toMatchObject({ code: "KEY_CONFLICT" });
  });

  // DBOS: the same key in a step starts one run, however often the step is repeated
  test("from a step that is repeated is one run", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => "done");
    const starter = workflow({ name: "starter", version: 1, queue }, async (ctx) =>
      ctx.step(
        "start",
        async ({ idempotencyKey, attempt }) => {
          const { id } = await pawl.start(job, undefined, { key: idempotencyKey });
          if (attempt < 3) throw new Error("after the start");
          return id;
        },
        { retry: { initial: 0 } },
      ),
    );
    await replay(pawl, queue, [starter, job]);
    const id = await (await pawl.start(starter)).result();
    expect(await pawl.handle(id).result()).toBe("done");
    expect((await pawl.list({ queue, workflow: "job" })).runs).toHaveLength(1);
  });
});

/** Resume of DBOS and OpenWorkflow, rewind of DBOS, reset of Temporal. */
describe.each(places)("retrying a run in %s", (place) => {
  // OpenWorkflow: resume re-runs the failed step alone, and goes on past it
  test("calls the step that failed and those after it, none before it", async ({ open, queue }) => {
    const ran: string[] = [];
    let isDown = true;
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) => {
      await ctx.step("validate", () => ran.push("validate"));
      const paid = await ctx.step(
        "pay",
        () => {
          ran.push("pay");
          if (isDown) throw new Error("down");
          return "paid";
        },
        { retry: { attempts: 2, initial: 0 } },
      );
      await ctx.step("ship", () => ran.push("ship"));
      return paid;
    });
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    const run = await pawl.start(order);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    expect(ran).toEqual(["validate", "pay", "pay"]);
    isDown = false;
    await run.retry();
    expect(await run.result()).toBe("paid");
    expect(ran).toEqual(["validate", "pay", "pay", "pay", "ship"]);
    expect(await factsOf(run, "step_failed")).toEqual(["pay"]);
  });

  // DBOS: rewind keeps the id; resume of a completed workflow runs nothing
  test("that completed runs nothing, unless it begins anew under its id", async ({ open, queue }) => {
    let calls = 0;
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) =>
      ctx.step("count", () => (calls += 1)),
    );
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    const run = await pawl.start(job, undefined, { key: queue });
    expect(await run.result()).toBe(1);
    await expect(run.retry()).rejects.toMatchObject({ code: "RUN_ENDED" });
    await run.retry({ from: "start" });
    expect(await run.result()).toBe(2);
    expect((await pawl.start(job, undefined, { key: queue })).id).toBe(run.id);
  });

  // DBOS
  test("that there is none of is refused, and one that lives stays as it is", async ({ open, queue }) => {
    let calls = 0;
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => {
      await ctx.step("count", () => (calls += 1));
      return ctx.waitForSignal("go");
    });
    const pawl = open(place);
    await replay(pawl, queue, [waiter]);
    await expect(pawl.retry(nobody)).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    const run = await pawl.start(waiter);
    await eventually(() => run.status()).toBe("waiting");
    await run.retry();
    await run.retry({ from: "start" });
    await run.signal("go", "same");
    expect(await run.result()).toBe("same");
    expect(calls).toBe(1);
  });

  // DBOS: signals that the discarded steps took are gone, later ones are what the new life gets
  test("from its start waits for signals anew", async ({ open, queue }) => {
    let life = 0;
    const receiver = workflow({ name: "receiver", version: 1, queue }, async (ctx) => {
      const at = await ctx.step("life", () => (life += 1));
      return `${await ctx.waitForSignal<string>("cmd")}${await ctx.waitForSignal<string>("cmd")}:${at}`;
    });
    const pawl = open(place);
    await replay(pawl, queue, [receiver]);
    const run = await pawl.start(receiver);
    for (const payload of ["a", "b"]) await run.signal("cmd", payload);
    expect(await run.result()).toBe("ab:1");
    await run.retry({ from: "start" });
    for (const payload of ["c", "d"]) await run.signal("cmd", payload);
    expect(await run.result()).toBe("cd:2");
  });
});

/** Fork of DBOS, reset of Temporal. */
describe.each(places)("a fork in %s", (place) => {
  // DBOS: test-fork-steps
  test("calls the step it begins at and those after it, and leaves its source alone", async ({
    open,
    queue,
  }) => {
    const counts = [0, 0, 0, 0, 0];
    const five = workflow({ name: "five", version: 1, queue }, async (ctx, factor: number) => {
      let sum = 0;
      for (const index of upTo(5))
        sum += await ctx.step(`step ${index}`, () => {
          counts[index]! += 1;
          return (index + 1) ** 2;
        });
      return sum * factor;
    });
    const pawl = open(place);
    await replay(pawl, queue, [five]);
    const run = await pawl.start(five, 10);
    expect(await run.result()).toBe(550);
    for (const [from, expected] of [
      ["step 0", [2, 2, 2, 2, 2]],
      ["step 2", [2, 2, 3, 3, 3]],
      ["step 4", [2, 2, 3, 3, 4]],
    ] as const) {
      const fork = await run.fork({ from });
      expect(fork.id).not.toBe(run.id);
      expect(await fork.result()).toBe(550);
      expect(counts).toEqual(expected);
      expect((await pawl.get(fork.id))!.forkedFrom).toBe(run.id);
    }
    expect(await run.result()).toBe(550);
  });

  // DBOS: test-fork-childwf
  test("after a child has its result, and does not start it again", async ({ open, queue }) => {
    let children = 0;
    const child = workflow({ name: "child", version: 1, queue }, async () => void (children += 1));
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      await ctx.step("one", () => {});
      await ctx.call(child);
      return ctx.step("two", () => "two");
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    const run = await pawl.start(parent);
    await run.result();
    expect(await (await run.fork({ from: "two" })).result()).toBe("two");
    expect(children).toBe(1);
    expect(await (await run.fork({ from: "child" })).result()).toBe("two");
    expect(children).toBe(2);
  });

  // DBOS: test-fork-fromaworkflow
  test("from a step is one fork, however often the step is repeated", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => ctx.step("one", () => 1));
    const forker = workflow({ name: "forker", version: 1, queue }, async (ctx, id: RunId) =>
      ctx.step(
        "fork",
        async ({ attempt, idempotencyKey }) => {
          const fork = await pawl.fork(id, { from: "one", key: idempotencyKey });
          if (attempt === 1) throw new Error("after the fork");
          return fork.id;
        },
        { retry: { initial: 0 } },
      ),
    );
    await replay(pawl, queue, [job, forker]);
    const run = await pawl.start(job);
    await run.result();
    const id = await (await pawl.start(forker, run.id)).result();
    expect(await pawl.handle(id).result()).toBe(1);
    expect((await pawl.list({ queue, workflow: "job" })).runs).toHaveLength(2);
  });

  // DBOS
  test("of a failed run goes on past the step that failed", async ({ open, queue }) => {
    let isDown = true;
    const job = workflow({ name: "job", version: 1, queue, retry: once }, async (ctx) => {
      const one = await ctx.step("one", () => 1);
      return ctx.step("two", () => {
        if (isDown) throw new Error("down");
        return one + 1;
      });
    });
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    const run = await pawl.start(job);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    isDown = false;
    expect(await (await run.fork({ from: "two" })).result()).toBe(2);
    expect(await run.status()).toBe("failed");
  });

  // DBOS, Temporal
  test("of a run or a step that there is none of is refused", async ({ open, queue }) => {
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => ctx.step("one", () => 1));
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    const run = await pawl.start(job);
    await run.result();
    await expect(pawl.fork(nobody, { from: "one" })).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    await expect(run.fork({ from: "two" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });

  // DBOS: a fork of a live run
  test("of a run that lives does not wait for it", async ({ open, queue }) => {
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => {
      const drawn = await ctx.step("draw", () => Math.random());
      const told = await ctx.waitForSignal("go", { timeout: "1h" });
      return [drawn, told];
    });
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    const run = await pawl.start(job);
    await eventually(() => run.status()).toBe("waiting");
    const fork = await run.fork({ from: "signal:go" });
    await fork.signal("go", "fork");
    const [drawn, told] = await fork.result();
    expect(told).toBe("fork");
    expect(await run.status()).toBe("waiting");
    await run.signal("go", "source");
    expect(await run.result()).toEqual([drawn, "source"]);
  });
});
