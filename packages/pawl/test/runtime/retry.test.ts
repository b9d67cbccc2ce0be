import { expect, test } from "vitest";
import type { PawlError } from "../../src/core/error.ts";
import { NonRetryableError } from "../../src/core/retry-error.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { createEngine } from "./engine.ts";
import { createGate } from "./gate.ts";

const options = { version: 1, crashLimit: 1_000 } as const;

test("a failed attempt is followed by another: failed steps run again, finished ones do not", async () => {
  const engine = createEngine();
  const called: string[] = [];
  const flaky = workflow({ ...options, name: "flaky" }, async (ctx) => {
    await ctx.step("good", () => void called.push("good"));
    await ctx.step("bad", ({ attempt }) => {
      called.push(`bad ${attempt}`);
      if (attempt < 3) throw new Error(`attempt ${attempt}`);
    });
    return ctx.run.attempt;
  });
  const id = await engine.start(flaky);
  await engine.end(id);
  expect(await engine.output(id)).toBe(3);
  expect(called).toEqual(["good", "bad 1", "bad 2", "bad 3"]);
  expect(await engine.facts(id)).toEqual([
    "step_completed good",
    "step_failed bad",
    "attempt_failed",
    "step_failed bad",
    "attempt_failed",
    "step_completed bad",
    "completed",
  ]);
});

test("pauses between attempts follow the policy", async () => {
  const engine = createEngine();
  const at: number[] = [];
  const retry = { attempts: 4, initial: "10s", max: "25s", jitter: false } as const;
  const failing = workflow({ ...options, name: "failing", retry }, async (ctx) => {
    at.push(engine.clock.now());
    throw new TypeError(`attempt ${ctx.run.attempt}`);
  });
  const id = await engine.start(failing);
  const run = await engine.end(id);
  expect(at.map((instant) => instant - at[0]!)).toEqual([0, 10_000, 30_000, 55_000]);
  expect(run.status).toBe("failed");
  expect(JSON.parse(run.error!.json)).toMatchObject({ name: "TypeError", message: "attempt 4" });
});

test("an error that says so is not retried, whether a step or the code throws it", async () => {
  const engine = createEngine();
  const code = workflow({ ...options, name: "code" }, async () => {
    throw new NonRetryableError("no use");
  });
  const step = workflow({ ...options, name: "step" }, async (ctx) =>
    ctx.step("try", () => {
      throw new NonRetryableError("no use");
    }),
  );
  for (const tested of [code, step]) {
    const id = await engine.start(tested);
    await engine.idle();
    const run = await engine.store.getRun(id);
    expect([run?.status, run?.attempt]).toEqual(["failed", 1]);
    expect(await engine.facts(id)).not.toContain("attempt_failed");
  }
});

test("a failed child is started anew by the next attempt, a finished one is not", async () => {
  const engine = createEngine();
  let isBroken = true;
  const child = workflow(
    { ...options, name: "child", retry: { attempts: 1 } },
    async (_ctx, mayFail: boolean) => {
      if (mayFail && isBroken) throw new Error("broken");
      return "fine";
    },
  );
  const parent = workflow({ ...options, name: "parent" }, async (ctx) => {
    const results = [await ctx.call(child, false)];
    results.push(await ctx.call(child, true));
    return results;
  });
  engine.register(child);
  const id = await engine.start(parent);
  await engine.idle();
  isBroken = false;
  await engine.end(id);
  expect(await engine.output(id)).toEqual(["fine", "fine"]);
  expect(await engine.list("child")).toHaveLength(3);
});

test("an attempt does not fail before its running steps have ended, and keeps what they did", async () => {
  const engine = createEngine();
  const gate = createGate();
  const called: string[] = [];
  const parallel = workflow({ ...options, name: "parallel" }, async (ctx) =>
    Promise.all([
      ctx.step("fails", ({ attempt }) => {
        if (attempt === 1) throw new Error("first");
        return null;
      }),
      ctx.step("slow", async () => {
        called.push("slow");
        await gate.opened;
        return "kept";
      }),
    ]),
  );
  const id = await engine.start(parallel);
  await engine.pass(29_000);
  expect((await engine.store.getRun(id))?.status).toBe("running");
  gate.open();
  await engine.end(id);
  expect(await engine.output(id)).toEqual([null, "kept"]);
  expect(called).toEqual(["slow"]);
});

test("a step that outlasts a failed attempt is told to stop, and given up after a while", async () => {
  const engine = createEngine();
  const gate = createGate();
  const reasons: string[] = [];
  const parallel = workflow({ ...options, name: "parallel" }, async (ctx) =>
    Promise.all([
      ctx.step("fails", ({ attempt }) => {
        if (attempt === 1) throw new Error("first");
        return null;
      }),
      ctx.step("deaf", async ({ signal }) => {
        if (ctx.run.attempt > 1) return "the second";
        signal.addEventListener("abort", () => reasons.push((signal.reason as PawlError).code));
        await gate.opened;
        return "too late";
      }),
    ]),
  );
  const id = await engine.start(parallel);
  await engine.pass(29_999);
  expect([reasons, (await engine.store.getRun(id))?.status]).toEqual([["RUN_FAILED"], "running"]);
  await engine.pass(1);
  expect((await engine.store.getRun(id))?.status).toBe("waiting");
  gate.open();
  await engine.end(id);
  expect(await engine.output(id)).toEqual([null, "the second"]);
  expect(engine.log.map(({ message }) => message)).toContain(
    "The run ends without steps that do not return.",
  );
});

