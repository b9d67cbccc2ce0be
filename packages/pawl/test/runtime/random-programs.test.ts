import { fc } from "pawl-test-support/fast-check";
import { expect, test } from "vitest";
import { PawlError } from "../../src/core/error.ts";
import type { Context } from "../../src/runtime/context.ts";
import { workflow, type Workflow } from "../../src/runtime/workflow.ts";
import { createEngine, type Engine, type EngineOptions } from "./engine.ts";

type Program =
  | {
      readonly kind: "step";
      readonly name: string;
      readonly fails: boolean;
      readonly ms: number;
      readonly fatal: number;
      readonly flaky: number;
    }
  | { readonly kind: "sleep"; readonly ms: number }
  | { readonly kind: "wait"; readonly isSent: boolean; readonly hasTimeout: boolean }
  | { readonly kind: "call" | "start" | "publish" | "write" | "pause" }
  | { readonly kind: Group; readonly parts: readonly Program[] };

/** `race` is that of promises, which lets the losers go on; `first` is that of the context, which withdraws them. */
type Group = "seq" | "all" | "settled" | "race" | "first" | "scope" | "map";

const leaf: fc.Arbitrary<Program> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("step" as const),
      name: fc.constantFrom("a", "b/c", "d"),
      fails: fc.boolean(),
      /** How long it takes. */
      ms: fc.constantFrom(0, 0, 0, 500, 5_000),
      /** Fails the whole attempt as long as fewer than this have failed. */
      fatal: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 2),
      /** So many of its own attempts fail first. */
      flaky: fc.constantFrom(0, 0, 0, 1, 2),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("sleep" as const),
      ms: fc.constantFrom(0, 1_000, 20_000, 3_600_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      isSent: fc.boolean(),
      hasTimeout: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        "call" as const,
        "start" as const,
        "publish" as const,
        "write" as const,
        "pause" as const,
      ),
    }),
  },
);

function programs(...groups: readonly Group[]): fc.Arbitrary<Program> {
  const { tree } = fc.letrec<{ tree: Program }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4, depthIdentifier: "program" },
      leaf,
      fc.record({
        kind: fc.constantFrom(...groups),
        parts: fc.array(tie("tree"), { minLength: 1, maxLength: 4, depthIdentifier: "program" }),
      }),
    ),
  }));
  return tree.map((program) => ({
    kind: "seq",
    parts: [program, { kind: "step", name: "last", fails: false, ms: 0, fatal: 0, flaky: 0 }],
  }));
}

/** Which writes kill the worker, or fail, before or after they are applied: the n-th entry stands for the n-th write. */
const faults = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constant("none") },
    { weight: 2, arbitrary: fc.constantFrom("crash before", "crash after", "fail before", "fail after") },
  ),
  { maxLength: 40 },
);

function withFaults(plan: readonly string[], isSticky = false): EngineOptions {
  return {
    isSticky,
    crashAt: (call, when) => plan[call - 1] === `crash ${when}`,
    failAt: (call, when) => plan[call - 1] === `fail ${when}`,
  };
}

interface Trial {
  readonly output: unknown;
  readonly status: string;
  /** What the executions of each attempt saw, in order. */
  readonly attempts: ReadonlyMap<number, readonly (readonly string[])[]>;
}

async function run(program: Program, options: EngineOptions = {}): Promise<Trial> {
  const engine = createEngine(options);
  const attempts = new Map<number, string[][]>();
  const child = workflow({ name: "child", version: 1, crashLimit: 1_000 }, async (ctx, n: number) => {
    await ctx.sleep("1m");
    return ctx.step("double", () => n * 2);
  });
  const tested = workflow({ name: "tested", version: 1, crashLimit: 1_000 }, async (ctx) => {
    const trace: string[] = [];
    const attempt = countFailures(engine);
    attempts.set(attempt, [...(attempts.get(attempt) ?? []), trace]);
    return interpret(engine, ctx, child, trace, program);
  });
  engine.register(child, tested);
  const id = await engine.start(tested);
  for (let n = 0; n < countSent(program); n++) await engine.tell(id, `signal:sent ${n}`, n);
  for (const n of [0, 1, 2]) {
    if ((await engine.store.getRun(id))?.endedAt !== null) break;
    await engine.tell(id, "update:poke", n);
    await engine.pass(10_000);
  }
  const { status } = await engine.end(id);
  return { output: await engine.output(id), status, attempts };
}

