import { describe, expect, test } from "vitest";
import { createClient, type Client } from "../../src/client/client.ts";
import { silentLog } from "../../src/core/log.ts";
import { createSeededRandom } from "../../src/core/seeded-random.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { createStoreClock } from "../../src/store/store-clock.ts";
import { createEngine, type Engine } from "./engine.ts";

function clientOf(engine: Engine): Client {
  const { store, clock } = engine;
  return createClient({
    store,
    clock,
    storeClock: createStoreClock(clock, store),
    ids: { next: () => engine.nextId() },
    random: createSeededRandom("caller"),
    timers: { after: () => () => {} },
    log: silentLog,
  });
}

const once = { version: 1, retry: { attempts: 1 } } as const;

describe("a fork", () => {
  test("does again what was undone in its source", async () => {
    const engine = createEngine();
    const done: string[] = [];
    let isBroken = true;
    const trip = workflow({ ...once, name: "trip" }, async (ctx) => {
      await ctx.step("look", () => void done.push("look"));
      await ctx.step("flight", () => void done.push("flight"), { undo: () => void done.push("undo flight") });
      await ctx.step("hotel", () => void done.push("hotel"));
      await ctx.step("pay", () => {
        if (isBroken) throw new Error("no money");
        done.push("pay");
      });
    });
    const source = await engine.start(trip);
    expect((await engine.end(source)).status).toBe("failed");
    isBroken = false;
    const { id } = await clientOf(engine).fork(source, { from: "pay" });
    expect((await engine.end(id)).status).toBe("completed");
    expect(done).toEqual(["look", "flight", "hotel", "undo flight", "flight", "pay"]);
  });

  test("joins a child that its source had started and not joined", async () => {
    const engine = createEngine();
    const child = workflow({ ...once, name: "child" }, async (ctx) => {
      await ctx.sleep("1h");
      return "of the child";
    });
    const parent = workflow({ ...once, name: "parent" }, async (ctx) => {
      const handle = await ctx.start(child);
      await ctx.step("beside", () => 1);
      return handle.result();
    });
    engine.register(child);
    const source = await engine.start(parent);
    await engine.end(source);
    const { id } = await clientOf(engine).fork(source, { from: "beside" });
    expect((await engine.end(id)).status).toBe("completed");
    expect(await engine.output(id)).toBe("of the child");
  });
  test("joins a child that still runs", async () => {
    const engine = createEngine();
    const child = workflow({ ...once, name: "child" }, async (ctx) => {
      await ctx.sleep("1h");
      return "of the child";
    });
    const parent = workflow({ ...once, name: "parent" }, async (ctx) => {
      const handle = await ctx.start(child);
      await ctx.step("beside", () => 1);
      return handle.result();
    });
    engine.register(child);
    const source = await engine.start(parent);
    await engine.idle();
    const { id } = await clientOf(engine).fork(source, { from: "beside" });
    expect((await engine.end(id)).status).toBe("completed");
    expect(await engine.output(id)).toBe("of the child");
  });
});

describe("continueAs", () => {
  test("is refused in the handler of an update", async () => {
    const engine = createEngine();
    const loop = workflow({ ...once, name: "loop" }, async (ctx, n: number) => {
      ctx.onUpdate("again", async (_, inner) => inner.continueAs(n + 1));
      await ctx.waitForSignal("stop");
      return n;
    });
    const id = await engine.start(loop, 1);
    await engine.idle();
    await engine.tell(id, "update:again");
    await engine.idle();
    await engine.tell(id, "signal:stop");
    expect((await engine.end(id)).status).toBe("completed");
    expect(await engine.output(id)).toBe(1);
  });
  test("does nothing in a branch that has lost its race", async () => {
    const engine = createEngine();
    const loop = workflow({ ...once, name: "loop" }, async (ctx) => {
      const { winner } = await ctx.race({
        slow: async (inner) => {
          await inner.sleep("1d").catch(() => {});
          return inner.continueAs();
        },
        fast: ctx.sleep("1s"),
      });
      await ctx.step("after", () => 1);
      return winner;
    });
    const id = await engine.start(loop);
    expect(await engine.end(id)).toMatchObject({ status: "completed" });
    expect(await engine.output(id)).toBe("fast");
  });
});
