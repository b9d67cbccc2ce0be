import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import { createPawl, workflow, type Pawl, type PawlOptions } from "../../src/index.ts";
import { differenceOf } from "../core/rich-value.ts";
import { idle } from "./entries.ts";
import { watchProcess } from "./watch-process.ts";

watchProcess();

const places: readonly (readonly [string, (place: PawlOptions) => PawlOptions])[] = [
  ["memory", () => ({ memory: true })],
  ["Postgres", (place) => ({ ...place, autoMigrate: true })],
];

/** Names that mean something elsewhere, and the shortest and longest there are. */
const names: readonly string[] = [
  "a",
  "x".repeat(255),
  "é".repeat(127),
  Array.from({ length: 85 }, (_, n) => String.fromCodePoint(0x4e00 + n * 7)).join(""),
  "👩‍👩‍👧‍👦",
  "\u202eright to left",
  "a\nb\r\t\u2028",
  `'"; drop table run; --`,
  "' or '1'='1",
  "%",
  "_",
  "\\",
  "$1",
  "{schema}",
  "../..",
  "%00",
  "=1+1",
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "a/b",
  "a#1",
  "signal:a",
  "0",
  " ",
];

/** Uses one name for everything that has one. */
function named(name: string) {
  return workflow({ name, version: 1, queue: name }, async (ctx) => {
    const isNew = ctx.patch(name);
    const inScope = await ctx.scope(name, async (inner) => {
      await inner.step(name, () => name);
      return inner.map(name, [1], (item, own) => own.step(name, () => item));
    });
    const first = await ctx.race({ [name]: (inner) => inner.step(name, () => 1) });
    const child = await ctx.call(idle, name, { tags: [name] });
    await ctx.publish(name, name);
    await ctx.stream(name).write(name);
    await ctx.stream(name).close();
    ctx.onUpdate(name, (payload) => payload);
    const signal = await ctx.waitForSignal(name);
    return { isNew, inScope, winner: first.winner, child, signal };
  });
}

async function expectNamed(pawl: Pawl, name: string): Promise<void> {
  const tested = named(name);
  const worker = pawl.worker({ workflows: [tested, idle], queues: [name, "default"], stickyRuns: 0 });
  await worker.start();
  const run = await pawl.start(tested, undefined, { key: name, tags: [name] });
  expect(await run.update(name, name)).toBe(name);
  await run.signal(name, name, { idempotencyKey: name });
  await run.signal(name, "again", { idempotencyKey: name });
  expect(await run.result()).toEqual({ isNew: true, inScope: [1], winner: name, child: name, signal: name });

  expect(await run.published(name)).toBe(name);
  expect(Object.entries(await run.published())).toEqual([[name, name]]);
  const items = [];
  for await (const { value } of run.stream(name)) items.push(value);
  expect(items).toEqual([name]);
  const mine = { workflow: name, queue: name, key: name, tags: [name] };
  expect((await pawl.list(mine)).runs.map(({ id }) => id)).toEqual([run.id]);
  for (const filter of [{ workflow: name }, { queue: name }, { key: name }])
    expect((await pawl.list(filter)).runs.map(({ id }) => id)).toEqual([run.id]);
  expect((await pawl.list({ tags: [name] })).runs).toHaveLength(2);
  expect((await pawl.list({ errorCode: name })).runs).toEqual([]);
  expect(await pawl.get(run.id)).toMatchObject({ ...mine, status: "completed" });
  expect((await pawl.patches(tested)).map(({ id }) => id)).toEqual([name]);
  expect((await pawl.start(tested, undefined, { key: name })).id).toBe(run.id);
  const fork = await run.fork({
    from: `signal:${name}`,
    key: `fork of ${run.id}`,
    tags: [name],
    queue: "nobody",
  });
  expect(await fork.status()).toBe("pending");
  await fork.cancel(name);
  await expect(fork.result()).rejects.toMatchObject({ code: "RUN_CANCELLED", details: { reason: name } });
  expect(await pawl.cancelAll({ workflow: name })).toBe(0);
  await worker.stop();
}

