import { expect, test } from "vitest";
import type { PawlError } from "../../src/core/error.ts";
import type { Context } from "../../src/runtime/context.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { exploreCrashes, endScenario, type Scenario } from "./crash-explorer.ts";
import { createEngine, type Engine } from "./engine.ts";

const options = { version: 1, crashLimit: 1_000 } as const;

/** A step that fails the test if it is called although the history holds its result. */
function checkedStep(engine: Engine, ctx: Context) {
  return async <T>(name: string, result: T): Promise<T> =>
    ctx.step(name, ({ idempotencyKey }) => {
      const key = idempotencyKey.slice(ctx.run.id.length + 1);
      const facts = engine.store.snapshot().events;
      const isRecorded = facts.some(
        (event) => event.runId === ctx.run.id && event.kind === "step_completed" && event.name === key,
      );
      expect(isRecorded, `step ${key} runs although it is recorded`).toBe(false);
      return result;
    });
}

type Body = (ctx: Context, step: ReturnType<typeof checkedStep>) => Promise<unknown>;

function scenario(
  body: Body,
  during: (engine: Engine, runId: string) => Promise<void> = async () => {},
): Scenario {
  return async (engine) => {
    const child = workflow({ ...options, name: "child" }, async (ctx, n: number) => {
      await ctx.sleep("1m");
      return ctx.step("double", () => n * 2);
    });
    const failing = workflow({ ...options, name: "failing", retry: { attempts: 1 } }, async (ctx) => {
      await ctx.sleep("30s");
      throw new TypeError("no such thing");
    });
    engine.register(child, failing);
    const tested = workflow({ ...options, name: "tested" }, (ctx) => body(ctx, checkedStep(engine, ctx)));
    const runId = await engine.start(tested);
    await during(engine, runId);
    return runId;
  };
}

const child = workflow({ ...options, name: "child" }, async (_ctx, n: number) => n);
const failing = workflow({ ...options, name: "failing" }, async () => {});

const scenarios: Readonly<Record<string, Scenario>> = {
  "steps in a row": scenario(async (_ctx, step) => [
    await step("a", 1),
    await step("b", 2),
    await step("c", 3),
  ]),
  "a loop over one name": scenario(async (_ctx, step) => {
    let sum = 0;
    for (let n = 1; n <= 5; n++) sum += await step("add", n);
    return sum;
  }),
  "parallel chains": scenario(async (ctx, step) => {
    const order: string[] = [];
    const chain = async (name: string, length: number): Promise<void> => {
      for (let n = 0; n < length; n++) {
        await step(name, n);
        order.push(`${name}${n}@${ctx.random()}`);
      }
    };
    await Promise.all([chain("x", 3), chain("y", 1), chain("z", 2)]);
    return order;
  }),
  "a race of a step and a sleep": scenario(async (ctx, step) => {
    const first = await Promise.race([step("fast", "step"), ctx.sleep("1h").then(() => "sleep")]);
    return [first, await step("after", ctx.uuid())];
  }),
  "sleeps and steps": scenario(async (ctx, step) => {
    await Promise.all([ctx.sleep("1d"), step("a", 1).then(() => ctx.sleep("2d"))]);
    await ctx.sleepUntil(new Date(Date.UTC(2026, 0, 5)));
    return step("b", "woken");
  }),
  "failed steps that are caught": scenario(async (ctx, step) => {
    const settled = await Promise.allSettled([
      step("good", 1),
      ctx.step("bad", () => {
        throw Object.assign(new RangeError("too far"), { code: "FAR" });
      }),
    ]);
    return settled.map((result) =>
      result.status === "fulfilled"
        ? result.value
        : [result.reason.name, result.reason.message, result.reason.code],
    );
  }),
  "signals sent before and after the wait": scenario(
    async (ctx, step) => {
      await step("prepare", 0);
      const first = await ctx.waitForSignal("go");
      const [second, third] = await Promise.all([
        ctx.waitForSignal("go"),
        ctx.waitForSignal("go", { timeout: "30d" }),
      ]);
      const none = await ctx.waitForSignal("never", { timeout: "1h" });
      return [first, second, third, none];
    },
    async (engine, runId) => {
      await engine.tell(runId, "signal:go", 1);
      await engine.idle();
      await engine.tell(runId, "signal:go", 2);
      await engine.tell(runId, "signal:go", 3);
    },
  ),
  "children, one of which fails": scenario(async (ctx, step) => {
    const [doubled, failure] = await Promise.all([
      ctx.call(child, 21),
      ctx
        .call(failing)
        .catch((error: unknown) => [
          (error as PawlError).code,
          ((error as PawlError).cause as Error).message,
        ]),
    ]);
    return [doubled, failure, await step("after", 1), await ctx.call(child, 4)];
  }),
  "a race that withdraws its losers": scenario(
    async (ctx, step) => {
      const first = await ctx.race({
        go: ctx.waitForSignal("go"),
        late: ctx.sleep("1h"),
        child: ctx.call(child, 1),
      });
      return [first, await ctx.waitForSignal("go"), await step("after", 1)];
    },
    async (engine, runId) => {
      await engine.pass(300_000);
      await engine.tell(runId, "signal:go", 1);
    },
  ),
  "a race of chains": scenario(async (ctx) => {
    const first = await ctx.race({
      slow: async (inner) => {
        await inner.step("a", () => 1);
        await inner.sleep("1d");
        return inner.step("b", () => 2);
      },
      quick: async (inner) => {
        await inner.step("a", () => 3);
        await inner.sleep("1h");
        return inner.step("b", () => 4);
      },
    });
    await ctx.sleep("3d");
    return first;
  }),
  "a map over chains of the same names": scenario(async (ctx) =>
    ctx.map(
      "items",
      [50, 10, 20, 0],
      async (minutes, inner, index) => {
        await inner.sleep(minutes * 60_000);
        const got = await inner.step("work", () => index * 10);
        await inner.scope("deep", (deeper) => deeper.step("work", () => 0));
        return got;
      },
      { concurrency: 2 },
    ),
  ),
  "children started by handles": scenario(async (ctx, step) => {
    const one = await ctx.start(child, 1);
    const two = await ctx.start(child, 2);
    const failed = await ctx.start(failing);
    const unread = await ctx.start(child, 9);
    await ctx.sleep("1h");
    const failure = await failed.result().catch((error: unknown) => (error as PawlError).code);
    const sum = (await two.result()) + (await one.result()) + (await one.result());
    return [sum, failure, unread.id !== one.id, await step("after", 1)];
  }),
};

