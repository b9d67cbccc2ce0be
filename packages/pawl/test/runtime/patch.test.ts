import { expect, test } from "vitest";
import type { Context } from "../../src/runtime/context.ts";
import { workflow, type Workflow } from "../../src/runtime/workflow.ts";
import { exploreCrashes } from "./crash-explorer.ts";
import { createEngine, type Engine } from "./engine.ts";
import { createGate } from "./gate.ts";

type Body = (ctx: Context) => Promise<unknown>;

/** Registers this code as the one that runs now. */
function deploy(engine: Engine, body: Body): Workflow<undefined> {
  const tested = workflow({ name: "tested", version: 1, crashLimit: 1_000, retry: { attempts: 3 } }, body);
  engine.register(tested);
  return tested;
}

const done: string[] = [];
const step = (ctx: Context, name: string): Promise<string> =>
  ctx.step(name, () => {
    done.push(name);
    return name;
  });

const old: Body = async (ctx) => {
  await step(ctx, "reserve");
  await ctx.sleep("1h");
  const paid = await step(ctx, "charge");
  await ctx.sleep("1h");
  return paid;
};

const patched: Body = async (ctx) => {
  await step(ctx, "reserve");
  await ctx.sleep("1h");
  const paid = ctx.patch("euro") ? await step(ctx, "charge-euro") : await step(ctx, "charge");
  await ctx.sleep("1h");
  return paid;
};

const retired: Body = async (ctx) => {
  await step(ctx, "reserve");
  await ctx.sleep("1h");
  const paid = await step(ctx, "charge-euro");
  await ctx.sleep("1h");
  return paid;
};

test("a run that comes to a patch on new ground takes the new side, and says so once", async () => {
  const engine = createEngine();
  const id = await engine.start(
    deploy(engine, async (ctx) => {
      const sides = [ctx.patch("a"), ctx.patch("a")];
      await step(ctx, "one");
      sides.push(ctx.patch("b"));
      await ctx.sleep("1h");
      return [...sides, await ctx.scope("inner", (inner) => inner.patch("a"))];
    }),
  );
  await engine.end(id);
  expect(await engine.output(id)).toEqual([true, true, true, true]);
  expect((await engine.facts(id)).filter((fact) => fact.startsWith("patched"))).toEqual([
    "patched a",
    "patched b",
  ]);
});

test("a patch costs no write of its own", async () => {
  const counts = await Promise.all(
    [false, true].map(async (isPatched) => {
      const engine = createEngine();
      const body: Body = async (ctx) => {
        if (isPatched) ctx.patch("p");
        await step(ctx, "one");
        if (isPatched) ctx.patch("q");
        return step(ctx, "two");
      };
      await engine.end(await engine.start(deploy(engine, body)));
      return engine.writes();
    }),
  );
  expect(counts[1]).toBe(counts[0]);
});

test("a run that was past the patch when it came stays on the old side", async () => {
  const engine = createEngine();
  done.length = 0;
  const id = await engine.start(deploy(engine, old));
  await engine.pass(5_400_000);
  deploy(engine, patched);
  await engine.end(id);
  expect(await engine.output(id)).toBe("charge");
  expect(done).toEqual(["reserve", "charge"]);
  expect(await engine.facts(id)).not.toContain("patched euro");
});

test("a run that had not come to the patch takes the new side", async () => {
  const engine = createEngine();
  done.length = 0;
  const id = await engine.start(deploy(engine, old));
  await engine.idle();
  deploy(engine, patched);
  await engine.end(id);
  expect(await engine.output(id)).toBe("charge-euro");
  expect(done).toEqual(["reserve", "charge-euro"]);
});

test("a timer that is set and has not fired is part of the history", async () => {
  const engine = createEngine();
  const id = await engine.start(
    deploy(engine, async (ctx) => {
      await ctx.sleep("1h");
      return "old";
    }),
  );
  await engine.idle();
  deploy(engine, async (ctx) => {
    if (ctx.patch("longer")) await ctx.waitForSignal("never");
    else await ctx.sleep("1h");
    return "old";
  });
  await engine.end(id);
  expect(await engine.output(id)).toBe("old");
});

test("a patch is retired by removing the call and the old side", async () => {
  const engine = createEngine();
  done.length = 0;
  const id = await engine.start(deploy(engine, patched));
  await engine.pass(5_400_000);
  expect(await engine.facts(id)).toContain("patched euro");
  deploy(engine, retired);
  await engine.end(id);
  expect(await engine.output(id)).toBe("charge-euro");
  expect(done).toEqual(["reserve", "charge-euro"]);
});

