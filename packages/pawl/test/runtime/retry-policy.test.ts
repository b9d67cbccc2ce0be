import { expect, test } from "vitest";
import { NonRetryableError, RetryAfterError } from "../../src/core/retry-error.ts";
import { createRetryPolicy, type RetryOptions } from "../../src/core/retry.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { createEngine, type Engine } from "./engine.ts";

const options = { version: 1, crashLimit: 1_000 } as const;

/** A workflow that always fails like this, and when it was tried. */
function failing(engine: Engine, retry: object, fail: (attempt: number) => unknown) {
  const at: number[] = [];
  const tested = workflow({ ...options, name: "failing", retry }, async (ctx) => {
    at.push(engine.clock.now());
    throw fail(ctx.run.attempt);
  });
  return { tested, pauses: () => at.slice(1).map((instant, index) => instant - at[index]!) };
}

test("pauses follow a list of delays, and the last one repeats", async () => {
  const engine = createEngine();
  const retry = { delays: ["1s", "10s", "1m"], attempts: 6, jitter: false };
  const { tested, pauses } = failing(engine, retry, () => new Error("no"));
  await engine.end(await engine.start(tested));
  expect(pauses()).toEqual([1_000, 10_000, 60_000, 60_000, 60_000]);
});

test("a run's own policy replaces that of its workflow, but not its retryIf", async () => {
  const engine = createEngine();
  const own: RetryOptions = { attempts: 5, backoff: "fixed", initial: "7s", jitter: false };
  const retryIf = (error: unknown): boolean => (error as Error).message !== "attempt 4";
  const retry = { attempts: 2, initial: "1h", retryIf };
  const { tested, pauses } = failing(engine, retry, (attempt) => new Error(`attempt ${attempt}`));
  const id = await engine.start(tested, undefined, { retry: createRetryPolicy(own) });
  const run = await engine.end(id);
  expect(pauses()).toEqual([7_000, 7_000, 7_000]);
  expect(JSON.parse(run.error!.json).message).toBe("attempt 4");
});

test("an error that says when is tried again exactly then, whether the code or a step throws it", async () => {
  for (const where of ["code", "step"]) {
    const engine = createEngine();
    const at: number[] = [];
    const date = new Date(engine.clock.now() + 3_600_000);
    const errors = [
      new RetryAfterError("for a while", { after: "90s" }),
      new RetryAfterError("until then", { after: date }),
      new RetryAfterError("at once", { after: new Date(0) }),
    ];
    const tested = workflow({ ...options, name: "tested", retry: { attempts: 9 } }, async (ctx) => {
      at.push(engine.clock.now());
      const error = errors[ctx.run.attempt - 1];
      if (error === undefined) return;
      if (where === "code") throw error;
      await ctx.step("throw", () => {
        throw error;
      });
    });
    const began = engine.clock.now();
    const run = await engine.end(await engine.start(tested));
    expect(run.status).toBe("completed");
    expect(at.map((instant) => instant - began)).toEqual([0, 90_000, 3_600_000, 3_600_000]);
  }
});

test("an error that says when counts as an attempt, and waits a year at most", async () => {
  const engine = createEngine();
  const year = 365 * 86_400_000;
  const { tested, pauses } = failing(engine, { attempts: 3 }, (attempt) =>
    attempt === 1
      ? new RetryAfterError("long", { after: "99999d" })
      : new RetryAfterError("long", { after: new Date(8.64e15) }),
  );
  const run = await engine.end(await engine.start(tested));
  expect(run.status).toBe("failed");
  expect(pauses()).toEqual([year, year]);
});

test("a deadline is not passed over by an error that says when", async () => {
  const engine = createEngine();
  const { tested } = failing(engine, { attempts: 3 }, () => new RetryAfterError("long", { after: "1d" }));
  const deadlineAt = engine.clock.now() + 60_000;
  const run = await engine.end(await engine.start(tested, undefined, { deadlineAt }));
  expect([run.status, run.endedAt]).toEqual(["timed_out", deadlineAt]);
});