for (const [name, tested] of Object.entries(scenarios)) {
  test(`a crash before or after any write changes nothing: ${name}`, async () => {
    expect(await exploreCrashes(tested)).toBeGreaterThan(3);
  });
}

test("the scenarios end as expected without crashes", async () => {
  const outputs: Record<string, unknown> = {};
  for (const [name, tested] of Object.entries(scenarios)) outputs[name] = (await endScenario(tested)).output;
  expect(outputs).toMatchObject({
    "steps in a row": [1, 2, 3],
    "a loop over one name": 15,
    "a race of a step and a sleep": ["step", expect.stringMatching(/^[0-9a-f-]{36}$/)],
    "sleeps and steps": "woken",
    "failed steps that are caught": [1, ["RangeError", "too far", "FAR"]],
    "signals sent before and after the wait": [1, 2, 3, null],
    "a race that withdraws its losers": [{ winner: "child", value: 2 }, 1, 1],
    "a race of chains": { winner: "quick", value: 4 },
    "a map over chains of the same names": [0, 10, 20, 30],
    "children started by handles": [8, "RUN_FAILED", true, 1],
    "children, one of which fails": [42, ["RUN_FAILED", "no such thing"], 1, 8],
  });
});

test("what the code gets is the copy that was recorded", async () => {
  const engine = createEngine();
  const shared = { list: [1] };
  const copy = workflow({ name: "copy", version: 1 }, async (ctx) => {
    const got = await ctx.step("share", () => ({ ...shared, none: undefined }));
    shared.list.push(2);
    return [got, "none" in got];
  });
  const id = await engine.start(copy);
  await engine.idle();
  expect(await engine.output(id)).toEqual([{ list: [1], none: undefined }, true]);
});

test("now() is the time of the last record, and the same in every execution", async () => {
  const seen: number[][] = [];
  const engine = createEngine();
  const clockwork = workflow({ ...options, name: "clockwork" }, async (ctx) => {
    const times = [ctx.now()];
    seen.push(times);
    await ctx.step("a", () => 1);
    times.push(ctx.now());
    await ctx.sleep("1m");
    times.push(ctx.now());
  });
  const startedAt = engine.clock.now();
  const id = await engine.start(clockwork);
  engine.clock.advance(500);
  await engine.end(id);
  expect(seen).toEqual([
    [startedAt, startedAt + 500],
    [startedAt, startedAt + 500, startedAt + 60_500],
  ]);
});

test("a run logs nothing while its history is replayed", async () => {
  const engine = createEngine();
  const chatty = workflow({ ...options, name: "chatty" }, async (ctx) => {
    ctx.log.info("begins");
    await ctx.sleep("1m");
    ctx.log.info("goes on", { after: "sleep" });
  });
  const id = await engine.start(chatty);
  await engine.end(id);
  expect(engine.log.map(({ message, fields }) => [message, fields["runId"], fields["after"]])).toEqual([
    ["begins", id, undefined],
    ["goes on", id, "sleep"],
  ]);
});

test("an idempotency key is unique per step and stays the same over attempts and take-overs", async () => {
  const keys: string[] = [];
  let crashed = false;
  const engine = createEngine({
    crashAt: (call, when) => !crashed && call === 2 && when === "before" && (crashed = true),
  });
  const steps = workflow({ ...options, name: "steps" }, async (ctx) => {
    for (let n = 0; n < 2; n++)
      await ctx.step("pay/now", ({ idempotencyKey }) => void keys.push(idempotencyKey));
  });
  const id = await engine.start(steps);
  await engine.end(id);
  expect(keys).toEqual([`${id}/pay\\/now`, `${id}/pay\\/now#2`, `${id}/pay\\/now#2`]);
});

test("what a step draws from the context's generator does not change what the code draws", async () => {
  const engine = createEngine();
  const drawn: string[][] = [];
  const drawing = workflow({ ...options, name: "drawing" }, async (ctx) => {
    const seen = [ctx.uuid()];
    drawn.push(seen);
    await ctx.step("greedy", () => [ctx.uuid(), ctx.random()]);
    seen.push(ctx.uuid(), ctx.uuid());
    await ctx.sleep("1h");
    seen.push(ctx.uuid());
  });
  const id = await engine.start(drawing);
  await engine.end(id);
  expect(drawn).toHaveLength(2);
  expect(drawn[1]!.slice(0, 3)).toEqual(drawn[0]);
  expect(new Set(drawn[1]).size).toBe(4);
});
