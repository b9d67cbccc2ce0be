import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { NonRetryableError, workflow, type PawlError } from "../../src/index.ts";
import { eventually, factsOf, places, replay, test } from "./model-test.ts";

const atOnce = { attempts: 3, initial: 0 } as const;
const once = { attempts: 1 } as const;

/** What the public suites of DBOS, Temporal, Absurd and OpenWorkflow assert of steps and activities. */
describe.each(places)("a step in %s", (place) => {
  // Absurd, DBOS, OpenWorkflow
  test("that has finished is not called again when the run is tried again", async ({ open, queue }) => {
    const calls: string[] = [];
    const order = workflow({ name: "order", version: 1, queue, retry: atOnce }, async (ctx) => {
      const drawn = await ctx.step("draw", () => {
        calls.push("draw");
        return Math.random();
      });
      await ctx.step("ship", () => calls.push("ship"));
      if (ctx.run.attempt === 1) throw new Error("between two steps");
      await ctx.step("thank", () => calls.push("thank"));
      return drawn;
    });
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    const run = await pawl.start(order);
    const drawn = await run.result();
    expect(calls).toEqual(["draw", "ship", "thank"]);
    const [event] = (await run.history()).filter(({ name }) => name === "draw");
    expect(event!.data).toBe(drawn);
  });

  // Absurd, DBOS
  test("that failed is called again in the run's next attempt", async ({ open, queue }) => {
    let calls = 0;
    const order = workflow({ name: "order", version: 1, queue, retry: atOnce }, async (ctx) =>
      ctx.step("charge", () => {
        calls += 1;
        if (calls === 1) throw new Error("the first time");
        return calls;
      }),
    );
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    expect(await (await pawl.start(order)).result()).toBe(2);
  });

  // Absurd, OpenWorkflow
  test("may have the name of another, in a loop too, and keeps its own result", async ({ open, queue }) => {
    const order = workflow({ name: "order", version: 1, queue }, async (ctx) => {
      const results: number[] = [];
      for (let index = 0; index < 3; index++) {
        results.push(await ctx.step("loop", () => index * 10));
        await ctx.sleep(1);
      }
      return results;
    });
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    const run = await pawl.start(order);
    expect(await run.result()).toEqual([0, 10, 20]);
    expect(await factsOf(run, "step_completed")).toEqual(["loop", "loop#2", "loop#3"]);
  });

  // OpenWorkflow: names with number suffixes of the user's own never collide with those that the engine gives.
  test("may have a name that looks like a numbered one", async ({ open, queue }) => {
    const names = ["a", "a#2", "a", "a#1", "a", "a#2", "a", "a#3", "a:1", "a/b", "a"];
    let calls = 0;
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) => {
      const results: number[] = [];
      for (const [index, name] of names.entries())
        results.push(
          await ctx.step(name, () => {
            calls += 1;
            return index;
          }),
        );
      await ctx.scope("a", async (inner) => inner.step("b", () => (calls += 1)));
      await ctx.sleep(1);
      return results;
    });
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    const run = await pawl.start(order);
    expect(await run.result()).toEqual(names.map((_, index) => index));
    expect(calls).toBe(names.length + 1);
    const keys = await factsOf(run, "step_completed");
    expect(new Set(keys).size).toBe(keys.length);
  });

  // OpenWorkflow
  test("may have the name of a child, and neither takes the other's result", async ({ open, queue }) => {
    const shared = workflow({ name: "shared", version: 1, queue }, async () => "child");
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      const own = await ctx.step("shared", () => "step");
      const called = await ctx.call(shared);
      await ctx.sleep(1);
      return [own, called];
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, shared]);
    expect(await (await pawl.start(parent)).result()).toEqual(["step", "child"]);
  });

  // DBOS, Temporal
  test("whose error the code caught stays caught when the run is replayed", async ({ open, queue }) => {
    let calls = 0;
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) => {
      const told = await ctx
        .step("charge", () => {
          calls += 1;
          throw new Error(`call ${calls}`);
        })
        .catch((error: unknown) => (error as Error).message);
      await ctx.sleep(1);
      await ctx.step("apologise", () => {});
      await ctx.sleep(1);
      return told;
    });
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    expect(await (await pawl.start(order)).result()).toBe("call 1");
    expect(calls).toBe(1);
  });

  // DBOS, Temporal, OpenWorkflow
  test("is tried as often as its policy says, and then its last error is the code's", async ({
    open,
    queue,
  }) => {
    const attempts: number[] = [];
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) =>
      ctx.step(
        "charge",
        ({ attempt }) => {
          attempts.push(attempt);
          throw new Error(`attempt ${attempt}`);
        },
        { retry: { attempts: 4, initial: 0 } },
      ),
    );
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    await expect((await pawl.start(order)).result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { message: "attempt 4" },
    });
    expect(attempts).toEqual([1, 2, 3, 4]);
  });

  // DBOS, Temporal
  test("that succeeds at last gives its result, and the code hears of no failure", async ({
    open,
    queue,
  }) => {
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) =>
      ctx.step(
        "charge",
        ({ attempt }) => {
          if (attempt < 5) throw new Error("busy");
          return attempt;
        },
        { retry: { attempts: 5, initial: 0 } },
      ),
    );
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    expect(await (await pawl.start(order)).result()).toBe(5);
  });

  // Temporal: non-retryable failures; DBOS: shouldRetry
  test("is not tried again after an error that says so, or that its policy excludes", async ({
    open,
    queue,
  }) => {
    const calls: string[] = [];
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) => {
      const retry = { ...atOnce, retryIf: (error: unknown) => (error as Error).name !== "TypeError" };
      await ctx
        .step(
          "final",
          () => {
            calls.push("final");
            throw new NonRetryableError("no");
          },
          { retry },
        )
        .catch(() => {});
      await ctx
        .step(
          "excluded",
          () => {
            calls.push("excluded");
            throw new TypeError("no");
          },
          { retry },
        )
        .catch(() => {});
    });
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    await (await pawl.start(order)).result();
    expect(calls).toEqual(["final", "excluded"]);
  });

  // Temporal: start-to-close timeout
  test("that takes too long fails with a code of its own, and may be tried again", async ({
    open,
    queue,
  }) => {
    const aborted: boolean[] = [];
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) => {
      const told = await ctx
        .step("slow", ({ signal }) => pause(60_000, undefined, { signal }), { timeout: 30 })
        .catch((error: unknown) => (error as PawlError).code);
      const second = await ctx.step(
        "slow at first",
        async ({ signal, attempt }) => {
          if (attempt > 1) return attempt;
          signal.addEventListener("abort", () => aborted.push(true));
          await pause(60_000, undefined, { signal });
          return 0;
        },
        { timeout: 30, retry: atOnce },
      );
      return [told, second];
    });
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    expect(await (await pawl.start(order)).result()).toEqual(["STEP_TIMED_OUT", 2]);
    expect(aborted).toEqual([true]);
  });

  // Temporal: heartbeat details
  test("finds the details of the attempt before", async ({ open, queue }) => {
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) =>
      ctx.step(
        "export",
        ({ attempt, progress, heartbeat }) => {
          if (attempt === 1) {
            heartbeat({ row: 7 });
            throw new Error("lost");
          }
          return progress;
        },
        { retry: atOnce },
      ),
    );
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    expect(await (await pawl.start(order)).result()).toEqual({ row: 7 });
  });

  // DBOS, OpenWorkflow, Temporal
  test("may return nothing or null, and is not called again for that", async ({ open, queue }) => {
    let calls = 0;
    const order = workflow({ name: "order", version: 1, queue }, async (ctx) => {
      const nothing = await ctx.step("nothing", () => void (calls += 1));
      const none = await ctx.step("null", () => {
        calls += 1;
        return null;
      });
      await ctx.sleep(1);
      return [nothing, none];
    });
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    expect(await (await pawl.start(order)).result()).toEqual([undefined, null]);
    expect(calls).toBe(2);
  });

  // Temporal: failure conversion keeps type, message and causes
  test("hands its error on with name, message, code and causes", async ({ open, queue }) => {
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) =>
      ctx.step("charge", () => {
        const cause = new RangeError("out of range", { cause: new Error("the root") });
        throw Object.assign(new TypeError("outer", { cause }), { code: "E_OUTER" });
      }),
    );
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    await expect((await pawl.start(order)).result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: {
        name: "TypeError",
        message: "outer",
        code: "E_OUTER",
        cause: { name: "RangeError", cause: { message: "the root" } },
      },
    });
  });

  // Temporal: what is thrown and is no error
  test.for([
    ["a text", "just a text"] as const,
    ["nothing", undefined] as const,
    ["an object", { a: 1 }] as const,
  ])("that throws %s fails with an error all the same", async ([, thrown], { open, queue }) => {
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) =>
      ctx
        .step("odd", () => {
          // oxlint-disable-next-line typescript/only-throw-error -- this is what the test is about
          throw thrown;
        })
        .catch((error: unknown) => [error instanceof Error, (error as Error).name]),
    );
    const pawl = open(place);
    await replay(pawl, queue, [order]);
    expect(await (await pawl.start(order)).result()).toEqual([true, "NonError"]);
  });

  // DBOS: list steps
  test("is in the history in order, with what it returned or threw", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue }, async () => "from the child");
    const order = workflow({ name: "order", version: 1, queue, retry: once }, async (ctx) => {
      await ctx.step("one", () => 1);
      await ctx.call(child);
      await ctx.sleep(1);
      await ctx.step("two", () => {
        throw new Error("fail");
      });
    });
    const pawl = open(place);
    await replay(pawl, queue, [order, child]);
    const run = await pawl.start(order);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    const history = await run.history();
    const told = (kind: string) => history.find((event) => event.kind === kind);
    expect(told("step_completed")).toMatchObject({ name: "one", data: 1 });
    expect(told("child_ended")).toMatchObject({ data: { status: "completed", output: "from the child" } });
    expect(told("step_failed")).toMatchObject({ name: "two" });
    expect(history.map(({ seq }) => seq)).toEqual(history.map((_, index) => index + 1));
  });

  // Temporal: worker shutdown lets activities end; OpenWorkflow: stop waits for executions
  test("in progress is waited for when its worker stops, and its result is kept", async ({ open, queue }) => {
    let calls = 0;
    const order = workflow({ name: "order", version: 1, queue }, async (ctx) => {
      const result = await ctx.step("long", async () => {
        calls += 1;
        await pause(100);
        return calls;
      });
      await ctx.sleep(1);
      return result;
    });
    const pawl = open(place);
    const first = await replay(pawl, queue, [order]);
    const run = await pawl.start(order);
    await eventually(() => calls).toBe(1);
    await first.stop();
    await replay(pawl, queue, [order]);
    expect(await run.result()).toBe(1);
  });
});
