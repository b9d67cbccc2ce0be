import { expect, test } from "vitest";
import { z } from "zod";
import type { PawlError } from "../../src/core/error.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { createEngine } from "./engine.ts";
import { createGate } from "./gate.ts";

const options = { version: 1, crashLimit: 1_000 } as const;

test("a signal that nobody awaits is kept until somebody does, and wakes nobody before", async () => {
  const engine = createEngine();
  const late = workflow({ ...options, name: "late" }, async (ctx) => {
    await ctx.sleep("1h");
    return ctx.waitForSignal("early");
  });
  const id = await engine.start(late);
  await engine.idle();
  await engine.tell(id, "signal:early", "kept");
  await engine.idle();
  expect(engine.outcomes).toEqual(["parked"]);
  await engine.pass(3_600_000);
  expect(await engine.output(id)).toBe("kept");
});

test("each signal is taken once, the oldest by the earliest wait", async () => {
  const engine = createEngine();
  const three = workflow({ ...options, name: "three" }, async (ctx) =>
    Promise.all([ctx.waitForSignal("n"), ctx.waitForSignal("n"), ctx.waitForSignal("n", { timeout: "1h" })]),
  );
  const id = await engine.start(three);
  await engine.idle();
  await engine.tell(id, "signal:n", 1);
  await engine.tell(id, "signal:n", 2);
  await engine.end(id);
  expect(await engine.output(id)).toEqual([1, 2, null]);
});

test("a wait whose signal came drops its timer, and one that timed out leaves the signal to the next", async () => {
  const engine = createEngine();
  const waits = workflow({ ...options, name: "waits" }, async (ctx) => {
    const first = await ctx.waitForSignal("n", { timeout: "1h" });
    const second = await ctx.waitForSignal("n", { timeout: "1h" });
    const third = await ctx.waitForSignal("n", { timeout: "1h" });
    return [first, second, third];
  });
  const id = await engine.start(waits);
  await engine.pass(60_000);
  await engine.tell(id, "signal:n", 1);
  await engine.pass(3_600_000);
  await engine.tell(id, "signal:n", 3);
  await engine.idle();
  expect(await engine.output(id)).toEqual([1, null, 3]);
  expect(await engine.facts(id)).toEqual([
    "timer_set signal:n",
    "signal_received signal:n",
    "timer_set signal:n#2",
    "timer_fired signal:n#2",
    "timer_set signal:n#3",
    "signal_received signal:n#3",
    "completed",
  ]);
});

test("a signal that came before the timeout was over wins, however late the run wakes", async () => {
  const engine = createEngine();
  const gate = createGate();
  const busy = workflow({ ...options, name: "busy" }, async (ctx) =>
    Promise.all([
      ctx.step("long", () => gate.opened.then(() => "done")),
      ctx.waitForSignal("n", { timeout: 0 }),
    ]),
  );
  const id = await engine.start(busy);
  await engine.tell(id, "signal:n", "there");
  await engine.idle();
  gate.open();
  await engine.end(id);
  expect(await engine.output(id)).toEqual(["done", "there"]);
});

test("a timer and a signal are answered while a step runs", async () => {
  const engine = createEngine();
  const gate = createGate();
  const seen: string[] = [];
  const busy = workflow({ ...options, name: "busy" }, async (ctx) => {
    const note = (what: string) => () => void seen.push(`${what} ${ctx.now() - startedAt}`);
    await Promise.all([
      ctx.step("long", () => gate.opened).then(note("step")),
      ctx.sleep("1m").then(note("sleep")),
      ctx.waitForSignal("go").then(note("signal")),
      ctx.waitForSignal("never", { timeout: "90s" }).then(note("timeout")),
    ]);
  });
  const startedAt = engine.clock.now();
  const id = await engine.start(busy);
  await engine.pass(30_000);
  await engine.tell(id, "signal:go");
  await engine.pass(29_999);
  expect(seen).toEqual(["signal 30000"]);
  await engine.pass(60_000);
  expect(seen).toEqual(["signal 30000", "sleep 60000", "timeout 90000"]);
  gate.open();
  await engine.end(id);
  expect(seen.at(-1)).toBe("step 119999");
  expect(engine.outcomes).toEqual(["ended"]);
});

test("a timer fires by the store's clock, even if this process's clock goes wrong", async () => {
  for (const skewMs of [-7_200_000, 7_200_000]) {
    const gate = createGate();
    const fired: number[] = [];
    const skewed = { now: (): number => engine.clock.now() + skewMs };
    const engine = createEngine({ deps: { clock: skewed } });
    const busy = workflow({ ...options, name: "busy" }, async (ctx) => {
      await Promise.all([
        ctx.step("long", () => gate.opened),
        ctx.sleep("1h").then(() => fired.push(engine.clock.now())),
      ]);
    });
    const startedAt = engine.clock.now();
    await engine.start(busy);
    await engine.pass(3_599_999);
    expect(fired).toEqual([]);
    await engine.pass(1_000);
    expect(fired).toEqual([startedAt + 3_600_000]);
    gate.open();
  }
});

