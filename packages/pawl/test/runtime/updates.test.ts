import { expect, test } from "vitest";
import { z } from "zod";
import { PawlError } from "../../src/core/error.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { exploreCrashes, endScenario } from "./crash-explorer.ts";
import { createEngine, type Engine } from "./engine.ts";
import { createGate } from "./gate.ts";

const options = { version: 1, crashLimit: 1_000 } as const;

/** What the updates of this run were answered with, oldest first. */
function answers(engine: Engine, runId: string): unknown[] {
  const { inbox, events } = engine.store.snapshot();
  return inbox
    .filter((message) => message.runId === runId && message.topic.startsWith("update:"))
    .map(
      ({ answerSeq }) =>
        events.find((event) => event.runId === runId && event.seq === answerSeq)?.data?.value,
    );
}

const cart = workflow({ ...options, name: "cart" }, async (ctx) => {
  const items: string[] = [];
  ctx.onUpdate("add", async (item: string, inner) => {
    const price = await inner.step("price", () => item.length);
    await inner.sleep("1m");
    items.push(item);
    return { price, count: items.length };
  });
  ctx.onUpdate("fail", () => {
    throw new RangeError("no");
  });
  await ctx.waitForSignal("checkout");
  return items;
});

test("each update is handled in a scope of its own, beside the code, and answered in the history", async () => {
  const engine = createEngine();
  const id = await engine.start(cart);
  await engine.tell(id, "update:add", "pear");
  await engine.idle();
  await engine.tell(id, "update:add", "fig");
  await engine.tell(id, "update:fail");
  await engine.pass(120_000);
  await engine.tell(id, "signal:checkout");
  await engine.end(id);
  expect(await engine.output(id)).toEqual(["pear", "fig"]);
  expect(answers(engine, id)).toEqual([
    { status: "answered", output: { price: 4, count: 1 } },
    { status: "answered", output: { price: 3, count: 2 } },
    { status: "failed", error: expect.objectContaining({ name: "RangeError", message: "no" }) },
  ]);
  const facts = await engine.facts(id);
  expect(facts.filter((fact) => fact.includes("add"))).toEqual([
    "update_received update:add",
    "step_completed update:add/price",
    "timer_set update:add/sleep",
    "update_received update:add#2",
    "step_completed update:add#2/price",
    "timer_set update:add#2/sleep",
    "timer_fired update:add/sleep",
    "timer_fired update:add#2/sleep",
    "update_answered update:add",
    "update_answered update:add#2",
  ]);
});

test("updates come to the same, whichever write a crash hits", async () => {
  const tried = await exploreCrashes(async (engine) => {
    const id = await engine.start(cart);
    await engine.tell(id, "update:add", "pear");
    await engine.tell(id, "update:fail");
    await engine.pass(600_000);
    await engine.tell(id, "update:add", "fig");
    await engine.pass(600_000);
    await engine.tell(id, "signal:checkout");
    return id;
  });
  expect(tried).toBeGreaterThan(20);
});

test("an update waits until a handler is registered, and a run that waits for updates holds no worker", async () => {
  const engine = createEngine();
  const late = workflow({ ...options, name: "late" }, async (ctx) => {
    await ctx.sleep("1h");
    ctx.onUpdate("add", (n: number) => n + 1);
    await ctx.waitForSignal("stop");
  });
  const id = await engine.start(late);
  await engine.tell(id, "update:add", 1);
  await engine.idle();
  expect(answers(engine, id)).toEqual([undefined]);
  await engine.pass(3_601_000);
  expect(answers(engine, id)).toEqual([{ status: "answered", output: 2 }]);
  expect(engine.store.snapshot().parked).toMatchObject([
    { wants: ["cancel", "pause", "signal:stop", "update:add"] },
  ]);
});

test("a run that returns lets the handlers that have begun come to their end, and receives nothing more", async () => {
  const engine = createEngine();
  const brief = workflow({ ...options, name: "brief" }, async (ctx) => {
    ctx.onUpdate("slow", async (n: number, inner) => {
      await inner.sleep("1h");
      return n;
    });
    await ctx.waitForSignal("stop");
    return "returned";
  });
  const id = await engine.start(brief);
  await engine.tell(id, "update:slow", 1);
  await engine.idle();
  await engine.tell(id, "signal:stop");
  await engine.idle();
  await engine.tell(id, "update:slow", 2);
  await engine.idle();
  expect((await engine.store.getRun(id))?.endedAt).toBeNull();
  await engine.end(id);
  expect(await engine.output(id)).toBe("returned");
  expect(answers(engine, id)).toEqual([{ status: "answered", output: 1 }, undefined]);
});

