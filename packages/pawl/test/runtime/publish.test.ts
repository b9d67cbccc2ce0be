import { expect, test } from "vitest";
import { z } from "zod";
import { workflow } from "../../src/runtime/workflow.ts";
import { exploreCrashes } from "./crash-explorer.ts";
import { createEngine } from "./engine.ts";

const options = { version: 1, crashLimit: 1_000 } as const;

test("a published value is a fact of the run, and is published once however often the run crashes", async () => {
  const show = workflow({ ...options, name: "show" }, async (ctx) => {
    await ctx.publish("stage", "begun");
    const two = await ctx.step("two", () => 2);
    await Promise.all([ctx.publish("stage", two), ctx.publish("other", new Date(0)), ctx.sleep("1h")]);
    await ctx.scope("inner", (inner) => inner.publish("stage", { done: true }));
    return "done";
  });
  const tried = await exploreCrashes(async (engine) => engine.start(show));
  expect(tried).toBeGreaterThan(8);

  const engine = createEngine();
  const id = await engine.start(show);
  await engine.end(id);
  expect(await engine.facts(id)).toEqual([
    "published publish:stage",
    "step_completed two",
    "published publish:stage#2",
    "published publish:other",
    "timer_set sleep",
    "timer_fired sleep",
    "published inner/publish:stage",
    "completed",
  ]);
  const published = await engine.store.readPublished(id, null);
  expect(published.map(({ key, data }) => [key, data?.json])).toEqual([
    ["other", '"1970-01-01T00:00:00.000Z"'],
    ["stage", '{"done":true}'],
  ]);
});

test("values are published in the order of the code, also where a schema takes its time", async () => {
  const published = {
    n: z.number().refine(async () => true),
    text: z.string().transform((text) => text.length),
  };
  const show = workflow({ ...options, name: "show", published }, async (ctx) => {
    await Promise.all([ctx.publish("n", 1), ctx.publish("n", 2), ctx.publish("text", "four")]);
  });
  const engine = createEngine();
  const id = await engine.start(show);
  await engine.end(id);
  const values = await engine.store.readPublished(id, null);
  expect(values.map(({ name, data }) => [name, data?.json])).toEqual([
    ["publish:n#2", "2"],
    ["publish:text", "4"],
  ]);
});

test("what is published as it was when it was asked for, whatever becomes of the object", async () => {
  const show = workflow({ ...options, name: "show" }, async (ctx) => {
    const state = { n: 1 };
    const done = ctx.publish("state", state);
    state.n = 2;
    await done;
  });
  const engine = createEngine();
  const id = await engine.start(show);
  await engine.end(id);
  expect(await engine.store.readPublished(id, "state")).toMatchObject([{ data: { json: '{"n":1}' } }]);
});

test("what cannot be published is refused, and the run goes on", async () => {
  const published = { n: z.number() };
  const show = workflow({ ...options, name: "show", published }, async (ctx) => {
    const mistakes = [
      ctx.publish("n", "one" as never),
      ctx.publish("m" as never, 1 as never),
      ctx.publish("" as never, 1 as never),
      ctx.publish(7 as never, 1 as never),
      ctx.publish("n", (() => 1) as never),
    ];
    const settled = await Promise.allSettled(mistakes);
    await ctx.publish("n", 1);
    return settled.map((each) => each.status === "rejected" && (each.reason as { code: string }).code);
  });
  const engine = createEngine();
  const id = await engine.start(show);
  await engine.end(id);
  expect(await engine.output(id)).toEqual([
    "INVALID_PAYLOAD",
    "INVALID_NAME",
    "INVALID_NAME",
    "INVALID_NAME",
    "INVALID_PAYLOAD",
  ]);
  expect(await engine.facts(id)).toEqual(["published publish:n#3", "completed"]);
});

test("a value that the code no longer publishes blocks the run", async () => {
  const before = workflow({ ...options, name: "show" }, async (ctx) => {
    await ctx.publish("stage", 1);
    await ctx.sleep("1h");
  });
  const after = workflow({ ...options, name: "show" }, async (ctx) => {
    await ctx.sleep("1h");
  });
  const engine = createEngine();
  const id = await engine.start(before);
  await engine.idle();
  engine.register(after);
  await engine.pass(3_600_000);
  await engine.pass(3_000);
  expect((await engine.facts(id)).at(-1)).toBe("blocked");
  expect(engine.log.at(-1)?.message).toContain('publish "publish:stage" (event 1)');
});