test("retryIf decides with the error as the code threw it, and is not asked where nothing is left to decide", async () => {
  const engine = createEngine();
  const asked: unknown[] = [];
  const retryIf = (error: unknown): boolean => {
    asked.push(error);
    return (error as { code?: string }).code === "E_BUSY";
  };
  const errors = [
    Object.assign(new Error("busy"), { code: "E_BUSY" }),
    Object.assign(new RangeError("gone"), { code: "E_GONE" }),
  ];
  const tested = workflow({ ...options, name: "tested", retry: { attempts: 9, retryIf } }, async (ctx) =>
    ctx.step("throw", ({ attempt }) => {
      throw errors[attempt - 1]!;
    }),
  );
  const run = await engine.end(await engine.start(tested));
  expect(JSON.parse(run.error!.json)).toMatchObject({ name: "RangeError", code: "E_GONE" });
  expect(asked).toMatchObject([{ code: "E_BUSY" }, { name: "RangeError", code: "E_GONE" }]);

  const last = failing(engine, { attempts: 1, retryIf }, () => new Error("last"));
  await engine.end(await engine.start(last.tested));
  const final = failing(engine, { attempts: 5, retryIf }, () => new NonRetryableError("final"));
  await engine.end(await engine.start(final.tested));
  expect(asked).toHaveLength(2);
});

test.each<[string, () => unknown]>([
  [
    "throws",
    () => {
      throw new TypeError("cannot decide");
    },
  ],
  ["returns a promise", async () => true],
  ["returns a promise that rejects", () => Promise.reject(new Error("late"))],
  ["returns nothing", () => undefined],
])(
  "a retryIf that %s counts as false: the run fails with its own error, and the log says why",
  async (_name, retryIf) => {
    const engine = createEngine();
    const { tested } = failing(engine, { attempts: 5, retryIf }, () => new Error("mine"));
    const run = await engine.end(await engine.start(tested));
    expect(JSON.parse(run.error!.json).message).toBe("mine");
    expect(engine.log.map(({ level, message }) => [level, message])).toEqual([
      ["error", expect.stringContaining("retryIf")],
      ["error", "The run has failed."],
    ]);
  },
);

test("a crash and a claim that never began cost no attempt", async () => {
  const engine = createEngine({ crashAt: (call, when) => when === "before" && call <= 3 });
  const attempts: number[] = [];
  const tested = workflow({ ...options, name: "tested", retry: { attempts: 2, initial: 1 } }, async (ctx) => {
    attempts.push(ctx.run.attempt);
    throw new Error("no");
  });
  const id = await engine.start(tested);
  await engine.end(id);
  const facts = await engine.facts(id);
  expect(facts.filter((fact) => fact === "attempt_crashed")).toHaveLength(3);
  expect(facts.slice(-2)).toEqual(["attempt_failed", "failed"]);
  expect(attempts).toEqual([1, 2, 3, 4, 5]);
});

test("a failed attempt is a warning, and a failed run an error, once each", async () => {
  const engine = createEngine();
  const { tested } = failing(
    engine,
    { delays: ["5s"], jitter: false },
    (attempt) => new RangeError(`try ${attempt}`),
  );
  const id = await engine.start(tested);
  await engine.end(id);
  expect(engine.log).toMatchObject([
    {
      level: "warn",
      message: "An attempt has failed.",
      fields: { runId: id, workflow: "failing", attempt: 1, nextTryInMs: 5_000, error: { message: "try 1" } },
    },
    {
      level: "error",
      message: "The run has failed.",
      fields: { runId: id, attempt: 2, error: { name: "RangeError", message: "try 2" } },
    },
  ]);
});

test("whoever has lost the run does not log its failure", async () => {
  const engine = createEngine({ crashAt: (call, when) => when === "before" && call === 1 });
  const { tested } = failing(engine, { attempts: 1 }, () => new Error("no"));
  await engine.end(await engine.start(tested));
  expect(engine.log.filter(({ message }) => message === "The run has failed.")).toHaveLength(1);
});
