import { expect, test } from "vitest";
import type { Context } from "../../src/runtime/context.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { createEngine } from "./engine.ts";

test("a workflow's steps run once each, in order, and its output is stored", async () => {
  const engine = createEngine();
  const called: string[] = [];
  const greet = workflow({ name: "greet", version: 1 }, async (ctx, name: string) => {
    const hello = await ctx.step("hello", () => (called.push("hello"), `Hello ${name}`));
    return ctx.step("shout", () => (called.push("shout"), hello.toUpperCase()));
  });
  const id = await engine.start(greet, "Ann");
  await engine.idle();
  expect(await engine.output(id)).toBe("HELLO ANN");
  expect(called).toEqual(["hello", "shout"]);
  expect(await engine.facts(id)).toEqual(["step_completed hello", "step_completed shout", "completed"]);
  expect(engine.calls).toEqual(["record", "record", "end"]);
});

test("a sleep parks the run in one call, and its timer never fires early", async () => {
  const engine = createEngine();
  const nap = workflow({ name: "nap", version: 1 }, async (ctx) => {
    await ctx.sleep("1h");
    return ctx.now();
  });
  const id = await engine.start(nap);
  const startedAt = engine.clock.now();
  await engine.idle();
  expect(engine.calls).toEqual(["park"]);
  await engine.pass(3_599_999);
  expect((await engine.store.getRun(id))?.status).toBe("waiting");
  await engine.pass(1);
  expect(await engine.output(id)).toBe(startedAt + 3_600_000);
  expect(await engine.facts(id)).toEqual(["timer_set sleep", "timer_fired sleep", "completed"]);
});

test("a signal wakes the run that waits for it", async () => {
  const engine = createEngine();
  const wait = workflow({ name: "wait", version: 1 }, async (ctx) => ctx.waitForSignal<{ n: number }>("go"));
  const id = await engine.start(wait);
  await engine.idle();
  await engine.tell(id, "signal:go", { n: 1 });
  await engine.idle();
  expect(await engine.output(id)).toEqual({ n: 1 });
  expect(await engine.facts(id)).toEqual(["signal_received signal:go", "completed"]);
});

test("a parent waits for its child's output", async () => {
  const engine = createEngine();
  const child = workflow({ name: "child", version: 1 }, async (_ctx, n: number) => n * 2);
  const parent = workflow({ name: "parent", version: 1 }, async (ctx) => (await ctx.call(child, 21)) + 0.5);
  engine.register(child);
  const id = await engine.start(parent);
  await engine.idle();
  expect(await engine.output(id)).toBe(42.5);
  expect(await engine.facts(id)).toEqual(["child_started child", "child_ended child", "completed"]);
});

test("runs whose inputs a claim has left out get them all the same", async () => {
  const engine = createEngine();
  const input = "x".repeat(1_000_000);
  const measure = workflow({ version: 1, name: "measure" }, async (_ctx, text: string) => text.length);
  const ids: string[] = [];
  for (let n = 0; n < 12; n++) ids.push(await engine.start(measure, input));
  await engine.idle();
  expect(engine.calls.filter((call) => call === "getRun")).toHaveLength(5);
  for (const id of ids) expect(await engine.output(id)).toBe(input.length);
});

test("contexts are plain objects: a copy of one does what it does", async () => {
  const engine = createEngine();
  const tested = workflow({ name: "tested", version: 1 }, async (ctx) => {
    const copy = { ...ctx };
    const log = { ...copy.log };
    return await copy.step("look", (given) => {
      const { signal, heartbeat, ...others } = { ...given };
      const ownLog = { ...others.log };
      heartbeat({ at: 1 });
      log.info("from the code");
      ownLog.warn("from the step");
      return [signal.aborted, Object.keys(others).toSorted()];
    });
  });
  const id = await engine.start(tested);
  await engine.end(id);
  const names = ["attempt", "idempotencyKey", "log", "progress", "stream"];
  expect(await engine.output(id)).toEqual([false, names]);
  expect(engine.log.map(({ message }) => message)).toEqual(["from the code", "from the step"]);
});

test("a context can be extended without a change to the one it came from", async () => {
  const engine = createEngine();
  const tested = workflow({ name: "tested", version: 1 }, async (ctx) => {
    const traced = Object.create(ctx) as Context;
    traced.step = ((name: string, call: () => unknown) =>
      ctx.step(`traced ${name}`, call)) as Context["step"];
    await traced.step("a", () => 1);
    await ctx.step("b", () => 2);
    Object.freeze(ctx);
    return Object.keys(ctx).includes("step");
  });
  const id = await engine.start(tested);
  await engine.end(id);
  expect(await engine.output(id)).toBe(true);
  expect(await engine.facts(id)).toEqual(["step_completed traced a", "step_completed b", "completed"]);
});
