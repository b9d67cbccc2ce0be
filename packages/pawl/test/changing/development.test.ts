import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { createPawl, workflow, type Log, type Workflow } from "../../src/index.ts";

interface Warning {
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Runs a workflow in development, twice, and answers what it was warned of. */
async function warningsOf(code: Workflow<undefined>, development = true): Promise<readonly Warning[]> {
  const warnings: Warning[] = [];
  const quiet = (): void => void [Date.now(), new Date(), Math.random()];
  const log: Log = {
    debug: quiet,
    info: quiet,
    error: quiet,
    warn: (message, fields = {}) => {
      quiet();
      warnings.push({ message, fields });
    },
  };
  await using pawl = createPawl({ memory: true, development, log });
  await pawl.worker({ workflows: [code] }).start();
  for (const _ of [1, 2]) await (await pawl.start(code)).result();
  return warnings;
}

const options = { name: "careless", version: 3 } as const;

test.for([
  ["Date.now()", "ctx.now()", () => Date.now()],
  ["new Date()", "new Date(ctx.now())", () => new Date()],
  ["Math.random()", "ctx.random()", () => Math.random()],
  ["crypto.randomUUID()", "ctx.uuid()", () => crypto.randomUUID()],
  ["crypto.randomUUID()", "ctx.uuid()", () => randomUUID()],
  ["setTimeout", "ctx.sleep()", () => setTimeout(() => {}, 0)],
  ["setInterval", "a loop with ctx.sleep()", () => clearInterval(setInterval(() => {}, 1_000))],
] as const)(
  "%s in a workflow is warned of once, with its place and what to use instead",
  async ([what, instead, use]) => {
    const code = workflow(options, async (ctx) => {
      await ctx.step("first", () => 1);
      use();
    });
    const warnings = await warningsOf(code);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({
      message: expect.stringMatching(/careless@3, .*development\.test\.ts:\d+/),
      fields: { workflow: "careless", version: 3, at: expect.stringContaining("development.test.ts") },
    });
    expect(warnings[0]!.message).toContain(`${what} in a workflow`);
    expect(warnings[0]!.message).toContain(instead);
  },
);

test("a step's function may use what it likes, and so may the log", async () => {
  const code = workflow(options, async (ctx) => {
    ctx.log.info("begun");
    ctx.log.error("no");
    await ctx.step("free", async () => {
      void [Date.now(), new Date(), Math.random(), randomUUID()];
      await pause(1);
      return Date.now();
    });
    return [ctx.now(), ctx.random(), ctx.uuid(), new Date(ctx.now()), new Date(0)].length;
  });
  expect(await warningsOf(code)).toEqual([]);
});

test("an await of something other than the context is warned of", async () => {
  const code = workflow(options, async (ctx) => {
    await ctx.step("first", () => 1);
    await pause(20);
    return ctx.step("second", () => 2);
  });
  const warnings = await warningsOf(code);
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringContaining("awaits something other than its context"),
  ]);
  expect(warnings[0]!.message).toContain('after step "first"');
});

test("a request inside a step is warned of", async () => {
  const code = workflow(options, async (ctx) => {
    await ctx.step("outer", () => {
      void ctx.step("inner", () => 1);
    });
    await ctx.sleep(1);
  });
  const warnings = await warningsOf(code);
  expect(warnings[0]!.message).toContain('The step "inner" was asked for inside the step "outer"');
});

test("without it nothing is wrapped, and after close nothing is any more", async () => {
  const look = () => ({
    date: Date,
    dateNow: Date.now,
    random: Math.random,
    timeout: setTimeout,
    uuid: Reflect.get(crypto, "randomUUID") as unknown,
  });
  const now = look();
  const seen: unknown[] = [];
  const code = workflow(options, async () => {
    seen.push(look());
  });
  expect(await warningsOf(code, false)).toEqual([]);
  for (const each of seen) expect(each).toEqual(now);
  seen.length = 0;
  await warningsOf(code);
  expect((seen[0] as typeof now).date).not.toBe(now.date);
  expect(look()).toEqual(now);
  expect(Object.hasOwn(crypto, "randomUUID")).toBe(false);
});

test("what is wrapped does what it did", async () => {
  await using pawl = createPawl({ memory: true, development: true, log: silent });
  pawl.worker({ workflows: [workflow(options, async () => 1)] });
  expect(new Date()).toBeInstanceOf(Date);
  expect(new Date(5).getTime()).toBe(5);
  expect(typeof Date()).toBe("string");
  expect(Date.UTC(2026, 0)).toBe(1_767_225_600_000);
  expect(class extends Date {}.prototype instanceof Date).toBe(true);
  expect(randomUUID()).toMatch(/^[0-9a-f-]{36}$/);
  expect(crypto.randomUUID()).toMatch(/^[0-9a-f-]{36}$/);
  await new Promise((resolve) => void setTimeout(resolve, 1));
});

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

test("two of them on one process do not undo each other", async () => {
  const real = Date;
  const make = () => {
    const pawl = createPawl({ memory: true, development: true, log: silent });
    pawl.worker({ workflows: [workflow(options, async () => 1)] });
    return pawl;
  };
  const [first, second] = [make(), make()];
  await first.close();
  expect(Date.now()).toBeGreaterThan(0);
  await second.close();
  expect(new Date().getTime()).toBeGreaterThan(real.UTC(2026, 0));
});
