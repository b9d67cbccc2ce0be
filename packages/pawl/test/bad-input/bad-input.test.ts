import { test } from "pawl-test-support";
import { afterEach, beforeEach, expect } from "vitest";
import { createPawl, PawlError, workflow, type Context, type ErrorCode, type Pawl } from "../../src/index.ts";
import { badCalls, idle, type BadCall, type Ground } from "./calls.ts";
import { junk } from "./junk.ts";

/** What a caller may be told about a bad call. `INTERNAL` and `DATABASE` would mean that nobody had looked at it. */
const fit: readonly ErrorCode[] = [
  "INVALID_OPTION",
  "INVALID_NAME",
  "INVALID_PAYLOAD",
  "RUN_NOT_FOUND",
  "RUN_ENDED",
  "RUN_CANCELLED",
  "KEY_CONFLICT",
  "UPDATE_TIMED_OUT",
];

const longestMs = 5_000;
const prototypes = [Object.prototype, Array.prototype, Function.prototype];
let shapes: readonly unknown[] = [];
const unhandled: unknown[] = [];
const note = (reason: unknown): void => void unhandled.push(reason);

beforeEach(() => {
  shapes = prototypes.map((prototype) => Reflect.ownKeys(prototype));
  unhandled.length = 0;
  process.on("unhandledRejection", note);
});

afterEach(async () => {
  await new Promise((resolve) => void setImmediate(resolve));
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
  expect(prototypes.map((prototype) => Reflect.ownKeys(prototype))).toEqual(shapes);
});

/** What became of it, in a word or two. */
async function outcomeOf(act: () => unknown): Promise<string> {
  let stop = (): void => {};
  const late = new Promise<string>((resolve) => {
    const timeout = setTimeout(resolve, longestMs, "never ended");
    stop = () => clearTimeout(timeout);
  });
  const ended = (async () => {
    await act();
    return "accepted";
  })().catch((error: unknown) => {
    if (!(error instanceof PawlError)) return `threw ${String(error)}`;
    return fit.includes(error.code) ? "refused" : `threw ${error.code}: ${error.message}`;
  });
  return Promise.race([ended, late]).finally(() => stop());
}

async function prepare(pawl: Pawl): Promise<Ground> {
  const ended = await pawl.start(idle, 1);
  await ended.cancel();
  return { pawl, ended, live: await pawl.start(idle, 2, { queue: "nobody" }) };
}

async function tryAll(pawl: Pawl, calls: readonly BadCall[]): Promise<ReadonlyMap<string, number>> {
  const ground = await prepare(pawl);
  const tally = new Map<string, number>();
  const wrong: string[] = [];
  for (const { label, call } of calls) {
    const outcome = await outcomeOf(() => call(ground));
    tally.set(outcome, (tally.get(outcome) ?? 0) + 1);
    if (outcome !== "accepted" && outcome !== "refused") wrong.push(`${label}: ${outcome}`);
  }
  expect(wrong).toEqual([]);
  return tally;
}

test("no junk given to any entry does harm: it is refused with a code, or is right there", async () => {
  await using pawl = createPawl({ memory: true });
  const tally = await tryAll(pawl, badCalls);
  expect(badCalls.length).toBeGreaterThan(2_000);
  expect(tally.get("refused")).toBeGreaterThan(badCalls.length * 0.7);
  const run = await pawl.start(idle, "still works");
  await pawl.worker({ workflows: [idle] }).start();
  expect(await run.result()).toBe("still works");
});

