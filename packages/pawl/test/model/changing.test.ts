import { describe, expect } from "vitest";
import { workflow, type Context } from "../../src/index.ts";
import { eventually, factsOf, places, readAll, replay, test, upTo } from "./model-test.ts";

const step = (ctx: Context, name: string, value: number): Promise<number> => ctx.step(name, () => value);

/** Patches of DBOS and Temporal. */
describe.each(places)("a patch in %s", (place) => {
  /** The same workflow in three builds. Each waits at its end, so that it can be executed again by another. */
  const builds = (queue: string) => {
    const options = { name: `patched-${queue}`, version: 1, queue };
    const old = workflow(options, async (ctx) => {
      const a = await step(ctx, "one", 1);
      const b = await step(ctx, "two", 2);
      await ctx.waitForSignal("go");
      return a + b;
    });
    const last = workflow(options, async (ctx) => {
      const a = await step(ctx, "one", 1);
      const b = ctx.patch("three") ? await step(ctx, "three", 3) : await step(ctx, "two", 2);
      await ctx.waitForSignal("go");
      return a + b;
    });
    const first = workflow(options, async (ctx) => {
      const a = ctx.patch("five") ? await step(ctx, "five", 5) : await step(ctx, "one", 1);
      const b = await step(ctx, "two", 2);
      await ctx.waitForSignal("go");
      return a + b;
    });
    const twice = workflow(options, async (ctx) => {
      const a = await step(ctx, "one", 1);
      const b = ctx.patch("three") ? await step(ctx, "three", 3) : await step(ctx, "two", 2);
      const c = ctx.patch("three") ? 10 : 0;
      await ctx.waitForSignal("go");
      return a + b + c;
    });
    return { old, last, first, twice };
  };

  // DBOS: patch-last-step, patch-first-step
  test.for(["last", "first"] as const)(
    "at the %s step leaves runs alone that were past it, and is taken by new ones",
    async (which, { open, queue }) => {
      const { old, ...patched } = builds(queue);
      const pawl = open(place);
      const before = await replay(pawl, queue, [old]);
      const early = await pawl.start(old);
      await eventually(() => early.status()).toBe("waiting");
      await before.stop();
      await replay(pawl, queue, [patched[which]]);
      const late = await pawl.start(patched[which]);
      await eventually(() => late.status()).toBe("waiting");
      for (const run of [early, late]) await run.signal("go");
      expect(await early.result()).toBe(3);
      expect(await late.result()).toBe(which === "last" ? 4 : 7);
      expect(await factsOf(early, "patched")).toEqual([]);
      expect(await factsOf(late, "patched")).toHaveLength(1);
    },
  );

  // Temporal: one marker for each patch, however often the code asks
  test("that is asked for twice is one fact, with one answer", async ({ open, queue }) => {
    const { twice } = builds(queue);
    const pawl = open(place);
    await replay(pawl, queue, [twice]);
    const run = await pawl.start(twice);
    await run.signal("go");
    expect(await run.result()).toBe(14);
    expect(await factsOf(run, "patched")).toHaveLength(1);
  });

  // Temporal: core issue of a patch that was asked for after replay only: a run past it answers no, always
  test("that a run is past stays unasked for it in every execution", async ({ open, queue }) => {
    const { old, twice } = builds(queue);
    const pawl = open(place);
    const before = await replay(pawl, queue, [old]);
    const run = await pawl.start(old);
    await eventually(() => run.status()).toBe("waiting");
    await before.stop();
    await replay(pawl, queue, [twice]);
    await run.signal("go");
    expect(await run.result()).toBe(3);
  });

  // DBOS leaves a fork with patches to be checked: the fork takes the side that its source took
  test("that a run took is taken by its fork", async ({ open, queue }) => {
    const { last } = builds(queue);
    const pawl = open(place);
    await replay(pawl, queue, [last]);
    const run = await pawl.start(last);
    await run.signal("go");
    await run.result();
    const fork = await run.fork({ from: "three" });
    await fork.signal("go");
    expect(await fork.result()).toBe(4);
  });
});

