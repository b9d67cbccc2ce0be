import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { workflow, type Context } from "../../src/index.ts";
import { createGate, eventually, factsOf, places, replay, test, upTo } from "./model-test.ts";

const once = { attempts: 1 } as const;

/** Takes this long, once. */
const slow = (ctx: Context, name: string, ms: number): Promise<string> =>
  ctx.step(name, () => pause(ms).then(() => name));

/** Promises over requests, as DBOS, Temporal and OpenWorkflow test them. */
describe.each(places)("requests at once in %s", (place) => {
  // DBOS, Temporal, OpenWorkflow
  test("give their results in the order asked, whichever is first", async ({ open, queue }) => {
    const all = workflow({ name: "all", version: 1, queue }, async (ctx) => {
      const results = await Promise.all([slow(ctx, "c", 60), slow(ctx, "a", 1), slow(ctx, "b", 30)]);
      await ctx.sleep(1);
      return results;
    });
    const pawl = open(place);
    await replay(pawl, queue, [all]);
    const run = await pawl.start(all);
    expect(await run.result()).toEqual(["c", "a", "b"]);
    expect(new Set(await factsOf(run, "step_completed"))).toEqual(new Set(["a", "b", "c"]));
  });

  // DBOS: parallel chains keep their identity over recovery
  test("in chains of their own keep their results over replays", async ({ open, queue }) => {
    const calls = new Map<string, number>();
    const chains = workflow({ name: "chains", version: 1, queue, retry: once }, async (ctx) =>
      Promise.all(
        upTo(4).map((chain) =>
          ctx.scope(`chain ${chain}`, async (inner) => {
            const results: string[] = [];
            for (const link of upTo(3)) {
              results.push(
                await inner.step("link", async () => {
                  const name = `${chain}.${link}`;
                  calls.set(name, (calls.get(name) ?? 0) + 1);
                  await pause((4 - chain) * 3);
                  return name;
                }),
              );
              await inner.sleep(5 * chain);
            }
            return results.join(" ");
          }),
        ),
      ),
    );
    const pawl = open(place);
    await replay(pawl, queue, [chains]);
    expect(await (await pawl.start(chains)).result()).toEqual(
      upTo(4).map((chain) => `${chain}.0 ${chain}.1 ${chain}.2`),
    );
    expect([...calls.values()]).toEqual(upTo(12).map(() => 1));
  });

  // DBOS, Temporal
  test("that all settle tell of each how it ended", async ({ open, queue }) => {
    const settled = workflow({ name: "settled", version: 1, queue, retry: once }, async (ctx) => {
      const results = await Promise.allSettled([
        slow(ctx, "good", 20),
        ctx.step("bad", () => {
          throw new Error("bad");
        }),
        ctx.sleep(5),
      ]);
      await ctx.step("after", () => {});
      await ctx.sleep(1);
      return results.map((result) =>
        result.status === "fulfilled" ? result.value : (result.reason as Error).message,
      );
    });
    const pawl = open(place);
    await replay(pawl, queue, [settled]);
    expect(await (await pawl.start(settled)).result()).toEqual(["good", "bad", undefined]);
  });

  // DBOS, Temporal: race
  test("that race have one winner for ever, also when replayed after the loser is done", async ({
    open,
    queue,
  }) => {
    const race = workflow({ name: "race", version: 1, queue }, async (ctx) => {
      const slower = slow(ctx, "slower", 60);
      const winner = await Promise.race([slower, slow(ctx, "faster", 5)]);
      await ctx.sleep(100);
      const later = await Promise.race([slower, ctx.step("now", () => "now")]);
      await slower;
      await ctx.sleep(1);
      return [winner, later];
    });
    const pawl = open(place);
    await replay(pawl, queue, [race]);
    const run = await pawl.start(race);
    expect(await run.result()).toEqual(["faster", "slower"]);
  });

  // Temporal, DBOS
  test("of which any may succeed answer with the first that does", async ({ open, queue }) => {
    const any = workflow({ name: "any", version: 1, queue, retry: once }, async (ctx) => {
      const first = await Promise.any([
        ctx.step("bad", () => {
          throw new Error("bad");
        }),
        slow(ctx, "good", 10),
      ]);
      const none = await Promise.any([
        ctx.step("worse", () => {
          throw new Error("worse");
        }),
        ctx.step("worst", () => {
          throw new Error("worst");
        }),
      ]).catch((error: unknown) => ((error as AggregateError).errors[0] as Error).message);
      await ctx.sleep(1);
      return [first, none];
    });
    const pawl = open(place);
    await replay(pawl, queue, [any]);
    expect(await (await pawl.start(any)).result()).toEqual(["good", "worse"]);
  });

  // Temporal: an activity raced with a timer, both ways
  test("may be a step and a timer: the loser is withdrawn", async ({ open, queue }) => {
    const aborted: string[] = [];
    const work = (ctx: Context, ms: number) =>
      ctx.step("work", async ({ signal }) => {
        signal.addEventListener("abort", () => aborted.push("work"));
        await pause(ms, undefined, { signal }).catch(() => {});
        return "worked";
      });
    const raced = workflow({ name: "raced", version: 1, queue }, async (ctx, ms: number) => {
      const first = await ctx.race({ work: work(ctx, ms), late: ctx.sleep(200) });
      await ctx.sleep(1);
      return first.winner;
    });
    const pawl = open(place);
    await replay(pawl, queue, [raced]);
    const runs = [await pawl.start(raced, 5), await pawl.start(raced, 60_000)];
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(["work", "late"]);
    expect(aborted).toEqual(["work"]);
  });

  // Temporal: a timer that lost keeps nobody waiting
  test("end the run although a timer of years lost the race", async ({ open, queue }) => {
    const raced = workflow({ name: "raced", version: 1, queue }, async (ctx) => {
      const { winner } = await ctx.race({ soon: ctx.sleep(5), late: ctx.sleep("3650d") });
      return winner;
    });
    const pawl = open(place);
    await replay(pawl, queue, [raced]);
    expect(await (await pawl.start(raced)).result()).toBe("soon");
  });

  // Temporal: promises resolved elsewhere, nested ones, and long chains of then
  test("may be joined by promises of one's own", async ({ open, queue }) => {
    const joined = workflow({ name: "joined", version: 1, queue }, async (ctx) => {
      const seen: string[] = [];
      const gate = createGate();
      const waiting = gate.opened.then(async () => {
        seen.push("opened");
        return new Promise<Promise<string>>((resolve) => resolve(slow(ctx, "inner", 5)));
      });
      void ctx.sleep(10).then(() => gate.open());
      seen.push(await slow(ctx, "outer", 1));
      seen.push(await waiting.then((value) => Promise.resolve(value)));
      await ctx.sleep(1);
      return seen;
    });
    const pawl = open(place);
    await replay(pawl, queue, [joined]);
    expect(await (await pawl.start(joined)).result()).toEqual(["outer", "opened", "inner"]);
  });

  // Temporal: a promise that rejects before somebody awaits it is no unhandled rejection
  test("may fail before anybody awaits them", async ({ open, queue }) => {
    const early = workflow({ name: "early", version: 1, queue, retry: once }, async (ctx) => {
      const failing = ctx.step("bad", () => {
        throw new Error("early");
      });
      await ctx.sleep(30);
      await slow(ctx, "other", 5);
      return failing.catch((error: unknown) => (error as Error).message);
    });
    const pawl = open(place);
    await replay(pawl, queue, [early]);
    expect(await (await pawl.start(early)).result()).toBe("early");
  });

  // OpenWorkflow, Temporal
  test("fail the run with the first error, and their siblings are told to stop", async ({ open, queue }) => {
    const aborted = createGate();
    const failing = workflow({ name: "failing", version: 1, queue, retry: once }, async (ctx) => {
      await Promise.all([
        ctx.step("long", async ({ signal }) => {
          await pause(60_000, undefined, { signal }).catch(() => aborted.open());
        }),
        ctx.step("bad", () => {
          throw new Error("first");
        }),
      ]);
    });
    const pawl = open(place);
    await replay(pawl, queue, [failing]);
    const run = await pawl.start(failing);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { message: "first" } });
    await aborted.opened;
  });

  // OpenWorkflow: parks until the earliest of several waits
  test("wake the run for the first of them that is due", async ({ open, queue }) => {
    const waits = workflow({ name: "waits", version: 1, queue }, async (ctx) => {
      const order: string[] = [];
      await Promise.all([
        ctx.sleep("1h").then(() => order.push("hour")),
        ctx.sleep(20).then(() => order.push("soon")),
        ctx.waitForSignal("told", { timeout: "2h" }).then(() => order.push("told")),
      ]);
      return order;
    });
    const pawl = open(place);
    await replay(pawl, queue, [waits]);
    const run = await pawl.start(waits);
    await eventually(() => factsOf(run, "timer_fired").then(({ length }) => length)).toBe(1);
    await run.signal("told");
    await eventually(() => factsOf(run, "signal_received").then(({ length }) => length)).toBe(1);
    await eventually(() => run.status()).toBe("waiting");
    const due = (await pawl.get(run.id))!.dueAt!.getTime() - Date.now();
    expect(due).toBeGreaterThan(3_500_000);
    expect(due).toBeLessThan(3_600_000);
  });

  // DBOS: an if over the result of a parallel wait takes the same way after recovery
  test("lead the code the same way however often it is replayed", async ({ open, queue }) => {
    const calls: string[] = [];
    const branch = workflow({ name: "branch", version: 1, queue }, async (ctx) => {
      let path = "";
      for (const turn of upTo(5)) {
        const first = await ctx.race({
          left: (inner) => slow(inner, "left", ctx.random() * 10),
          right: (inner) => slow(inner, "right", ctx.random() * 10),
        });
        path += first.winner[0];
        await ctx.step(`went ${first.winner}`, () => calls.push(`${turn} ${first.winner}`));
        await ctx.sleep(1);
      }
      return path;
    });
    const pawl = open(place);
    await replay(pawl, queue, [branch]);
    const path = await (await pawl.start(branch)).result();
    expect(path).toHaveLength(5);
    expect(calls.map((call) => call.at(2)).join("")).toBe(path);
  });

  // Temporal: code that takes many turns of the microtask queue between two requests
  test("come as far apart as the code likes", async ({ open, queue }) => {
    const busy = workflow({ name: "busy", version: 1, queue }, async (ctx) => {
      let sum = 0;
      for (const turn of upTo(3)) {
        for (let count = 0; count < 10_000; count++) await Promise.resolve();
        sum += await ctx.step("add", () => turn);
        await ctx.sleep(1);
      }
      return sum;
    });
    const pawl = open(place);
    await replay(pawl, queue, [busy]);
    expect(await (await pawl.start(busy)).result()).toBe(3);
  });
});
