import { expect, test } from "vitest";
import { decode } from "../../src/core/codec.ts";
import type { Context } from "../../src/runtime/context.ts";
import type { Difference } from "../../src/runtime/difference.ts";
import { workflow, type Workflow } from "../../src/runtime/workflow.ts";
import { createEngine, type Engine } from "./engine.ts";

type Body = (ctx: Context) => Promise<unknown>;

const child = workflow({ name: "child", version: 1 }, async (ctx) => ctx.waitForSignal("never"));

function build(engine: Engine, called: string[], body: Body): Workflow<undefined> {
  const tested = workflow({ name: "tested", version: 1, crashLimit: 1_000 }, async (ctx) => {
    const step: Context["step"] = (name, call) =>
      ctx.step(name, (context) => {
        called.push(name);
        return call(context);
      });
    return body({ ...ctx, step });
  });
  engine.register(tested, child);
  return tested;
}

/** What the history below was made by: steps, a timer, a signal, a child, and parallel steps. */
const original: Body = async (ctx) => {
  await ctx.step("reserve", () => 1);
  await Promise.all([ctx.step("charge", () => 2), ctx.step("mail", () => 3)]);
  await ctx.sleep("1h");
  await ctx.waitForSignal("paid");
  await ctx.call(child);
  return "unreached";
};

const mutations: Readonly<Record<string, { readonly body: Body; readonly says: readonly string[] }>> = {
  "a step is removed": {
    body: async (ctx) => {
      await Promise.all([ctx.step("charge", () => 2), ctx.step("mail", () => 3)]);
      await ctx.sleep("1h");
      await ctx.waitForSignal("paid");
      await ctx.call(child);
    },
    says: ['step "reserve" (event 1)'],
  },
  "a step is renamed": {
    body: async (ctx) => {
      await ctx.step("reserve-stock", () => 1);
    },
    says: ['step "reserve" (event 1)', 'asks for step "reserve-stock" instead'],
  },
  "a step comes before the recorded ones": {
    body: async (ctx) => {
      await ctx.step("check", () => 0);
      await original(ctx);
    },
    says: ['step "reserve" (event 1)', 'asks for step "check" instead'],
  },
  "a step has become a child": {
    body: async (ctx) => {
      const reserve = workflow({ name: "reserve", version: 1 }, async () => 1);
      await ctx.call(reserve);
    },
    says: ['step "reserve" (event 1)', 'asks for child "reserve" instead'],
  },
  "a step has become a signal": {
    body: async (ctx) => ctx.waitForSignal("reserve"),
    says: ['step "reserve" (event 1)', 'asks for wait "signal:reserve" instead'],
  },
  "parallel steps have lost one": {
    body: async (ctx) => {
      await ctx.step("reserve", () => 1);
      await ctx.step("charge", () => 2);
      await ctx.sleep("1h");
      await ctx.waitForSignal("paid");
      await ctx.call(child);
    },
    says: ['step "mail" (event 3)'],
  },
  "a sleep is removed": {
    body: async (ctx) => {
      await ctx.step("reserve", () => 1);
      await Promise.all([ctx.step("charge", () => 2), ctx.step("mail", () => 3)]);
      await ctx.waitForSignal("paid");
      await ctx.call(child);
    },
    says: ['sleep "sleep" (event 4)'],
  },
  "a wait is for another signal": {
    body: async (ctx) => {
      await ctx.step("reserve", () => 1);
      await Promise.all([ctx.step("charge", () => 2), ctx.step("mail", () => 3)]);
      await ctx.sleep("1h");
      await ctx.waitForSignal("settled");
    },
    says: ['wait "signal:paid" (event 6)', 'asks for wait "signal:settled" instead'],
  },
  "the child that runs is not asked for": {
    body: async (ctx) => {
      await ctx.step("reserve", () => 1);
      await Promise.all([ctx.step("charge", () => 2), ctx.step("mail", () => 3)]);
      await ctx.sleep("1h");
      await ctx.waitForSignal("paid");
      await ctx.step("instead", () => 4);
    },
    says: ['child "child" (event 7)', 'asks for step "instead" instead'],
  },
  "the code returns early": {
    body: async (ctx) => ctx.step("reserve", () => 1),
    says: ['step "charge" (event 2)', "It has returned."],
  },
  "the code throws": {
    body: async (ctx) => {
      await ctx.step("reserve", () => 1);
      throw new TypeError("undefined is not a function");
    },
    says: ['step "charge" (event 2)', "It has thrown TypeError: undefined is not a function."],
  },
  "a name depends on the world outside": {
    body: async (ctx) => {
      await ctx.step(`reserve-${Math.random()}`, () => 1);
    },
    says: ['step "reserve" (event 1)', 'asks for step "reserve-0.'],
  },
};