describe.each(places)("with %s", (_name, optionsIn) => {
  test(
    "a name may be any text of 255 bytes, wherever there is one",
    { timeout: 60_000 },
    async ({ pool, schema }) => {
      await using pawl = createPawl(optionsIn({ pool, schema }));
      for (const name of names) await expectNamed(pawl, name);
    },
  );

  test(
    "names in each other are as long as all of them together",
    { timeout: 60_000 },
    async ({ pool, schema }) => {
      await using pawl = createPawl(optionsIn({ pool, schema }));
      // Nothing that repeats: it would be stored in less.
      const parts = Array.from({ length: 40 }, (_, n) =>
        Array.from({ length: 80 }, (_, m) =>
          String.fromCodePoint(0x4e00 + ((n * 7919 + m * 104_729) % 20_000)),
        ).join(""),
      );
      const deep = workflow({ name: "deep", version: 1 }, async (ctx) => {
        let at = ctx;
        for (const part of parts)
          at = await at.scope(part, (inner) => ({ inner })).then(({ inner }) => inner);
        const step = await at.step("step", () => 1, { undo: () => {} });
        const [child, signal] = await Promise.all([at.call(idle, 2), at.waitForSignal("word")]);
        await at.publish("key", 3);
        await at.stream("stream").write(4);
        return [step, child, signal, await at.step("last", () => 5)];
      });
      await pawl.worker({ workflows: [deep, idle], stickyRuns: 0 }).start();
      const run = await pawl.start(deep);
      await run.signal("word", "signal");
      expect(await run.result()).toEqual([1, 2, "signal", 5]);
      expect((await run.history()).some(({ name }) => (name?.length ?? 0) > 3_000)).toBe(true);
    },
  );

  test("instants and lengths of time hold to the ends of the calendar", async ({ pool, schema }) => {
    await using pawl = createPawl(optionsIn({ pool, schema }));
    const last = new Date(8.64e15);
    const first = new Date(-8.64e15);
    const far = await pawl.start(idle, 1, { at: last });
    expect(await pawl.get(far.id)).toMatchObject({ startAt: last, deadlineAt: null, status: "pending" });
    const beyond = await pawl.start(idle, 1, { at: last, timeout: "365000d", expiresIn: "365000d" });
    expect(await pawl.get(beyond.id)).toMatchObject({ startAt: last, deadlineAt: last, expiresAt: last });
    const long = await pawl.start(idle, 1, { delay: "365000d" });
    expect((await pawl.get(long.id))!.startAt!.getFullYear()).toBeGreaterThan(3_000);
    await long.reschedule({ at: last });
    expect(await pawl.get(long.id)).toMatchObject({ startAt: last });
    const past = await pawl.start(idle, 1, { at: first });
    expect(await pawl.get(past.id)).toMatchObject({ startAt: new Date(0) });
    for (const filter of [{ createdAfter: first }, { createdBefore: last }])
      expect((await pawl.list(filter)).runs).toHaveLength(4);
    for (const filter of [{ createdAfter: last }, { createdBefore: first }])
      expect((await pawl.list(filter)).runs).toEqual([]);
    for (const delay of ["365001d", 1e17, Infinity, Number.NaN, -1, "1e400s"] as const)
      await expect(pawl.start(idle, 1, { delay: delay as never })).rejects.toMatchObject({
        code: "INVALID_OPTION",
      });
  });

  test("whoever sleeps for longer than a timer of the process can wait sleeps", async ({ pool, schema }) => {
    await using pawl = createPawl(optionsIn({ pool, schema }));
    const sleeper = workflow({ name: "sleeper", version: 1 }, async (ctx, ms: number) => ctx.sleep(ms));
    const until = workflow({ name: "until", version: 1 }, async (ctx, at: Date) => ctx.sleepUntil(at));
    await pawl.worker({ workflows: [sleeper, until] }).start();
    const lengths = [30 * 86_400_000, 2 ** 31, 2 ** 32 + 5, 1e12, 365_000 * 86_400_000];
    const runs = [
      ...(await Promise.all(lengths.map((ms) => pawl.start(sleeper, ms)))),
      await pawl.start(until, new Date(8.64e15)),
    ];
    for (const run of runs) {
      await expect.poll(() => run.status()).toBe("waiting");
      const { dueAt } = (await pawl.get(run.id))!;
      expect(dueAt!.getTime()).toBeGreaterThan(Date.now() + 24 * 86_400_000);
    }
    await new Promise((resolve) => void setTimeout(resolve, 50));
    for (const run of runs) expect(await run.status()).toBe("waiting");
  });

  test("what is thrown cannot make a record that is too large, or too odd, to be stored", async ({
    pool,
    schema,
  }) => {
    await using pawl = createPawl(optionsIn({ pool, schema }));
    const thrown: readonly (() => unknown)[] = [
      () => Object.assign(new Error("steps"), { notUndone: ["a\0b", "\ud800", "x".repeat(5_000_000)] }),
      () => Object.assign(new Error("steps"), { notUndone: Array.from({ length: 500_000 }, () => "step") }),
      () => Object.assign(new Error("steps"), { notUndone: Object.assign([], { length: 2 ** 32 - 1 }) }),
      () => Object.assign(new Error("code"), { code: "\ud800".repeat(100_000) }),
      () => Object.assign(new Error("code"), { code: 1e308, name: "\0" }),
      () => new AggregateError(Object.assign([], { length: 100_000 }), "none"),
      () => Object.assign(new Error("marks"), { retryAfterMs: 1e300, retryAt: 2 ** 53 }),
      () => Object.assign(new Error("marks"), { retryAt: Number.MAX_SAFE_INTEGER }),
      () => Object.assign(new Error("stack"), { stack: "\0\ud800".repeat(1_000_000) }),
    ];
    const thrower = workflow(
      { name: "thrower", version: 1, retry: { attempts: 1 } },
      async (ctx, index: number) => {
        await ctx
          .step("throw", () => {
            throw thrown[index]!();
          })
          .catch(() => {});
        throw thrown[index]!();
      },
    );
    await pawl.worker({ workflows: [thrower] }).start();
    for (const index of thrown.keys()) {
      const run = await pawl.start(thrower, index);
      await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
      const written = JSON.stringify(await run.history());
      expect(written.length).toBeLessThan(1_000_000);
      expect(written).not.toMatch(/\\u0000|\\ud8/);
    }
  });

  test("payloads are measured to the byte, and their depth to the level", async ({ pool, schema }) => {
    await using pawl = createPawl({ ...optionsIn({ pool, schema }), maxPayloadBytes: 1_000 });
    const nest = (levels: number): unknown =>
      JSON.parse("[".repeat(levels) + "1" + "]".repeat(levels)) as unknown;
    const right: readonly unknown[] = [
      "x".repeat(997),
      "x".repeat(998),
      "é".repeat(499),
      nest(99),
      nest(100),
    ];
    const wrong: readonly unknown[] = ["x".repeat(999), `${"é".repeat(499)}x`, nest(101), { a: nest(100) }];
    for (const value of right) {
      const run = await pawl.start(idle, value);
      expect(differenceOf((await pawl.get(run.id))!.input, value)).toBe(null);
    }
    for (const value of wrong)
      await expect(pawl.start(idle, value)).rejects.toMatchObject({ code: "INVALID_PAYLOAD" });
    expect((await pawl.list()).runs).toHaveLength(right.length);
  });

  test("what is nearly a workflow is refused", async ({ pool, schema }) => {
    await using pawl = createPawl(optionsIn({ pool, schema }));
    const nearly: readonly object[] = [
      { version: 2 ** 31 },
      { version: 0 },
      { version: -1 },
      { version: 1e300 },
      { timeoutMs: -1 },
      { timeoutMs: 1e300 },
      { queue: "a\0" },
      { name: "" },
      { inputSchema: {} },
      { signalSchemas: 5 },
      { publishedSchemas: "none" },
      { updateSchemas: () => {} },
    ];
    const asks = workflow({ name: "asks", version: 1 }, async (ctx, index: number) => {
      const other = { ...idle, ...nearly[index] } as typeof idle;
      const codes = [ctx.call(other, 1), ctx.start(other, 1), ctx.continueAs(1, { ...other, name: "asks" })];
      return Promise.all(
        codes.map((code) =>
          code.then(
            () => "none",
            (error: unknown) => (error as { code: string }).code,
          ),
        ),
      );
    });
    await pawl.worker({ workflows: [asks] }).start();
    for (const [index, part] of nearly.entries()) {
      const other = { ...idle, ...part };
      const invalid = { code: "INVALID_OPTION" };
      await expect(pawl.start(other, 1)).rejects.toMatchObject(invalid);
      await expect(pawl.startMany(other, [{ input: 1 }])).rejects.toMatchObject(invalid);
      await expect(pawl.signalOrStart(other, { key: "k", signal: "s" })).rejects.toMatchObject(invalid);
      expect(() => pawl.handle("id", other)).toThrow(expect.objectContaining(invalid));
      expect(() => pawl.worker({ workflows: [other] })).toThrow(expect.objectContaining(invalid));
      const [called, started, continued] = await (await pawl.start(asks, index)).result();
      expect([part, called, started]).toEqual([part, "INVALID_OPTION", "INVALID_OPTION"]);
      if (!("name" in part)) expect([part, continued]).toEqual([part, "INVALID_OPTION"]);
    }
  });
});
