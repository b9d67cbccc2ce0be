import { describe, expect, test } from "vitest";
import { z } from "zod";
import { decode } from "../../src/core/codec.ts";
import type { PawlError } from "../../src/core/error.ts";
import type { RunId } from "../../src/core/ids.ts";
import type { Context } from "../../src/runtime/context.ts";
import { workflow, type Workflow } from "../../src/runtime/workflow.ts";
import type { RunRecord } from "../../src/store/run-record.ts";
import { createEngine, type Engine } from "./engine.ts";

const options = { name: "loop", version: 1, crashLimit: 1_000 } as const;

/** The runs of a chain, from the first to the last, which has ended. */
async function chainOf(engine: Engine, first: RunId): Promise<readonly RunRecord[]> {
  const runs: RunRecord[] = [];
  for (let id: RunId | null = first; id !== null;) {
    const run: RunRecord = await engine.end(id);
    runs.push(run);
    id = run.continuedAs;
  }
  return runs;
}

/** Counts up to a limit, a run for each number, and collects what it was sent on the way. */
const counting = (turns: number, done: string[] = []): Workflow<{ n: number; got: unknown[] }> =>
  workflow(options, async (ctx, { n, got }: { n: number; got: unknown[] }): Promise<unknown> => {
    await ctx.step("count", () => done.push(`${n}`));
    if (n === turns) return got;
    const signal = n % 2 === 0 ? await ctx.waitForSignal("go") : null;
    return ctx.continueAs({ n: n + 1, got: [...got, signal] });
  });