function interpret(
  engine: Engine,
  ctx: Context,
  child: Workflow<number, number>,
  trace: string[],
  program: Program,
): Promise<unknown> {
  // Numbered by place, not by time: chains may overtake each other.
  const signals = { sent: 0, missing: 0 };
  let steps = 0;
  const plan = (node: Program): Part => {
    switch (node.kind) {
      case "step":
        return step(node, steps++);
      case "sleep":
        return (ctx) => ctx.sleep(node.ms).then(() => "slept");
      case "wait": {
        const name = node.isSent ? `sent ${signals.sent++}` : `missing ${signals.missing++}`;
        return (ctx) =>
          node.isSent && !node.hasTimeout
            ? ctx.waitForSignal(name)
            : ctx.waitForSignal(name, { timeout: "10d" });
      }
      case "call":
        return (ctx) => ctx.call(child, 21);
      case "start":
        return async (ctx) => {
          const handle = await ctx.start(child, 4);
          await ctx.step("between", () => 1);
          return handle.result();
        };
      case "publish":
        return (ctx) => ctx.publish("value", 1);
      case "write":
        return (ctx) => ctx.stream("items").write(1);
      case "pause":
        return (ctx) => ctx.pause();
      case "seq":
      case "all":
      case "settled":
      case "race":
      case "first":
      case "scope":
      case "map": {
        const parts = node.parts.map(plan);
        return (ctx) =>
          group(
            node.kind,
            parts.map((part) => (inner) => observe(part, inner)),
            ctx,
          );
      }
      default:
        return node satisfies never;
    }
  };

  const check = (key: string): void => {
    const isRecorded = engine.store
      .snapshot()
      .events.some(
        ({ runId, name, kind }) => runId === ctx.run.id && name === key && kind === "step_completed",
      );
    expect(isRecorded, `step ${key} runs again`).toBe(false);
  };

  /** The second pause is long enough to park the run. */
  const retry = {
    delays: ["1s", "1m"],
    jitter: false,
    retryIf: (error: unknown) => (error as Error).message === "flaky",
  } as const;

  const step = (node: Program & { kind: "step" }, number: number) => (ctx: Context) =>
    ctx.step(
      node.name,
      async ({ idempotencyKey, attempt }) => {
        check(idempotencyKey.slice(ctx.run.id.length + 1));
        if (node.ms > 0) await engine.delay(node.ms);
        if (attempt <= node.flaky) throw new Error("flaky");
        if (countFailures(engine) < node.fatal) throw new Error("fatal");
        if (node.fails) throw new Error(`step ${number} failed`);
        return `step ${number}`;
      },
      node.flaky > 0 ? { retry } : {},
    );

  /** Failures are results here: a run of theirs would end in the middle. */
  const observe = async (part: Part, ctx: Context): Promise<unknown> => {
    const result = await part(ctx).catch((error: unknown) => {
      const { message } = error as Error;
      if (message === "fatal" || PawlError.is(error, "WITHDRAWN")) throw error;
      return message;
    });
    note(result, ctx);
    return result;
  };
  const note = (result: unknown, ctx: Context): void =>
    void trace.push(`${JSON.stringify(result)} ${ctx.now()} ${ctx.random()} ${ctx.uuid()}`);
  ctx.onUpdate("poke", async (n, inner) => {
    note(`poke ${String(n)}`, inner);
    if (n === 1) await inner.sleep("1m");
    note(await inner.step("answer", () => n), inner);
  });
  return plan(program)(ctx);
}

type Part = (ctx: Context) => Promise<unknown>;

async function group(kind: Group, parts: readonly Part[], ctx: Context): Promise<unknown> {
  if (kind === "all") return Promise.all(parts.map((part) => part(ctx)));
  if (kind === "race") return Promise.race(parts.map((part) => part(ctx)));
  if (kind === "first") return ctx.race(Object.fromEntries(parts.map((part, n) => [`b${n}`, part])));
  if (kind === "map") return ctx.map("parts", parts, (part, inner) => part(inner), { concurrency: 2 });
  if (kind === "settled") {
    const settled = await Promise.allSettled(parts.map((part) => part(ctx)));
    return settled.map((result) => (result.status === "fulfilled" ? result.value : String(result.reason)));
  }
  if (kind === "scope") return ctx.scope("parts", (inner) => group("seq", parts, inner));
  const results: unknown[] = [];
  for (const part of parts) results.push(await part(ctx));
  return results;
}

function countSent(program: Program): number {
  if (program.kind === "wait") return program.isSent ? 1 : 0;
  return "parts" in program ? program.parts.reduce((sum, part) => sum + countSent(part), 0) : 0;
}

function countFailures(engine: Engine): number {
  return engine.store.snapshot().events.filter(({ kind }) => kind === "attempt_failed").length;
}

/** An execution may be killed early, but as far as it came it saw the same as the one that came furthest. */
function expectPrefixes({ attempts }: Trial): void {
  for (const traces of attempts.values()) {
    const longest = traces.reduce((most, trace) => (trace.length > most.length ? trace : most), []);
    for (const trace of traces) expect(trace).toEqual(longest.slice(0, trace.length));
  }
}

const runs = Number(process.env["PAWL_PROPERTY_RUNS"] ?? 60);

test("a program that is interrupted anywhere ends as if it had not been", async () => {
  await fc.assert(
    fc.asyncProperty(
      programs("seq", "all", "settled", "scope", "map"),
      faults,
      fc.boolean(),
      async (program, plan, isSticky) => {
        const undisturbed = await run(program);
        const crashed = await run(program, withFaults(plan, isSticky));
        expect([crashed.status, crashed.output]).toEqual([undisturbed.status, undisturbed.output]);
        expect(crashed.status).toBe("completed");
      },
    ),
    { numRuns: runs },
  );
});

test("every execution of a run sees what the one before it saw, in the same order, races included", async () => {
  await fc.assert(
    fc.asyncProperty(
      programs("seq", "all", "race", "first", "scope", "map"),
      faults,
      fc.boolean(),
      async (program, plan, isSticky) => {
        const trial = await run(program, withFaults(plan, isSticky));
        expect(trial.status).toBe("completed");
        expectPrefixes(trial);
      },
    ),
    { numRuns: runs },
  );
});
