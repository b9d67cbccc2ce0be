import { runInNewContext } from "node:vm";
import { test } from "pawl-test-support";
import { expect } from "vitest";
import { createPawl, workflow, type Context, type PawlError } from "../src/index.ts";

interface Thrown {
  readonly label: string;
  readonly make: () => unknown;
  /** What must be left of it. */
  readonly kept: object;
}

function refuse(): never {
  throw new Error("hands off");
}

function circle(): object {
  const made: Record<string, unknown> = {};
  made["self"] = made;
  return made;
}

function errorInCircle(): Error {
  const error = new Error("circle");
  error.cause = new Error("other half", { cause: error });
  return error;
}

function hostileProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const coded = () =>
  Object.assign(new RangeError("out of stock", { cause: Object.assign(new Error("why"), { code: 7 }) }), {
    code: "E_STOCK",
  });

const thrown: readonly Thrown[] = [
  { label: "undefined", make: () => undefined, kept: { message: "undefined was thrown" } },
  { label: "null", make: () => null, kept: { message: "null" } },
  { label: "a text", make: () => "plain", kept: { name: "NonError", message: "plain" } },
  { label: "a number", make: () => 7, kept: { message: "7 was thrown" } },
  { label: "a symbol", make: () => Symbol("s"), kept: { message: "Symbol(s) was thrown" } },
  { label: "a circle", make: circle, kept: { message: "A value of type object was thrown" } },
  { label: "10 MB", make: () => new Error("x".repeat(10_000_000)), kept: { name: "Error" } },
  { label: "a coded error", make: coded, kept: { name: "RangeError", code: "E_STOCK", cause: { code: 7 } } },
  {
    label: "a getter that throws",
    make: () => Object.defineProperty({}, "a", { enumerable: true, get: refuse }),
    kept: { name: "NonError" },
  },
  {
    label: "a message that throws",
    make: () => Object.defineProperty(new TypeError("x"), "message", { get: refuse }),
    kept: { name: "TypeError", message: "" },
  },
  {
    label: "an AggregateError",
    make: () => new AggregateError([new Error("one"), "two"], "both"),
    kept: { name: "AggregateError", message: "both", errors: [{ message: "one" }, { message: "two" }] },
  },
  {
    label: "an error of another realm",
    make: () => runInNewContext(`Object.assign(new TypeError("foreign"), { code: "E_FAR" })`) as unknown,
    kept: { name: "TypeError", message: "foreign", code: "E_FAR" },
  },
  { label: "a frozen error", make: () => Object.freeze(new Error("cold")), kept: { message: "cold" } },
  {
    label: "a proxy of an error",
    make: () => new Proxy(new Error("veiled"), {}),
    kept: { message: "veiled" },
  },
  { label: "a revoked proxy", make: hostileProxy, kept: { name: "NonError" } },
  { label: "causes in a circle", make: errorInCircle, kept: { cause: { message: "other half" } } },
  {
    label: "texts that cannot be stored",
    make: () => new Error("a\0b\ud800"),
    kept: { message: "a\uFFFDb\uFFFD" },
  },
];

/** The ways for a value to leave a workflow's code. */
const ways: Readonly<Record<string, (ctx: Context, make: () => unknown) => unknown>> = {
  "the code throws": (_ctx, make) => {
    throw make();
  },
  "the code rejects": (_ctx, make) => Promise.reject(make()),
  "a step throws": (ctx, make) =>
    ctx.step("throw", () => {
      throw make();
    }),
  "a step rejects": (ctx, make) => ctx.step("reject", () => Promise.reject(make())),
  "a step rejects twice": (ctx, make) =>
    ctx.step("twice", () => {
      const error = make();
      return new Promise((_resolve, reject) => {
        reject(error);
        reject(new Error("again"));
      });
    }),
  "one of several steps throws": (ctx, make) =>
    Promise.all([
      ctx.step("good", () => 1),
      ctx.step("bad", () => {
        throw make();
      }),
    ]),
};

