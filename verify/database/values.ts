import { inspect, isDeepStrictEqual } from "node:util";
import { workflow } from "../../packages/pawl/src/index.ts";
import { within, type Scene } from "./scene.ts";

const values: readonly unknown[] = [
  null,
  undefined,
  "",
  '\ud83d\ude00, \\u0000 and "quotes"',
  0,
  -0,
  Number.NaN,
  Number.NEGATIVE_INFINITY,
  9_007_199_254_740_993n,
  1e308,
  new Date(-1),
  new Map<unknown, unknown>([[{ a: 1 }, new Set([1n, "1", 1])]]),
  new Uint8Array([0, 255, 128]),
  { constructor: "none", "": [], nested: { list: [undefined, [null]] } },
  "x".repeat(100_000),
];

/** Json knows few of these. */
const roundTrip: Scene = {
  name: "a value comes back as it went, by whichever way",
  invariant: "I15",
  async play(props, report) {
    const echo = workflow({ name: "echo", version: 1 }, async (ctx, input: unknown) => {
      const stepped = await ctx.step("same", () => input);
      const called = await ctx.call(same, stepped);
      const committed = await ctx.transaction("same-again", async () => called);
      return { committed, signalled: await ctx.waitForSignal("value") };
    });
    const same = workflow({ name: "same", version: 1 }, async (_ctx, input: unknown) => input);
    // Each execution reads everything from the database.
    await props.pawl.worker({ workflows: [echo, same], stickyRuns: 0 }).start();
    await Promise.all(
      values.map(async (value, index) => {
        const run = await props.pawl.start(echo, value);
        await run.signal("value", value);
        const output = await within(run.result(), 30_000);
        if (!isDeepStrictEqual(output, { committed: value, signalled: value }))
          report("I15", `value ${index} came back as another`, inspect(output));
      }),
    );
  },
};

export const roundTrips: readonly Scene[] = [roundTrip];
