import { describe, expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { eventually, factsOf, places, replay, test } from "./model-test.ts";

/** What DBOS, Temporal, Absurd and OpenWorkflow assert of durable timers. */
describe.each(places)("a timer in %s", (place) => {
  // Absurd, OpenWorkflow
  test("holds no worker, and its run says when it wakes", async ({ open, queue }) => {
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const pawl = open(place);
    await replay(pawl, queue, [sleeper]);
    const run = await pawl.start(sleeper);
    await eventually(() => run.status()).toBe("waiting");
    const { workerId, dueAt } = (await pawl.get(run.id))!;
    expect(workerId).toBeNull();
    expect(Math.abs(dueAt!.getTime() - Date.now() - 3_600_000)).toBeLessThan(60_000);
  });

  // DBOS, Absurd: a sleep that was interrupted does not begin anew
  test("keeps its time when another worker goes on with its run", async ({ open, queue }) => {
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => {
      await Promise.all([ctx.sleep("1h"), ctx.waitForSignal("told", { timeout: "1d" })]);
    });
    const pawl = open(place);
    const first = await replay(pawl, queue, [sleeper]);
    const run = await pawl.start(sleeper);
    await eventually(() => run.status()).toBe("waiting");
    const { dueAt } = (await pawl.get(run.id))!;
    await first.stop();
    await replay(pawl, queue, [sleeper]);
    await run.signal("told");
    await eventually(() => factsOf(run, "signal_received").then(({ length }) => length)).toBe(1);
    await eventually(() => run.status()).toBe("waiting");
    expect((await pawl.get(run.id))!.dueAt).toEqual(dueAt);
  });

  // DBOS, Temporal
  test("is never early by the clock of the code", async ({ open, queue }) => {
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => {
      const before = ctx.now();
      await ctx.sleep(50);
      return ctx.now() - before;
    });
    const pawl = open(place);
    await replay(pawl, queue, [sleeper]);
    expect(await (await pawl.start(sleeper)).result()).toBeGreaterThanOrEqual(50);
  });

  // Temporal, Absurd, OpenWorkflow
  test("of no time, or of a time that has passed, is over at once", async ({ open, queue }) => {
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => {
      await ctx.sleep(0);
      await ctx.sleepUntil(new Date(0));
      await ctx.sleepUntil(1);
      return "over";
    });
    const pawl = open(place);
    await replay(pawl, queue, [sleeper]);
    expect(await (await pawl.start(sleeper)).result()).toBe("over");
  });

  // OpenWorkflow
  test.for(["soon", -1, Number.NaN])(
    "of %s fails the run with a clear error",
    async (wrong, { open, queue }) => {
      const sleeper = workflow({ name: "sleeper", version: 1, queue, retry: { attempts: 1 } }, async (ctx) =>
        ctx.sleep(wrong as number),
      );
      const pawl = open(place);
      await replay(pawl, queue, [sleeper]);
      await expect((await pawl.start(sleeper)).result()).rejects.toMatchObject({
        code: "RUN_FAILED",
        cause: { code: "INVALID_OPTION" },
      });
    },
  );

  // OpenWorkflow
  test("follows another one of the same kind without taking its place", async ({ open, queue }) => {
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => {
      for (let turn = 0; turn < 5; turn++) await ctx.sleep(2);
      return "done";
    });
    const pawl = open(place);
    await replay(pawl, queue, [sleeper]);
    const run = await pawl.start(sleeper);
    expect(await run.result()).toBe("done");
    const fired = await factsOf(run, "timer_fired");
    expect(fired).toHaveLength(5);
    expect(new Set(fired).size).toBe(5);
  });
});