test("a run on the new side is not executed by the code from before the patch", async () => {
  const engine = createEngine();
  done.length = 0;
  const id = await engine.start(deploy(engine, patched));
  await engine.pass(5_400_000);
  deploy(engine, old);
  await engine.pass(3_600_000);
  expect((await engine.store.getRun(id))?.status).toBe("blocked");
  deploy(engine, patched);
  await engine.end(id);
  expect(done).toEqual(["reserve", "charge-euro"]);
});

test("a new attempt keeps the decisions of the one before", async () => {
  const engine = createEngine();
  const id = await engine.start(
    deploy(engine, async (ctx) => {
      const side = ctx.patch("p");
      await step(ctx, "one");
      if (ctx.run.attempt < 3) throw new Error("again");
      return side;
    }),
  );
  await engine.end(id);
  expect(await engine.output(id)).toBe(true);
  expect((await engine.facts(id)).filter((fact) => fact === "patched p")).toHaveLength(1);
});

test("a new attempt does not do on the new side what an earlier one has done on the old side", async () => {
  const engine = createEngine();
  done.length = 0;
  const id = await engine.start(
    deploy(engine, async (ctx) => {
      await step(ctx, "reserve");
      await step(ctx, "charge");
      throw new Error("the mail server is down");
    }),
  );
  await engine.idle();
  deploy(engine, async (ctx) => {
    await step(ctx, "reserve");
    return ctx.patch("euro") ? step(ctx, "charge-euro") : step(ctx, "charge");
  });
  await engine.end(id);
  expect(await engine.output(id)).toBe("charge");
  expect(done).toEqual(["reserve", "charge"]);
});

test("a redriven run keeps its side, old or new", async () => {
  const failing =
    (body: Body): Body =>
    async (ctx) => {
      await body(ctx);
      throw Object.assign(new Error("no"), { retryable: false });
    };
  for (const [first, side] of [
    [old, "charge"],
    [patched, "charge-euro"],
  ] as const) {
    const engine = createEngine();
    done.length = 0;
    const id = await engine.start(deploy(engine, failing(first)));
    expect((await engine.end(id)).status).toBe("failed");
    deploy(engine, patched);
    await engine.store.redrive([id]);
    await engine.end(id);
    expect(await engine.output(id)).toBe(side);
    expect(done).toEqual(["reserve", side]);
  }
});

test("parallel chains with patches continue after any crash as they would have", async () => {
  const crashes = await exploreCrashes(async (engine) =>
    engine.start(
      deploy(engine, async (ctx) => {
        const chain = (name: string) =>
          ctx.scope(name, async (inner) => {
            const results = [await step(inner, "first"), inner.patch(name)];
            if (inner.patch("both")) results.push(await step(inner, "second"));
            await inner.sleep("1m");
            return results;
          });
        return Promise.all([chain("a"), chain("b")]);
      }),
    ),
  );
  expect(crashes).toBeGreaterThan(4);
});

test("a patch that nothing has followed binds nobody: old code may go on, and the new code follows it", async () => {
  const engine = createEngine();
  const gate = createGate();
  const before: Body = async (ctx) => {
    await step(ctx, "reserve");
    await step(ctx, "charge");
    return ctx.waitForSignal("shipped");
  };
  const since: Body = async (ctx) => {
    await ctx.step("reserve", () => gate.opened);
    if (ctx.patch("euro")) await step(ctx, "charge-euro");
    else await step(ctx, "charge");
    return ctx.waitForSignal("shipped");
  };
  const id = await engine.start(deploy(engine, since));
  await engine.idle();
  await engine.tell(id, "pause");
  gate.open();
  await engine.pass(1_000);
  expect((await engine.store.getRun(id))?.status).toBe("paused");
  expect(await engine.facts(id)).toEqual(["step_completed reserve", "paused"]);

  deploy(engine, before);
  await engine.tell(id, "resume");
  await engine.idle();
  expect((await engine.facts(id)).at(-1)).toBe("step_completed charge");
  deploy(engine, since);
  await engine.tell(id, "signal:shipped", "today");
  await engine.end(id);
  expect(await engine.output(id)).toBe("today");
});

test("a patch needs a name", async () => {
  const engine = createEngine();
  const id = await engine.start(
    deploy(engine, async (ctx) => {
      const faults = [undefined, "", 7, "x".repeat(256)].map((bad) => {
        try {
          return ctx.patch(bad as string);
        } catch (error) {
          return (error as { readonly code: string }).code;
        }
      });
      return faults;
    }),
  );
  await engine.end(id);
  expect(await engine.output(id)).toEqual(["INVALID_NAME", "INVALID_NAME", "INVALID_NAME", "INVALID_NAME"]);
});