test("nor does it with Postgres", { timeout: 60_000 }, async ({ pool, schema }) => {
  await using pawl = createPawl({ pool, schema, autoMigrate: true });
  const sample = badCalls.filter(
    ({ label }, index) => !/createPawl|workflow\(|ref\(/.test(label) && index % 2 === 0,
  );
  expect(sample.length).toBeGreaterThan(500);
  await tryAll(pawl, sample);
  const run = await pawl.start(idle, "still works");
  await pawl.worker({ workflows: [idle] }).start();
  expect(await run.result()).toBe("still works");
});

test("a url that cannot be understood is refused, and one that is odd is not", async () => {
  for (const url of ["postgres://[", "postgres://h:99999999/x", "localhost", "mysql://localhost/x"])
    expect([url, await outcomeOf(() => createPawl({ url }))]).toEqual([url, "refused"]);
  const odd = [
    "postgres://",
    "postgres:///x",
    "postgresql://ada:a%zz b@my host/x",
    "postgres://ada@/x?host=/tmp",
  ];
  for (const url of odd)
    expect([url, await outcomeOf(() => createPawl({ url }).close())]).toEqual([url, "accepted"]);
});

/** What a step throws, or whoever awaits what it returned, is the user's own. */
const ofUser = /^step that returns|^step\(name, …\) with a function$/;

type Ask = (ctx: Context, value: unknown) => Promise<unknown>;

/** Every method of the context with one argument left open. */
const requests: Readonly<Record<string, Ask>> = {
  "step(…, f)": (ctx, value) => ctx.step(value as string, () => 1),
  "step(name, …)": (ctx, value) => ctx.step("step", value as () => unknown),
  "step that returns": (ctx, value) => ctx.step("result", () => value),
  "sleep(…)": (ctx, value) => ctx.sleep(value as number),
  "sleepUntil(…)": (ctx, value) => ctx.sleepUntil(value as number),
  "waitForSignal(…)": (ctx, value) => ctx.waitForSignal(value as string, { timeout: 0 }),
  "waitForSignal(name, …)": (ctx, value) =>
    ctx.waitForSignal("word", (value ?? null) as { readonly timeout: number }),
  "waitForSignal(name, { timeout: … })": (ctx, value) =>
    ctx.waitForSignal("word", { timeout: value as number }),
  "publish(…, 1)": (ctx, value) => ctx.publish(value as string, 1),
  "publish(key, …)": (ctx, value) => ctx.publish("key", value),
  "stream(…)": async (ctx, value) => ctx.stream(value as string),
  "stream(name).write(…)": (ctx, value) => ctx.stream("words").write(value),
  "onUpdate(…, f)": async (ctx, value) => ctx.onUpdate(value as string, () => 1),
  "onUpdate(name, …)": async (ctx, value) => ctx.onUpdate("word", value as () => unknown),
  "a step's stream(…)": (ctx, value) => ctx.step("step", ({ stream }) => void stream(value as string)),
  "a step's stream(name).write(…)": (ctx, value) =>
    ctx.step("step", ({ stream }) => stream("words").write(value)),
  "call(…)": (ctx, value) => ctx.call(value as typeof idle, 1),
  "call(workflow, …)": (ctx, value) => ctx.call(idle, value),
  "call(workflow, 1, …)": (ctx, value) => ctx.call(idle, 1, value as object),
  "call(workflow, 1, { priority: … })": (ctx, value) => ctx.call(idle, 1, { priority: value as number }),
  "call(workflow, 1, { queue: … })": (ctx, value) =>
    // A name that is right would wait for a worker there.
    typeof value === "string" ? Promise.resolve() : ctx.call(idle, 1, { queue: value as string }),
};

test(
  "no junk given to a context does harm: the request rejects, and the run goes on",
  { timeout: 60_000 },
  async () => {
    await using pawl = createPawl({ memory: true });
    const asks = Object.entries(requests).flatMap(([label, ask]) =>
      junk.map((value) => ({ label: `${label} with ${value.label}`, ask, value })),
    );
    const messy = workflow({ name: "messy", version: 1, retry: { attempts: 1 } }, async (ctx) => {
      const outcomes: Record<string, number> = {};
      const wrong: string[] = [];
      for (const { label, ask, value } of asks) {
        try {
          await ask(ctx, value.make());
          outcomes["accepted"] = (outcomes["accepted"] ?? 0) + 1;
        } catch (error) {
          const known = PawlError.is(error) && fit.includes(error.code);
          if (!known && !ofUser.test(label)) wrong.push(`${label}: ${String(error)}`);
          outcomes["refused"] = (outcomes["refused"] ?? 0) + 1;
        }
      }
      return { outcomes, wrong };
    });
    await pawl.worker({ workflows: [messy, idle] }).start();
    const run = await pawl.start(messy);
    const { outcomes, wrong } = await run.result();
    expect(wrong).toEqual([]);
    expect((outcomes["accepted"] ?? 0) + (outcomes["refused"] ?? 0)).toBe(asks.length);
  },
);
