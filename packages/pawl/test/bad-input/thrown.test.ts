import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import { createPawl, PawlError, workflow, type Context, type PawlOptions } from "../../src/index.ts";
import { idle } from "./entries.ts";
import { errorProperties, junk } from "./junk.ts";
import { watchProcess } from "./watch-process.ts";

watchProcess();

/** Each piece of junk by itself, and as each property of an error. */
const thrown = junk.flatMap(({ label, make }) => [
  { label, make },
  ...errorProperties.map((property) => ({
    label: `an error whose ${property} is ${label}`,
    make: () => {
      const error = property === "errors" ? new AggregateError([], "some") : new Error("one");
      return Object.defineProperty(error, property, { value: make(), enumerable: true });
    },
  })),
]);

type Throw = () => never;

/** Where a user's code may throw. */
const places: Readonly<Record<string, (ctx: Context, raise: Throw) => unknown>> = {
  "the code": (_ctx, raise) => raise(),
  "a step": (ctx, raise) => ctx.step("throw", raise),
  "a step that was caught, then the code": async (ctx, raise) => {
    await ctx.step("throw", raise).catch(() => {});
    raise();
  },
  "a transaction": (ctx, raise) => ctx.transaction("throw", raise),
  "a branch of a race": (ctx, raise) => ctx.race({ raise, late: (inner) => inner.sleep("1d") }),
  "an undo": async (ctx, raise) => {
    await ctx.step("do", () => 1, { undo: raise, undoRetry: { attempts: 1 } });
    throw new Error("undo it");
  },
  "a retryIf": (ctx, raise) =>
    ctx.step(
      "throw",
      () => {
        throw new Error("again?");
      },
      { retry: { attempts: 2, initial: 0, retryIf: raise } },
    ),
};

const stores: readonly (readonly [string, (place: PawlOptions) => PawlOptions])[] = [
  ["memory", () => ({ memory: true })],
  ["Postgres", (place) => ({ ...place, autoMigrate: true })],
];

describe.each(stores)("with %s", (name, optionsIn) => {
  test(
    "whatever is thrown, wherever: the run fails with it, and is told",
    { timeout: 180_000 },
    async ({ pool, schema }) => {
      const mistakes: string[] = [];
      const note = (message: string): void => {
        if (message.includes("bug")) mistakes.push(message);
      };
      const log = { debug: () => {}, info: () => {}, warn: note, error: note };
      await using pawl = createPawl({ ...optionsIn({ pool, schema }), log });
      const ways = Object.entries(places).filter(([way]) => name !== "memory" || way !== "a transaction");
      const cases = ways.flatMap(([way, act]) => thrown.map((each) => ({ ...each, way, act })));
      // A sample, in which every value and every place comes up.
      const sample = [...cases.keys()].filter((index) => index % (name === "memory" ? 5 : 7) === 0);
      const tested = workflow(
        { name: "tested", version: 1, retry: { attempts: 1 } },
        async (ctx, index: number) => {
          const { act, make } = cases[index]!;
          await act(ctx, () => {
            throw make();
          });
        },
      );
      await pawl.worker({ workflows: [tested, idle] }).start();
      const runs = await pawl.startMany(
        tested,
        sample.map((input) => ({ input })),
      );
      const wrong: string[] = [];
      await Promise.all(
        runs.map(async (run, index) => {
          const { way, label } = cases[sample[index]!]!;
          const error: unknown = await run
            .result({ signal: AbortSignal.timeout(120_000) })
            .catch((reason: unknown) => reason);
          const odd: string[] = [];
          const history = JSON.stringify(await run.history(), (_, value: unknown) => {
            if (typeof value === "string" && /\0|\p{Surrogate}/u.test(value)) odd.push(value);
            return value;
          });
          const isTold = PawlError.is(error, "RUN_FAILED") && error.cause instanceof Error;
          if (!isTold || history.length > 400_000 || odd.length > 0)
            wrong.push(`${way} threw ${label}: ${String(error)}, ${history.length} characters`);
        }),
      );
      expect(wrong).toEqual([]);
      expect(mistakes).toEqual([]);
      expect(await (await pawl.start(idle, "still works")).result()).toBe("still works");
    },
  );
});
