import { describe, expect } from "vitest";
import { z } from "zod";
import { aesGcmCodec, workflow, type PawlError, type RunId } from "../../src/index.ts";
import { eventually, places, readAll, replay, test, upTo } from "./model-test.ts";

const once = { attempts: 1 } as const;
const nobody = "01900000-0000-7000-8000-000000000000" as RunId;

/** Events of DBOS, queries of Temporal. */
describe.each(places)("a value published in %s", (place) => {
  // DBOS, Temporal
  test("is read while the run lives and after it has ended; the last one under a key counts", async ({
    open,
    queue,
  }) => {
    const shows = workflow({ name: "shows", version: 1, queue }, async (ctx) => {
      await ctx.publish("state", "waiting");
      await ctx.publish("kept", { a: [1, null] });
      await ctx.waitForSignal("go");
      await ctx.publish("state", "done");
    });
    const pawl = open(place);
    await replay(pawl, queue, [shows]);
    const run = await pawl.start(shows);
    await eventually(() => run.published("kept")).toEqual({ a: [1, null] });
    expect(await run.published("state")).toBe("waiting");
    await run.signal("go");
    await run.result();
    expect(await run.published()).toEqual({ state: "done", kept: { a: [1, null] } });
  });

  // DBOS: null for a key that nobody set; an error for a run that does not exist
  test("that there is none of is undefined; of a run that there is none of, an error", async ({
    open,
    queue,
  }) => {
    const quiet = workflow({ name: "quiet", version: 1, queue }, async () => {});
    const pawl = open(place);
    const run = await pawl.start(quiet);
    expect(await run.published("nothing")).toBeUndefined();
    expect(await run.published()).toEqual({});
    await expect(pawl.published(nobody, "nothing")).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  });

  // Temporal: queries answer of a workflow that no worker serves; features assert a timeout there
  test("is read although no worker runs", async ({ open, queue }) => {
    const shows = workflow({ name: "shows", version: 1, queue }, async (ctx) => {
      await ctx.publish("state", 1);
      await ctx.waitForSignal("go");
    });
    const pawl = open(place);
    const worker = await replay(pawl, queue, [shows]);
    const run = await pawl.start(shows);
    await eventually(() => run.status()).toBe("waiting");
    await worker.stop();
    expect(await run.published("state")).toBe(1);
  });

  // DBOS
  test("stays when the run fails", async ({ open, queue }) => {
    const fails = workflow({ name: "fails", version: 1, queue, retry: once }, async (ctx) => {
      await ctx.publish("state", "before");
      throw new Error("no");
    });
    const pawl = open(place);
    await replay(pawl, queue, [fails]);
    const run = await pawl.start(fails);
    await run.result().catch(() => {});
    expect(await run.published("state")).toBe("before");
  });

  // DBOS: events set before the step that a fork begins at are the fork's, too
  test("before the step that a fork begins at is the fork's, what came after is not", async ({
    open,
    queue,
  }) => {
    let life = 0;
    const shows = workflow({ name: "shows", version: 1, queue }, async (ctx) => {
      await ctx.publish("below", "kept");
      await ctx.publish("both", "old");
      const at = await ctx.step("cut", () => (life += 1));
      if (at === 1) {
        await ctx.publish("both", "new");
        await ctx.publish("above", "doomed");
      } else await ctx.waitForSignal("go");
    });
    const pawl = open(place);
    await replay(pawl, queue, [shows]);
    const run = await pawl.start(shows);
    await run.result();
    const fork = await run.fork({ from: "cut" });
    await eventually(() => fork.status()).toBe("waiting");
    expect(await fork.published()).toEqual({ below: "kept", both: "old" });
    expect(await run.published()).toEqual({ below: "kept", both: "new", above: "doomed" });
  });

  test("by a step comes with its record, once, and not from an attempt that fails", async ({
    open,
    queue,
  }) => {
    const shows = workflow(
      { name: "shows", version: 1, queue, published: { left: z.number(), done: z.string() } },
      async (ctx) => {
        for (const _ of upTo(2))
          await ctx.step(
            "work",
            ({ attempt }) => {
              if (attempt === 1) throw new Error("once more");
              return { attempt };
            },
            { retry: { initial: 0 }, publish: (result) => ({ left: result.attempt, done: "a/b#c" }) },
          );
        await ctx.waitForSignal("go");
        await ctx.publish("left", 0);
        return ctx.step("last", () => "end", { publish: () => ({}) });
      },
    );
    const pawl = open(place);
    await replay(pawl, queue, [shows]);
    const run = await pawl.start(shows);
    await eventually(() => run.status()).toBe("waiting");
    expect(await run.published()).toEqual({ left: 2, done: "a/b#c" });
    await run.signal("go");
    expect(await run.result()).toBe("end");
    expect(await run.published("left")).toBe(0);
    const facts = (await run.history()).filter(({ kind }) => ["step_completed", "published"].includes(kind));
    expect(facts.map(({ name }) => name)).toEqual([
      "work",
      "work//publish:left",
      "work//publish:done",
      "work#2",
      "work#2//publish:left",
      "work#2//publish:done",
      "publish:left",
      "last",
    ]);
    // What comes in one write has one time.
    expect(new Set(facts.slice(0, 3).map(({ at }) => at.getTime())).size).toBe(1);
    const fork = await run.fork({ from: "publish:left" });
    await fork.result();
    expect(await fork.published()).toEqual({ left: 0, done: "a/b#c" });
  });

  test("by a step that its schema refuses fails the step, which is not tried again", async ({
    open,
    queue,
  }) => {
    let calls = 0;
    const shows = workflow(
      { name: "shows", version: 1, queue, retry: once, published: { left: z.number().max(1) } },
      async (ctx) => {
        await ctx.step("work", () => (calls += 1), { retry: { initial: 0 }, publish: () => ({ left: 2 }) });
      },
    );
    const pawl = open(place);
    await replay(pawl, queue, [shows]);
    const run = await pawl.start(shows);
    await expect(run.result()).rejects.toMatchObject({ cause: { code: "INVALID_PAYLOAD" } });
    expect(calls).toBe(1);
    expect(await run.published()).toEqual({});
  });

  test("by a step is sealed by the codec, and read back", async ({ open, queue }) => {
    const codec = aesGcmCodec({ keys: [{ id: "a", key: new Uint8Array(32) }] });
    const shows = workflow({ name: "shows", version: 1, queue }, async (ctx) => {
      await ctx.step("work", () => "x", { publish: (result) => ({ secret: `${result}${result}` }) });
    });
    const pawl = open(place, { codec });
    await replay(pawl, queue, [shows]);
    const run = await pawl.start(shows);
    await run.result();
    expect(await run.published("secret")).toBe("xx");
  });

  // DBOS: a rewind unpublishes what the discarded steps set
  test("of a life before is gone once the run begins anew", async ({ open, queue }) => {
    let life = 0;
    const shows = workflow({ name: "shows", version: 1, queue }, async (ctx) => {
      const at = await ctx.step("life", () => (life += 1));
      await ctx.publish("both", at);
      if (at === 1) await ctx.publish("above", "doomed");
    });
    const pawl = open(place);
    await replay(pawl, queue, [shows]);
    const run = await pawl.start(shows);
    await run.result();
    await run.retry({ from: "start" });
    await run.result();
    expect(life).toBe(2);
    expect(await run.published()).toEqual({ both: 2 });
  });
});