/** Continue-as-new of Temporal. */
describe.each(places)("going on as a new run in %s", (place) => {
  test("is followed by whoever waits, and keeps key and tags", async ({ open, queue }) => {
    const loop = workflow({ name: "loop", version: 1, queue }, async (ctx, turn: number) => {
      await ctx.step("work", () => {});
      if (turn === 5) return ctx.run.key;
      return ctx.continueAs(turn + 1);
    });
    const pawl = open(place);
    await replay(pawl, queue, [loop]);
    const run = await pawl.start(loop, 1, { key: queue, tags: [`${queue} tag`] });
    expect(await run.result()).toBe(queue);
    const { runs } = await pawl.list({ queue, workflow: "loop" });
    expect(runs).toHaveLength(5);
    for (const { tags, firstId } of runs) {
      expect(tags).toEqual([`${queue} tag`]);
      expect(firstId).toBe(run.id);
    }
    // A history of its own: that is what it is for.
    expect(await factsOf(pawl.handle(runs[0]!.id), "step_completed")).toEqual(["work"]);
  });

  test("takes unread signals along, and later ones find it by the first handle", async ({ open, queue }) => {
    const loop = workflow({ name: "loop", version: 1, queue }, async (ctx, seen: readonly number[]) => {
      const next = [...seen, await ctx.waitForSignal<number>("add")];
      if (next.length === 6) return next;
      return ctx.continueAs(next);
    });
    const pawl = open(place);
    const run = await pawl.start(loop, []);
    for (const index of upTo(3)) await run.signal("add", index);
    await replay(pawl, queue, [loop]);
    await eventually(async () => (await pawl.list({ queue })).runs.length).toBe(4);
    for (const index of upTo(3)) await run.signal("add", 3 + index);
    expect(await run.result()).toEqual(upTo(6));
  });

  test("may be with another version, whose code goes on", async ({ open, queue }) => {
    const second = workflow(
      { name: "loop", version: 2, queue },
      async (_, input: number) => `second ${input}`,
    );
    const first = workflow({ name: "loop", version: 1, queue }, async (ctx, input: number) =>
      ctx.continueAs(input + 1, second),
    );
    const pawl = open(place);
    await replay(pawl, queue, [first, second]);
    expect(await (await pawl.start(first, 1)).result()).toBe("second 2");
  });

  test("a cancel by the first handle ends the run that goes on", async ({ open, queue }) => {
    const loop = workflow({ name: "loop", version: 1, queue }, async (ctx, turn: number) => {
      if (turn === 3) await ctx.sleep("1h");
      return ctx.continueAs(turn + 1);
    });
    const pawl = open(place);
    await replay(pawl, queue, [loop]);
    const run = await pawl.start(loop, 1);
    await eventually(async () => (await pawl.list({ queue, status: "waiting" })).runs.length).toBe(1);
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
  });

  test("a child that does so answers its parent at the end of the chain", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue }, async (ctx, turn: number) =>
      turn === 3 ? "end of the chain" : ctx.continueAs(turn + 1),
    );
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => ctx.call(child, 1));
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    expect(await (await pawl.start(parent)).result()).toBe("end of the chain");
  });

  test("each run has streams of its own", async ({ open, queue }) => {
    const loop = workflow({ name: "loop", version: 1, queue }, async (ctx, turn: number) => {
      await ctx.stream("out").write(turn);
      await ctx.stream("out").close();
      return turn === 2 ? ctx.run.id : ctx.continueAs(turn + 1);
    });
    const pawl = open(place);
    await replay(pawl, queue, [loop]);
    const run = await pawl.start(loop, 1);
    const last = await run.result();
    expect(await readAll(run, "out")).toEqual([1]);
    expect(await readAll(pawl.handle(last), "out")).toEqual([2]);
  });
});