test(
  "whatever is thrown, however: the run fails with it, and the worker lives",
  { timeout: 60_000 },
  async ({ pool, schema }) => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    const lines: string[] = [];
    const write = (message: string): void => void lines.push(message);
    const log = { debug: write, info: write, warn: write, error: write };
    await using pawl = createPawl({ pool, schema, autoMigrate: true, log });
    const cases = thrown.flatMap((value) =>
      Object.entries(ways).map(([way, act]) => ({ ...value, way, act })),
    );
    const tested = workflow(
      { name: "tested", version: 1, retry: { attempts: 1 } },
      async (ctx, index: number) => {
        const { act, make } = cases[index]!;
        await act(ctx, make);
      },
    );
    const fine = workflow({ name: "fine", version: 1 }, async (ctx) => ctx.step("works", () => "works"));
    await pawl.worker({ workflows: [tested, fine] }).start();

    for (const [index, { label, way, kept }] of cases.entries()) {
      const run = await pawl.start(tested, index);
      const error: PawlError = await run.result().then(
        () => expect.fail(`${way}: ${label} did not fail`),
        (reason: unknown) => reason as PawlError,
      );
      expect(error, `${way}: ${label}`).toMatchObject({ code: "RUN_FAILED", details: { runId: run.id } });
      const { cause } = error as { readonly cause: Error };
      expect(cause, `${way}: ${label}`).toBeInstanceOf(Error);
      expect(cause, `${way}: ${label}`).toMatchObject(kept);
      expect(cause.stack, `${way}: ${label}`).toBeTypeOf("string");
      expect(cause.message.length).toBeLessThan(10_000);
      expect((await pawl.get(run.id))?.status).toBe("failed");
    }
    expect(await (await pawl.start(fine)).result()).toBe("works");
    expect(lines.filter((line) => line === "The run has failed.")).toHaveLength(cases.length);
    expect(lines.filter((line) => line.includes("bug"))).toEqual([]);
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  },
);

test("the stack of what a step threw names the place in the step", async ({ pool, schema }) => {
  await using pawl = createPawl({ pool, schema, autoMigrate: true });
  function chargeTheCard(): never {
    throw new Error("declined");
  }
  const tested = workflow({ name: "tested", version: 1, retry: { attempts: 1 } }, async (ctx) =>
    ctx.step("charge", () => chargeTheCard()),
  );
  await pawl.worker({ workflows: [tested] }).start();
  const run = await pawl.start(tested);
  const error = await run.result().catch((reason: unknown) => reason);
  expect(((error as Error).cause as Error).stack).toContain("chargeTheCard");
});

test("a log that throws does not stop a run", async () => {
  await using pawl = createPawl({
    memory: true,
    log: { debug: refuse, info: refuse, warn: refuse, error: refuse },
  });
  const tested = workflow({ name: "tested", version: 1, retry: { attempts: 2, initial: 1 } }, async (ctx) => {
    ctx.log.info("on its way");
    throw new Error("mine");
  });
  await pawl.worker({ workflows: [tested] }).start();
  const run = await pawl.start(tested);
  await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { message: "mine" } });
});

test("a cancelled run says why, whether or not it had begun", async ({ pool, schema }) => {
  const nap = workflow({ name: "nap", version: 1 }, async (ctx) => ctx.sleep("1d"));
  for (const options of [{ memory: true }, { pool, schema, autoMigrate: true }]) {
    await using pawl = createPawl(options);
    const unbegun = await pawl.start(nap, undefined, { queue: "nobody" });
    const begun = await pawl.start(nap);
    await pawl.worker({ workflows: [nap] }).start();
    await expect.poll(() => begun.status()).toBe("waiting");
    for (const run of [unbegun, begun]) {
      await run.cancel('changed my "mind"');
      await expect(run.result()).rejects.toMatchObject({
        code: "RUN_CANCELLED",
        message: `Run ${run.id} was cancelled: changed my "mind"`,
        details: { runId: run.id, reason: 'changed my "mind"' },
      });
      expect((await pawl.get(run.id))?.error).toMatchObject({
        code: "RUN_CANCELLED",
        message: 'changed my "mind"',
      });
    }
    const silent = await pawl.start(nap, undefined, { queue: "nobody" });
    await silent.cancel();
    await expect(silent.result()).rejects.toMatchObject({
      message: `Run ${silent.id} was cancelled.`,
      details: { reason: null },
    });
    await expect(silent.cancel("x".repeat(1_001))).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(silent.cancel(7 as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  }
});

test("a start may bring its own retries", async () => {
  await using pawl = createPawl({ memory: true });
  const tries = new Map<string, number>();
  const tested = workflow({ name: "tested", version: 1, retry: { attempts: 1 } }, async (ctx) => {
    tries.set(ctx.run.id, ctx.run.attempt);
    throw new Error("no");
  });
  await pawl.worker({ workflows: [tested] }).start();
  const plain = await pawl.start(tested);
  const own = await pawl.start(tested, undefined, { retry: { delays: [1, 2], jitter: false } });
  await Promise.allSettled([plain.result(), own.result()]);
  expect([tries.get(plain.id), tries.get(own.id)]).toEqual([1, 3]);
  const retryIf = () => true;
  await expect(pawl.start(tested, undefined, { retry: { retryIf } as never })).rejects.toMatchObject({
    code: "INVALID_OPTION",
    details: { problems: [{ option: "retry.retryIf" }] },
  });
});