async function makeHistory(engine: Engine): Promise<string> {
  const id = await engine.start(build(engine, [], original));
  await engine.idle();
  await engine.pass(3_600_000);
  await engine.tell(id, "signal:paid");
  await engine.idle();
  expect((await engine.facts(id)).at(-1)).toBe("child_started child");
  return id;
}

for (const [name, { body, says }] of Object.entries(mutations)) {
  test(`code that no longer fits is blocked with a readable difference, and nothing runs: ${name}`, async () => {
    const engine = createEngine();
    const id = await makeHistory(engine);
    const before = await engine.facts(id);
    const called: string[] = [];
    build(engine, called, body);

    await engine.tell(id, "pause");
    await engine.tell(id, "resume");
    await engine.pass(4_500);
    const run = await engine.store.getRun(id);
    expect([run?.status, run?.parkReason]).toEqual(["blocked", "blocked"]);
    expect(called).toEqual([]);
    const added = (await engine.history(id)).slice(before.length);
    expect(added.map(({ kind }) => kind)).toEqual(["paused", "resumed", "blocked"]);
    const { message } = decode(added.at(-1)!.data) as Difference;
    for (const part of says) expect(message).toContain(part);
  });
}

test("a blocked run is tried again with back-off, and goes on once the code fits", async () => {
  const engine = createEngine();
  const id = await makeHistory(engine);
  const called: string[] = [];
  build(engine, called, mutations["a step is renamed"]!.body);
  await engine.tell(id, "pause");
  await engine.tell(id, "resume");
  const blockedAt: number[] = [];
  await engine.pass(4 * 3_600_000);
  for (const event of await engine.history(id)) if (event.kind === "blocked") blockedAt.push(event.at);
  const pauses = blockedAt.slice(1).map((at, index) => Math.round((at - blockedAt[index]!) / 1_000));
  // Each pause is followed by the grace that code gets to come to rest. The last ones bring nothing new to say.
  expect(pauses).toEqual([7, 12, 22, 42, 82, 162]);

  build(engine, called, original);
  await engine.pass(700_000);
  expect((await engine.store.getRun(id))?.status).toBe("waiting");
  const [childRun] = await engine.list("child");
  await engine.tell(childRun!.id, "signal:never");
  await engine.idle();
  expect(await engine.output(id)).toBe("unreached");
  expect(called).toEqual([]);
});

test("a blocked run can be cancelled", async () => {
  const engine = createEngine();
  const id = await makeHistory(engine);
  build(engine, [], mutations["a step is renamed"]!.body);
  await engine.tell(id, "pause");
  await engine.tell(id, "resume");
  await engine.pass(4_500);
  await engine.tell(id, "cancel");
  await engine.pass(5_000);
  expect((await engine.store.getRun(id))?.status).toBe("cancelled");
});

test("steps beyond the point a run has reached may change freely", async () => {
  const engine = createEngine();
  const id = await engine.start(
    build(engine, [], async (ctx) => {
      await ctx.step("a", () => 1);
      await ctx.sleep("1h");
      return ctx.step("b", () => 2);
    }),
  );
  await engine.idle();
  build(engine, [], async (ctx) => {
    await ctx.step("a", () => 1);
    await ctx.sleep("2h");
    return ctx.step("c", () => 3);
  });
  await engine.end(id);
  expect(await engine.output(id)).toBe(3);
});

test("recorded steps may be asked for in another order", async () => {
  const engine = createEngine();
  const id = await engine.start(
    build(engine, [], async (ctx) => {
      const results = [await ctx.step("a", () => 1), await ctx.step("b", () => 2)];
      await ctx.sleep("1h");
      return results;
    }),
  );
  await engine.idle();
  const called: string[] = [];
  build(engine, called, async (ctx) => {
    const results = [await ctx.step("b", () => 2), await ctx.step("a", () => 1)];
    await ctx.sleep("1h");
    return results;
  });
  await engine.end(id);
  expect(await engine.output(id)).toEqual([2, 1]);
  expect(called).toEqual([]);
});