test("an update that comes with what ends the run is handled, or left to be refused, never half of it", async () => {
  const brief = workflow({ ...options, name: "brief" }, async (ctx) => {
    let handled = 0;
    ctx.onUpdate("count", async (_: unknown, inner) => inner.step("count", () => ++handled));
    await ctx.waitForSignal("stop");
    return handled;
  });
  const scenario = async (engine: Engine): Promise<string> => {
    const id = await engine.start(brief);
    await engine.tell(id, "signal:stop");
    await engine.tell(id, "update:count");
    await engine.tell(id, "update:count");
    return id;
  };
  await exploreCrashes(scenario);
  const { engine, run } = await endScenario(scenario);
  expect(answers(engine, run.id)).toEqual([{ status: "answered", output: 1 }, undefined]);
});

test("what its schema refuses is answered without the code, and holds up nothing", async () => {
  const engine = createEngine();
  const updates = {
    set: { input: z.object({ n: z.string().transform(Number) }), output: z.number().max(9) },
  };
  const seen: unknown[] = [];
  const strict = workflow({ ...options, name: "strict", updates }, async (ctx) => {
    ctx.onUpdate("set", ({ n }) => {
      seen.push(n);
      return n;
    });
    await ctx.waitForSignal("stop");
  });
  const id = await engine.start(strict);
  for (const payload of [{ n: 1 }, { n: "2" }, "three", { n: "10" }])
    await engine.tell(id, "update:set", payload);
  await engine.idle();
  expect(seen).toEqual([2, 10]);
  expect(answers(engine, id)).toEqual([
    { status: "refused", error: expect.objectContaining({ code: "INVALID_PAYLOAD" }) },
    { status: "answered", output: 2 },
    { status: "refused", error: expect.objectContaining({ code: "INVALID_PAYLOAD" }) },
    { status: "failed", error: expect.objectContaining({ code: "INVALID_PAYLOAD" }) },
  ]);
});

test("a cancelled run answers nothing more, and ends", async () => {
  const engine = createEngine();
  const id = await engine.start(cart);
  await engine.tell(id, "update:add", "pear");
  await engine.idle();
  await engine.tell(id, "cancel");
  expect((await engine.end(id)).status).toBe("cancelled");
  expect(answers(engine, id)).toEqual([undefined]);
});

test("an attempt that failed keeps what it had answered, and the next one answers the rest", async () => {
  const engine = createEngine();
  let failures = 1;
  const flaky = workflow(
    { ...options, name: "flaky", retry: { attempts: 3, initial: "1m" } },
    async (ctx) => {
      const seen: number[] = [];
      ctx.onUpdate("n", async (n: number, inner) => {
        seen.push(n);
        await inner.sleep(n === 1 ? 0 : "30s");
        return n;
      });
      await ctx.sleep("10s");
      if (failures-- > 0) throw new Error("not yet");
      await ctx.waitForSignal("stop");
      return seen;
    },
  );
  const id = await engine.start(flaky);
  await engine.tell(id, "update:n", 1);
  await engine.tell(id, "update:n", 2);
  await engine.pass(600_000);
  await engine.tell(id, "signal:stop");
  await engine.end(id);
  expect(await engine.output(id)).toEqual([1, 2]);
  expect(answers(engine, id)).toEqual([
    { status: "answered", output: 1 },
    { status: "answered", output: 2 },
  ]);
  expect((await engine.facts(id)).filter((fact) => fact === "update_answered update:n")).toHaveLength(1);
});

test("code that awaits something other than its context is not parked because it handles updates", async () => {
  const engine = createEngine();
  const gate = createGate();
  const bare = workflow({ ...options, name: "bare" }, async (ctx) => {
    ctx.onUpdate("n", (n: number) => n);
    await gate.opened;
    return "opened";
  });
  const id = await engine.start(bare);
  await engine.tell(id, "update:n", 1);
  await engine.pass(10_000);
  expect(engine.outcomes).toEqual([]);
  expect(answers(engine, id)).toEqual([{ status: "answered", output: 1 }]);
  gate.open();
  await engine.end(id);
  expect(await engine.output(id)).toBe("opened");
});

test("mistakes in registering are thrown at once", async () => {
  const engine = createEngine();
  const updates = { a: { input: z.number() } };
  const wrong = workflow({ ...options, name: "wrong", updates }, async (ctx) => {
    const codeOf = (act: () => void): string | undefined => {
      try {
        act();
      } catch (error) {
        return PawlError.is(error) ? error.code : undefined;
      }
      return undefined;
    };
    ctx.onUpdate("a", () => 1);
    return [
      codeOf(() => ctx.onUpdate("a", () => 1)),
      codeOf(() => ctx.onUpdate("b" as never, () => 1)),
      codeOf(() => ctx.onUpdate("" as never, () => 1)),
    ];
  });
  const id = await engine.start(wrong);
  await engine.end(id);
  expect(await engine.output(id)).toEqual(["INVALID_OPTION", "INVALID_NAME", "INVALID_NAME"]);
  expect(() => workflow({ ...options, name: "no", updates: { a: {} as never } }, async () => {})).toThrow(
    /updates\.a\.input.*must be given/,
  );
});