describe("continueAs", () => {
  test("goes on as a new run, with a history of its own", async () => {
    const engine = createEngine();
    const id = await engine.start(counting(3), { n: 1, got: [] }, { key: "k" });
    await engine.tell(id, "signal:go", "a");
    const runs = await chainOf(engine, id);
    expect(runs.map(({ input }) => decode(input))).toMatchObject([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect(runs.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
    expect(decode(runs[2]!.output)).toEqual([null, "a"]);
    expect(await engine.facts(id)).toEqual(["step_completed count", "continued", "completed"]);
    expect(decode((await engine.history(id)).at(-2)!.data)).toEqual({ id: runs[1]!.id });
    expect(await engine.store.findKey("k")).toBe(runs[2]!.id);
  });

  test("takes each turn once, whatever write the worker dies at", async () => {
    const drive = async (engine: Engine, done: string[]): Promise<unknown[]> => {
      const id = await engine.start(counting(4, done), { n: 1, got: [] });
      for (const data of ["a", "b"]) await engine.tell(id, "signal:go", data);
      const runs = await chainOf(engine, id);
      const facts = await Promise.all(runs.map((run) => engine.facts(run.id)));
      const withoutCrashes = facts.map((list) => list.filter((fact) => fact !== "attempt_crashed"));
      return [withoutCrashes, decode(runs.at(-1)!.output), runs.length];
    };
    const calm = createEngine();
    const undisturbed = await drive(calm, []);
    expect(undisturbed[1]).toEqual([null, "a", null]);
    for (let number = 1; number <= calm.writes(); number++) {
      for (const when of ["before", "after"] as const) {
        const crashAt = (call: number, at: string): boolean => call === number && at === when;
        const done: string[] = [];
        const outcome = await drive(createEngine({ crashAt }), done);
        expect([number, when, ...outcome]).toEqual([number, when, ...undisturbed]);
        expect(new Set(done)).toEqual(new Set(["1", "2", "3", "4"]));
      }
    }
  });

  test("goes on once where the store's answers are lost", async () => {
    const engine = createEngine({ failAt: (call, when) => when === "after" && call % 2 === 0 });
    const id = await engine.start(counting(3), { n: 1, got: [] });
    await engine.tell(id, "signal:go", "a");
    // The second try finds the lease gone: the first has counted.
    const runs = await chainOf(engine, id);
    expect(runs).toHaveLength(3);
    expect((await engine.list("loop")).length).toBe(3);
  });

  test("a loop of a thousand turns keeps every history short, and the last turn costs what the first did", async () => {
    const engine = createEngine();
    const looping = workflow(options, async (ctx, n: number): Promise<unknown> => {
      await ctx.step("work", () => n);
      return n === 1_000 ? "over" : ctx.continueAs(n + 1);
    });
    const id = await engine.start(looping, 1);
    const runs = await chainOf(engine, id);
    expect(runs).toHaveLength(1_000);
    expect(decode(runs.at(-1)!.output)).toBe("over");
    for (const at of [0, 500, 998]) expect(await engine.history(runs[at]!.id)).toHaveLength(3);
    expect(engine.writes()).toBe(2_000);
    const { chainEnd } = (await engine.store.getEnds([id])).get(id)!;
    expect(chainEnd).toBe(runs.at(-1)!.id);
  });

  test("nothing after it runs, and nothing beside it is waited for", async () => {
    const engine = createEngine();
    const after: string[] = [];
    const looping = workflow(options, async (ctx, isLast: boolean): Promise<unknown> => {
      if (isLast) return "last";
      const beside = ctx.waitForSignal("never").finally(() => after.push("beside"));
      try {
        await Promise.race([beside, ctx.continueAs(true)]);
        after.push("after");
      } finally {
        after.push("finally");
      }
      return "unreached";
    });
    const runs = await chainOf(engine, await engine.start(looping, false));
    expect(runs).toHaveLength(2);
    expect(after).toEqual([]);
  });

  test("a cancel goes before it", async () => {
    const engine = createEngine();
    const looping = workflow(options, async (ctx): Promise<unknown> => {
      await ctx.waitForSignal("never").catch(() => null);
      return ctx.continueAs();
    });
    const id = await engine.start(looping);
    await engine.idle();
    await engine.tell(id, "cancel");
    expect(await engine.end(id)).toMatchObject({ status: "cancelled", continuedAs: null });
  });

  test("code that goes on without asking for what its history holds is blocked", async () => {
    const engine = createEngine();
    const id = await engine.start(
      workflow(options, async (ctx) => {
        await ctx.step("a", () => 1);
        await ctx.sleep("1h");
      }),
    );
    await engine.idle();
    engine.register(workflow(options, async (ctx): Promise<unknown> => ctx.continueAs()));
    await engine.pass(3_600_000);
    expect(await engine.store.getRun(id)).toMatchObject({ status: "blocked", continuedAs: null });
    const { message } = decode((await engine.history(id)).at(-1)!.data) as { message: string };
    expect(message).toContain("It goes on as another run.");
  });

  test("a newer version can go on, by its number or by the workflow", async () => {
    for (const by of ["number", "workflow"] as const) {
      const engine = createEngine();
      const newer = workflow(
        { ...options, version: 2, input: z.object({ id: z.string().transform(Number) }) },
        async (ctx, input) => [ctx.run.version, input],
      );
      const older = workflow(options, async (ctx): Promise<unknown> =>
        by === "number" ? ctx.continueAs({ id: "7" }, { version: 2 }) : ctx.continueAs({ id: "7" }, newer),
      );
      engine.register(newer);
      const runs = await chainOf(engine, await engine.start(older));
      expect(runs.map(({ version }) => version)).toEqual([1, 2]);
      expect(decode(runs[1]!.output)).toEqual([2, { id: 7 }]);
    }
  });

  test("a child may go on: its parent gets the output of the last run", async () => {
    const engine = createEngine();
    const child = counting(3);
    engine.register(child);
    const parent = workflow({ name: "parent", version: 1, crashLimit: 9 }, async (ctx: Context) =>
      ctx.call(child, { n: 1, got: [] }),
    );
    const id = await engine.start(parent);
    await engine.idle();
    const [last] = await engine.list("loop");
    await engine.tell(last!.id, "signal:go", "now");
    await engine.end(id);
    expect(await engine.output(id)).toEqual([null, "now"]);
    expect((await engine.facts(id)).filter((fact) => fact === "child_ended loop")).toHaveLength(1);
  });

  test("what it is given is checked", async () => {
    const engine = createEngine();
    const other = workflow({ name: "other", version: 1 }, async () => 1);
    const looping = workflow({ ...options, input: z.number() }, async (ctx): Promise<unknown> => {
      const tries: readonly (readonly [unknown, unknown])[] = [
        ["no number", {}],
        [1, { versoin: 2 }],
        [1, { version: 0 }],
        [1, other],
        [Symbol("x"), { version: 2 }],
      ];
      const faults: unknown[] = [];
      for (const [input, to] of tries) {
        const tried = ctx.continueAs(input, to as { version: number });
        faults.push(await tried.catch((error: unknown) => (error as PawlError).code));
      }
      return faults;
    });
    const id = await engine.start(looping, 1);
    await engine.end(id);
    expect(await engine.output(id)).toEqual([
      "INVALID_PAYLOAD",
      "INVALID_OPTION",
      "INVALID_OPTION",
      "INVALID_OPTION",
      "INVALID_PAYLOAD",
    ]);
  });
});

describe("a child that went on as another and lost a race", () => {
  /** Its second run is in a step that takes long, and heeds nothing. */
  const looping = (engine: Engine): Workflow<number> =>
    workflow({ name: "child", version: 1 }, async (ctx, n: number): Promise<unknown> => {
      await ctx.sleep("10m");
      if (n === 0) return ctx.continueAs(1);
      return ctx.step("work", () => engine.delay(3_600_000));
    });

  test("is asked to stop", async () => {
    const engine = createEngine();
    const child = looping(engine);
    const parent = workflow({ name: "parent", version: 1 }, async (ctx) => {
      const { winner } = await ctx.race({ child: ctx.call(child, 0), late: ctx.sleep("15m") });
      await ctx.sleep("1h");
      return winner;
    });
    engine.register(child, parent);
    const id = await engine.start(parent);
    await engine.end(id);
    expect(await engine.output(id)).toBe("late");
    const runs = await engine.list("child");
    expect(runs.map(({ status }) => status)).toEqual(["cancelled", "completed"]);
  });

  test("does not end for the child that a new attempt has under its name", async () => {
    const engine = createEngine();
    const child = looping(engine);
    const retry = { attempts: 2 } as const;
    const parent = workflow({ name: "parent", version: 1, retry }, async (ctx) => {
      const isFirst = ctx.run.attempt === 1;
      const first = await ctx.race({
        child: (inner) => inner.call(child, 0),
        late: (inner) => inner.scope(String(ctx.run.attempt), (own) => own.sleep(isFirst ? "25m" : "9d")),
      });
      if (isFirst) {
        await ctx.sleep("1s");
        throw new Error("again");
      }
      return first.winner;
    });
    engine.register(child, parent);
    const id = await engine.start(parent);
    const { status } = await engine.end(id);
    expect([status, await engine.output(id)]).toEqual(["completed", "child"]);
  });
});