test("a next attempt may take another way than the last", async () => {
  const engine = createEngine();
  const detour = workflow({ ...options, name: "detour" }, async (ctx) => {
    if (ctx.run.attempt === 1) {
      await ctx.step("left", () => 1);
      const child = ctx.waitForSignal("never", { timeout: "1h" });
      await ctx.step("fail", () => {
        throw new Error("dead end");
      });
      await child;
    }
    await ctx.step("right", () => 2);
    await ctx.sleep("1m");
    return "there";
  });
  const id = await engine.start(detour);
  await engine.end(id);
  expect(await engine.output(id)).toBe("there");
});

test("a result or an output that cannot be recorded fails with its place, and is not tried again", async () => {
  const engine = createEngine();
  let reads = 0;
  const result = workflow({ ...options, name: "result" }, async (ctx) =>
    ctx.step("read", () => {
      reads += 1;
      return { rows: [{ at: /now/ }] };
    }),
  );
  const output = workflow({ ...options, name: "output" }, async () => ({ size: () => 10 }));
  for (const [tested, place] of [
    [result, "$.rows[0].at"],
    [output, "$.size"],
  ] as const) {
    const id = await engine.start(tested);
    const run = await engine.end(id);
    expect(run.status).toBe("failed");
    expect(JSON.parse(run.error!.json)).toMatchObject({
      code: "INVALID_PAYLOAD",
      message: expect.stringContaining(place),
    });
  }
  expect(reads).toBe(1);
});

test("a child's failure names the child and its reason, and keeps its error as the cause", async () => {
  const engine = createEngine();
  const child = workflow({ ...options, name: "charge", retry: { attempts: 1 } }, async () => {
    throw new RangeError("out of money");
  });
  const parent = workflow({ ...options, name: "order", retry: { attempts: 1 } }, async (ctx) =>
    ctx.call(child),
  );
  engine.register(child);
  const id = await engine.start(parent);
  const run = await engine.end(id);
  expect(JSON.parse(run.error!.json)).toMatchObject({
    code: "RUN_FAILED",
    message: expect.stringMatching(/^The child charge \(run [0-9a-f-]{36}\) failed: out of money$/),
    cause: { name: "RangeError", message: "out of money" },
  });
});

test("whatever is thrown is recorded", async () => {
  const thrown: readonly unknown[] = [
    undefined,
    null,
    "text",
    7n,
    Symbol("s"),
    { a: 1 },
    new (class Odd extends Error {})("odd"),
  ];
  for (const value of thrown) {
    const engine = createEngine();
    const failing = workflow({ ...options, name: "failing", retry: { attempts: 1 } }, async (ctx) => {
      await ctx.step("throw", () => {
        throw value;
      });
    });
    const id = await engine.start(failing);
    const run = await engine.end(id);
    expect(run.status).toBe("failed");
    expect(JSON.parse(run.error!.json).message).toBeTypeOf("string");
  }
});

test("a failure that the code has dealt with stays, so that what it asked for next keeps its answer", async () => {
  const engine = createEngine();
  const calls: string[] = [];
  let isBroken = true;
  const tested = workflow({ ...options, name: "tested", retry: { attempts: 3, initial: 1 } }, async (ctx) => {
    const fetched: string[] = [];
    try {
      await ctx.step("fetch", () => {
        calls.push("first");
        if (isBroken) throw new Error("no");
      });
      fetched.push(await ctx.step("fetch", () => "second"));
    } catch {
      fetched.push(
        await ctx.step("fetch", () => {
          calls.push("instead");
          return "instead";
        }),
      );
    }
    if (ctx.run.attempt === 1) {
      isBroken = false;
      throw new Error("again");
    }
    return fetched;
  });
  const run = await engine.end(await engine.start(tested));
  expect(JSON.parse(run.output!.json)).toEqual(["instead"]);
  expect(calls).toEqual(["first", "instead"]);
});

test("a failure that ends the attempt is tried again, and its finished neighbours are not", async () => {
  const engine = createEngine();
  const calls: string[] = [];
  const tested = workflow({ ...options, name: "tested", retry: { attempts: 3, initial: 1 } }, async (ctx) => {
    const step = (name: string, call: () => string): Promise<string> =>
      ctx.step(name, () => {
        calls.push(name);
        return call();
      });
    const ended = await Promise.allSettled([
      step("flaky", () => {
        if (calls.filter((name) => name === "flaky").length === 1) throw new Error("no");
        return "flaky";
      }),
      step("one", () => "one").then(() => step("two", () => "two")),
    ]);
    if (ended.some(({ status }) => status === "rejected")) throw new Error("not all");
  });
  const run = await engine.end(await engine.start(tested));
  expect(run.status).toBe("completed");
  expect(calls.toSorted()).toEqual(["flaky", "flaky", "one", "two"]);
});