/** Streams of DBOS. */
describe.each(places)("a stream in %s", (place) => {
  const values = ["hello", 42, 3.14, true, false, { key: { nested: "value" } }, [1, 2, 3], null];

  test("gives every value in order, as often as it is read", async ({ open, queue }) => {
    const writer = workflow({ name: "writer", version: 1, queue }, async (ctx) => {
      const stream = ctx.stream("out");
      for (const value of values) await stream.write(value);
      await stream.close();
    });
    const pawl = open(place);
    await replay(pawl, queue, [writer]);
    const run = await pawl.start(writer);
    expect(await readAll(run, "out")).toEqual(values);
    expect(await readAll(run, "out")).toEqual(values);
    expect(await readAll(run, "out", 7)).toEqual(values.slice(6));
  });

  test("that nobody closed ends with its run, be it completed or failed", async ({ open, queue }) => {
    const writer = workflow(
      { name: "writer", version: 1, queue, retry: once },
      async (ctx, isBad: boolean) => {
        await ctx.stream("out").write("only");
        if (isBad) throw new Error("bad");
      },
    );
    const pawl = open(place);
    await replay(pawl, queue, [writer]);
    for (const isBad of [false, true])
      expect(await readAll(await pawl.start(writer, isBad), "out")).toEqual(["only"]);
  });

  test("is apart from others of its run, however they take turns", async ({ open, queue }) => {
    const writer = workflow({ name: "writer", version: 1, queue }, async (ctx) => {
      for (const [name, value] of [
        ["a", "a1"],
        ["b", "b1"],
        ["a", "a2"],
        ["c", "c1"],
        ["b", "b2"],
      ] as const)
        await ctx.stream(name).write(value);
      await ctx.stream("empty").close();
    });
    const pawl = open(place);
    await replay(pawl, queue, [writer]);
    const run = await pawl.start(writer);
    await run.result();
    const read = await Promise.all(["a", "b", "c", "empty", "never"].map((name) => readAll(run, name)));
    expect(read).toEqual([["a1", "a2"], ["b1", "b2"], ["c1"], [], []]);
  });

  test("is read while it is written, and a reader who waits hears of the run's end", async ({
    open,
    queue,
  }) => {
    const writer = workflow({ name: "writer", version: 1, queue }, async (ctx) => {
      const stream = ctx.stream("out");
      for (const index of upTo(5)) {
        await stream.write(index);
        await ctx.sleep(10);
      }
      await ctx.waitForSignal("end");
    });
    const pawl = open(place);
    const run = await pawl.start(writer);
    const reading = readAll(run, "out");
    await replay(pawl, queue, [writer]);
    await eventually(async () => (await pawl.get(run.id))?.wants).toContain("signal:end");
    await run.signal("end");
    expect(await reading).toEqual(upTo(5));
  });

  test("has what every attempt of a step wrote, and says which one did", async ({ open, queue }) => {
    const writer = workflow({ name: "writer", version: 1, queue }, async (ctx) => {
      await ctx.step(
        "flaky",
        async ({ stream, attempt }) => {
          await stream("out").write(`attempt ${attempt}`);
          if (attempt < 4) throw new Error("again");
        },
        { retry: { attempts: 4, initial: 0 } },
      );
      await ctx.stream("out").write("from the workflow");
      await ctx.stream("out").close();
    });
    const pawl = open(place);
    await replay(pawl, queue, [writer]);
    const run = await pawl.start(writer);
    const items = [];
    for await (const { value, attempt } of run.stream("out")) items.push([value, attempt]);
    expect(items).toEqual([
      ["attempt 1", 1],
      ["attempt 2", 2],
      ["attempt 3", 3],
      ["attempt 4", 4],
      ["from the workflow", null],
    ]);
  });

  test("is written to once, however often the code is replayed", async ({ open, queue }) => {
    const writer = workflow({ name: "writer", version: 1, queue, retry: { initial: 0 } }, async (ctx) => {
      for (const index of upTo(4)) {
        await ctx.stream("out").write(index);
        await ctx.sleep(1);
      }
      if (ctx.run.attempt === 1) throw new Error("once more");
    });
    const pawl = open(place);
    await replay(pawl, queue, [writer]);
    const run = await pawl.start(writer);
    await run.result();
    expect(await readAll(run, "out")).toEqual(upTo(4));
  });

  test("takes nothing once it is closed", async ({ open, queue }) => {
    const writer = workflow({ name: "writer", version: 1, queue, retry: once }, async (ctx) => {
      await ctx.stream("out").close();
      return ctx
        .stream("out")
        .write(1)
        .catch((error: unknown) => (error as PawlError).code);
    });
    const pawl = open(place);
    await replay(pawl, queue, [writer]);
    expect(await (await pawl.start(writer)).result()).toBe("STREAM_CLOSED");
  });

  test("of a run that there is none of is an error", async ({ open }) => {
    await expect(open(place).stream(nobody, "out").next()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  });

  // DBOS: a rewind reopens what the discarded steps closed
  test("that was closed in a life before is open again when the run begins anew", async ({ open, queue }) => {
    let life = 0;
    const writer = workflow({ name: "writer", version: 1, queue, retry: once }, async (ctx) => {
      const at = await ctx.step("life", () => (life += 1));
      await ctx.stream("out").write(`life ${at}`);
      await ctx.stream("out").close();
      return at;
    });
    const pawl = open(place);
    await replay(pawl, queue, [writer]);
    const run = await pawl.start(writer);
    await run.result();
    expect(await readAll(run, "out")).toEqual(["life 1"]);
    await run.retry({ from: "start" });
    expect(await run.result()).toBe(2);
    expect(await readAll(run, "out")).toContain("life 2");
  });
});

describe.each(places)("what a step shows with its record in %s", (place) => {
  test("fails it for good where it cannot be made, whatever is thrown", async ({ open, queue }) => {
    let calls = 0;
    const thrown = [Object.freeze(new Error("frozen")), "a text", Object.seal(new TypeError("sealed"))];
    const job = workflow({ name: "job", version: 1, queue, retry: { attempts: 1 } }, async (ctx) =>
      ctx.map("each", thrown, (error, inner) =>
        inner
          .step("show", () => (calls += 1), {
            retry: { attempts: 3, initial: 0 },
            publish: () => {
              throw error as Error;
            },
          })
          .catch((failure: unknown) => (failure as Error).message),
      ),
    );
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    expect(await (await pawl.start(job)).result()).toEqual(["frozen", "Something was thrown.", "sealed"]);
    expect(calls).toBe(3);
  });
});
