import { expect, test } from "vitest";
import { workflow } from "../../src/runtime/workflow.ts";
import { createEngine } from "./engine.ts";
import { createGate } from "./gate.ts";

const options = { version: 1, crashLimit: 1_000 } as const;

test("a paused run lets its running step end, starts nothing new, and goes on when resumed", async () => {
  const engine = createEngine();
  const gate = createGate();
  const called: string[] = [];
  const steps = workflow({ ...options, name: "steps" }, async (ctx) => {
    await ctx.step("a", async () => {
      called.push("a");
      await gate.opened;
    });
    await ctx.step("b", () => void called.push("b"));
  });
  const id = await engine.start(steps);
  await engine.idle();
  await engine.tell(id, "pause");
  await engine.idle();
  expect((await engine.store.getRun(id))?.status).toBe("running");
  gate.open();
  await engine.pass(86_400_000);
  expect((await engine.store.getRun(id))?.status).toBe("paused");
  expect(called).toEqual(["a"]);
  await engine.tell(id, "resume");
  await engine.idle();
  expect((await engine.store.getRun(id))?.status).toBe("completed");
  expect(await engine.facts(id)).toEqual([
    "step_completed a",
    "paused",
    "resumed",
    "step_completed b",
    "completed",
  ]);
});

test("a pause that is taken back while a step runs pauses nothing", async () => {
  const engine = createEngine();
  const gate = createGate();
  const steps = workflow({ ...options, name: "steps" }, async (ctx) => {
    await ctx.step("a", () => gate.opened);
    await ctx.step("b", () => {});
  });
  const id = await engine.start(steps);
  await engine.idle();
  await engine.tell(id, "pause");
  await engine.idle();
  await engine.tell(id, "resume");
  gate.open();
  await engine.idle();
  expect((await engine.store.getRun(id))?.status).toBe("completed");
  expect(engine.store.snapshot().inbox.every(({ takenSeq }) => takenSeq !== null)).toBe(true);
});

test("a resume that is older than the pause does not undo it", async () => {
  const engine = createEngine();
  const gate = createGate();
  const steps = workflow({ ...options, name: "steps" }, async (ctx) => {
    await ctx.step("a", () => gate.opened);
    await ctx.step("b", () => {});
  });
  const id = await engine.start(steps);
  await engine.idle();
  await engine.tell(id, "resume");
  await engine.tell(id, "pause");
  gate.open();
  await engine.idle();
  expect((await engine.store.getRun(id))?.status).toBe("paused");
  await engine.tell(id, "resume");
  await engine.idle();
  expect((await engine.store.getRun(id))?.status).toBe("completed");
});

test("a paused run can be cancelled", async () => {
  const engine = createEngine();
  const nap = workflow({ ...options, name: "nap" }, async (ctx) => ctx.sleep("1d"));
  const id = await engine.start(nap);
  await engine.idle();
  await engine.tell(id, "pause");
  await engine.idle();
  await engine.tell(id, "cancel");
  await engine.idle();
  expect((await engine.store.getRun(id))?.status).toBe("cancelled");
});

test("a timer that falls due during a pause fires after it", async () => {
  const engine = createEngine();
  const nap = workflow({ ...options, name: "nap" }, async (ctx) => {
    await ctx.sleep("1h");
    return "slept";
  });
  const id = await engine.start(nap);
  await engine.idle();
  await engine.tell(id, "pause");
  await engine.pass(7_200_000);
  expect((await engine.store.getRun(id))?.status).toBe("paused");
  await engine.tell(id, "resume");
  await engine.idle();
  expect(await engine.output(id)).toBe("slept");
});

test("a run whose attempt failed can be paused before the next", async () => {
  const engine = createEngine();
  const gate = createGate();
  let attempts = 0;
  const flaky = workflow({ ...options, name: "flaky" }, async (ctx) => {
    attempts = ctx.run.attempt;
    await ctx.step("once", () => gate.opened);
    if (ctx.run.attempt === 1) throw new Error("first");
    return ctx.run.attempt;
  });
  const id = await engine.start(flaky);
  await engine.idle();
  await engine.tell(id, "pause");
  gate.open();
  await engine.pass(3_600_000);
  expect([(await engine.store.getRun(id))?.status, attempts]).toEqual(["paused", 1]);
  await engine.tell(id, "resume");
  await engine.idle();
  expect(await engine.output(id)).toBe(2);
});