test("a signal is parsed once, by its schema, and one that does not fit is dropped visibly", async () => {
  const engine = createEngine();
  const signals = { paid: z.object({ cents: z.string().transform(Number) }) };
  const paid = workflow({ ...options, name: "paid", signals }, async (ctx) => {
    const first = await ctx.waitForSignal("paid");
    await ctx.sleep("1h");
    return first.cents + 1;
  });
  const id = await engine.start(paid);
  await engine.idle();
  await engine.tell(id, "signal:paid", { euros: 1 });
  await engine.idle();
  await engine.tell(id, "signal:paid", { cents: "41" });
  await engine.end(id);
  expect(await engine.output(id)).toBe(42);
  expect((await engine.facts(id)).slice(0, 2)).toEqual(["signal_received", "signal_received signal:paid"]);
  expect(engine.log.map(({ level, message }) => [level, message])).toEqual([
    ["warn", expect.stringContaining('A signal "paid" was dropped')],
  ]);
});

test("a signal the workflow does not declare cannot be awaited", async () => {
  const engine = createEngine();
  const undeclared = workflow({ ...options, name: "undeclared", signals: { a: z.string() } }, async (ctx) => {
    // @ts-expect-error: there is no signal b
    await ctx.waitForSignal("b");
  });
  const id = await engine.start(undeclared);
  const run = await engine.end(id);
  expect(JSON.parse(run.error!.json)).toMatchObject({ code: "INVALID_OPTION" });
});

test("sleeping until an instant in the past, or for no time, is over at once", async () => {
  const engine = createEngine();
  const none = workflow({ ...options, name: "none" }, async (ctx) => {
    await ctx.sleep(0);
    await ctx.sleepUntil(0);
    await ctx.sleepUntil(new Date(-1));
    return "awake";
  });
  const id = await engine.start(none);
  await engine.idle();
  expect(await engine.output(id)).toBe("awake");
});

test("mistakes in a request reject it, and the run goes on", async () => {
  const engine = createEngine();
  const mistakes = workflow({ ...options, name: "mistakes" }, async (ctx) => {
    const requests: readonly (() => Promise<unknown>)[] = [
      () => ctx.step("", () => 1),
      () => ctx.step("x".repeat(256), () => 1),
      () => ctx.step("none", undefined as never),
      () => ctx.sleep("1 fortnight" as never),
      () => ctx.sleep("9999999w"),
      () => ctx.sleepUntil(new Date(Number.NaN)),
      () => ctx.waitForSignal("a", { timeuot: "1s" } as never),
    ];
    const codes: string[] = [];
    for (const request of requests)
      await request().catch((error: unknown) => codes.push((error as PawlError).code));
    return codes;
  });
  const id = await engine.start(mistakes);
  await engine.idle();
  expect(await engine.output(id)).toEqual([
    "INVALID_NAME",
    "INVALID_NAME",
    "INVALID_OPTION",
    "INVALID_OPTION",
    "INVALID_OPTION",
    "INVALID_OPTION",
    "INVALID_OPTION",
  ]);
});

test("many children are started in a write or two, and their ends taken in few", async () => {
  const engine = createEngine();
  const child = workflow({ ...options, name: "child" }, async (_ctx, n: number) => n);
  const parent = workflow({ ...options, name: "parent" }, async (ctx) => {
    const numbers = await Promise.all(Array.from({ length: 1_500 }, (_, n) => ctx.call(child, n)));
    return numbers.reduce((sum, n) => sum + n, 0);
  });
  engine.register(child);
  const id = await engine.start(parent);
  await engine.end(id);
  expect(await engine.output(id)).toBe(1_124_250);
  const ofParent = engine.calls.filter((call) => call === "park" || call === "record");
  expect(ofParent.length).toBeLessThan(50);
});

test("how long a child may take is counted by the store's clock, whatever the worker's shows", async () => {
  for (const skewMs of [-7_200_000, 7_200_000]) {
    const skewed = { now: (): number => engine.clock.now() + skewMs };
    const engine = createEngine({ deps: { clock: skewed } });
    const child = workflow({ name: "child", version: 1 }, (ctx) => ctx.waitForSignal("never"));
    engine.register(child);
    const parent = workflow({ name: "parent", version: 1 }, (ctx) =>
      ctx
        .call(child, undefined, { timeout: "10s" })
        .catch((error: unknown) => (error as { code: string }).code),
    );
    const id = await engine.start(parent);
    await engine.pass(30_000);
    expect(await engine.output(id)).toBe("RUN_TIMED_OUT");
  }
});