/** For code that reads a description. */
describe.each(places)("code that says that it cannot go on in %s", (place) => {
  const read = (queue: string, known: readonly string[]) =>
    workflow({ name: `reads-${queue}`, version: 1, queue, retry: { attempts: 1 } }, async (ctx) => {
      const todo = await ctx.step("read", () => "b");
      if (!known.includes(todo)) return ctx.block(`There is no "${todo}" here.`);
      return ctx.step(todo, () => "done");
    });

  test("blocks its run, which goes on with code that can", async ({ open, queue }) => {
    const pawl = open(place);
    const before = await replay(pawl, queue, [read(queue, ["a"])]);
    const run = await pawl.start(read(queue, ["a"]));
    await eventually(() => run.status()).toBe("blocked");
    const blocked = (await run.history()).find(({ kind }) => kind === "blocked");
    expect(blocked?.data).toMatchObject({ message: 'There is no "b" here.' });
    await before.stop();
    await replay(pawl, queue, [read(queue, ["a", "b"])]);
    expect(await run.result()).toBe("done");
    expect(await factsOf(run, "step_completed")).toEqual(["read", "b"]);
  });

  test("leaves a blocked run to be cancelled, and says what else does not fit", async ({ open, queue }) => {
    const pawl = open(place);
    const both = workflow({ name: `reads-${queue}`, version: 1, queue }, async (ctx) => {
      await ctx.step("read", () => "b");
      await ctx.waitForSignal("go", { timeout: "1d" });
    });
    const before = await replay(pawl, queue, [both]);
    const run = await pawl.start(both);
    await eventually(() => run.status()).toBe("waiting");
    await before.stop();
    await run.signal("go");
    await replay(pawl, queue, [read(queue, [])]);
    await eventually(() => run.status()).toBe("blocked");
    const blocked = (await run.history()).find(({ kind }) => kind === "blocked");
    expect(blocked?.data).toMatchObject({
      message: expect.stringMatching(/does not ask for wait "signal:go".*It says: There is no "b" here\./),
    });
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
  });

  test("gives a reason", async ({ open, queue }) => {
    const silent = workflow(
      { name: "silent", version: 1, queue, retry: { attempts: 1 } },
      async (ctx) => void (await ctx.block("")),
    );
    const pawl = open(place);
    await replay(pawl, queue, [silent]);
    await expect((await pawl.start(silent)).result()).rejects.toMatchObject({
      cause: { code: "INVALID_OPTION" },
    });
  });
});

/** Date, Math.random and uuids of Temporal, and its logs in replay. */
describe.each(places)("what the code may know in %s", (place) => {
  test("is the same in every execution, and differs from call to call and run to run", async ({
    open,
    queue,
  }) => {
    const seen: string[][] = [];
    const drawer = workflow({ name: "drawer", version: 1, queue }, async (ctx) => {
      const drawn: string[] = [];
      for (const _ of upTo(3)) {
        drawn.push(`${ctx.random()} ${ctx.uuid()} ${ctx.now()}`);
        await ctx.sleep(2);
      }
      seen.push(drawn);
      return drawn;
    });
    const executed: string[] = [];
    const prefix = workflow({ name: "prefix", version: 1, queue }, async (ctx) => {
      executed.push(`${ctx.random()} ${ctx.uuid()} ${ctx.now()}`);
      await ctx.sleep(2);
      await ctx.sleep(2);
    });
    const pawl = open(place);
    await replay(pawl, queue, [drawer, prefix]);
    const runs = [await pawl.start(drawer), await pawl.start(drawer)];
    const [one, two] = await Promise.all(runs.map((run) => run.result()));
    expect(new Set([...one!, ...two!]).size).toBe(6);
    await (await pawl.start(prefix)).result();
    expect(executed.length).toBeGreaterThan(1);
    expect(new Set(executed).size).toBe(1);
  });

  test("goes to the log once, and not again in a replay", async ({ open, queue }) => {
    const lines: string[] = [];
    const note = (message: string): void => void lines.push(message);
    const log = { debug: () => {}, info: note, warn: () => {}, error: () => {} };
    const talker = workflow({ name: "talker", version: 1, queue }, async (ctx) => {
      ctx.log.info("before");
      await ctx.step("one", () => {});
      await ctx.sleep(5);
      ctx.log.info("after");
      await ctx.sleep(5);
    });
    const pawl = open(place, { log });
    await replay(pawl, queue, [talker]);
    await (await pawl.start(talker)).result();
    expect(lines.filter((line) => line === "before" || line === "after")).toEqual(["before", "after"]);
  });
});
