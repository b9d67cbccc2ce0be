import { describe, expect, test } from "vitest";
import { workflow } from "../../src/runtime/workflow.ts";
import { clientOf } from "./client-of.ts";
import { exploreCrashes } from "./crash-explorer.ts";
import type { Engine } from "./engine.ts";

const child = workflow({ name: "child", version: 1 }, async (ctx) => {
  await ctx.sleep("1s");
  return "of the child";
});

/** Draws, waits, calls and goes beside itself; each step says what it has drawn. */
const program = workflow({ name: "program", version: 1, retry: { attempts: 1 } }, async (ctx) => {
  const drawn = ctx.random();
  const [first, answer] = await Promise.all([ctx.step("first", () => drawn), ctx.call(child)]);
  const woken = ctx.now();
  await ctx.sleep("1s");
  const later = ctx.random();
  const [second, wokenAt] = await ctx.step("second", () => [later, woken] as const);
  const last = await ctx.step("last", () => ctx.run.id.length);
  return [answer, first === drawn, second === later, wokenAt === woken, last];
});

async function endOnce(engine: Engine): Promise<string> {
  engine.register(child);
  const id = await engine.start(program);
  await engine.end(id);
  return id;
}

describe("whatever crashes happen on the way", () => {
  test.each(["first", "child", "sleep", "second", "last"])("a fork from %s ends alike", async (from) => {
    const tried = await exploreCrashes(async (engine) => {
      const source = await endOnce(engine);
      const { id } = await clientOf(engine).fork(source, { from });
      await engine.end(id);
      expect(await engine.output(id)).toEqual(["of the child", true, true, true, 36]);
      return id;
    });
    expect(tried).toBeGreaterThan(10);
  });

  test("a run that is retried from its start ends alike", async () => {
    await exploreCrashes(async (engine) => {
      const id = await endOnce(engine);
      await clientOf(engine).retry(id, { from: "start" });
      return id;
    });
  });

  test("a parent that fails and is retried at once starts a child anew that has yet to stop", async () => {
    await exploreCrashes(async (engine) => {
      let isBroken = true;
      const slow = workflow({ name: "slow", version: 1 }, async (ctx) => {
        await ctx.sleep("1m");
        return "slow";
      });
      const parent = workflow({ name: "parent", version: 1, retry: { attempts: 1 } }, async (ctx) => {
        const [answer] = await Promise.all([
          ctx.call(slow),
          ctx.step("beside", () => {
            if (isBroken) throw new Error("no");
          }),
        ]);
        return answer;
      });
      engine.register(slow);
      const id = await engine.start(parent);
      const { status } = await engine.end(id);
      expect(status).toBe("failed");
      isBroken = false;
      await clientOf(engine).retry(id);
      return id;
    });
  });
});
