import { describe, expect } from "vitest";
import { z } from "zod";
import { workflow, type RunId } from "../../src/index.ts";
import { createGate, eventually, places, replay, test, upTo } from "./model-test.ts";

/** Updates and queries, as Temporal's features and its TypeScript SDK test them. */
describe.each(places)("an update in %s", (place) => {
  test("is answered by its handler, be it a plain function or an async one", async ({ open, queue }) => {
    const counter = workflow({ name: "counter", version: 1, queue }, async (ctx, start: number) => {
      let count = start;
      ctx.onUpdate<number>("add", (by) => (count += by));
      ctx.onUpdate("read", async () => count);
      await ctx.waitForSignal("done");
      return count;
    });
    const pawl = open(place);
    await replay(pawl, queue, [counter]);
    const run = await pawl.start(counter, 2);
    expect(await run.update("add", 2)).toBe(4);
    expect(await run.update("read")).toBe(4);
    expect(await run.update("add", 3)).toBe(7);
    await run.signal("done");
    expect(await run.result()).toBe(7);
  });

  test("may ask for steps, timers and children", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue }, async (_, input: number) => input * 2);
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      ctx.onUpdate<number>("compute", async (input, inner) => {
        const three = await inner.step("three", () => 3);
        await inner.sleep(5);
        return inner.call(child, input + three);
      });
      await ctx.waitForSignal("done");
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked, child]);
    const run = await pawl.start(asked);
    expect(await Promise.all([run.update("compute", 4), run.update("compute", 1)])).toEqual([14, 8]);
  });

  test("that its schema refuses is not seen by the code", async ({ open, queue }) => {
    const seen: string[] = [];
    const asked = workflow(
      { name: "asked", version: 1, queue, updates: { rename: { input: z.string().min(3) } } },
      async (ctx) => {
        ctx.onUpdate("rename", (name) => void seen.push(name));
        await ctx.waitForSignal("done");
      },
    );
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    await expect(run.update("rename", "x")).rejects.toMatchObject({ code: "INVALID_PAYLOAD" });
    // From a client that does not know the workflow, too.
    await expect(pawl.update(run.id, "rename", "y")).rejects.toMatchObject({ code: "INVALID_PAYLOAD" });
    await run.update("rename", "right");
    expect(seen).toContain("right");
    expect(seen).not.toContain("x");
    expect(seen).not.toContain("y");
  });

  test("whose handler throws fails for its caller alone: the run goes on", async ({ open, queue }) => {
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      ctx.onUpdate("sync", () => {
        throw new Error("deliberate");
      });
      ctx.onUpdate("async", async (_, inner) => {
        await inner.sleep(1);
        throw new Error("deliberate");
      });
      return ctx.waitForSignal("done");
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    for (const name of ["sync", "async"])
      await expect(run.update(name)).rejects.toMatchObject({
        code: "UPDATE_FAILED",
        cause: { message: "deliberate" },
      });
    await run.signal("done", "fine");
    expect(await run.result()).toBe("fine");
  });

  test("to a run that has ended, or that there is none of, is refused", async ({ open, queue }) => {
    const quick = workflow({ name: "quick", version: 1, queue }, async () => {});
    const pawl = open(place);
    await replay(pawl, queue, [quick]);
    const run = await pawl.start(quick);
    await run.result();
    await expect(run.update("ask")).rejects.toMatchObject({ code: "RUN_ENDED" });
    const nobody = "01900000-0000-7000-8000-000000000000" as RunId;
    await expect(pawl.update(nobody, "ask")).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  });

  test("that no handler takes is refused when the run ends", async ({ open, queue }) => {
    const deaf = workflow({ name: "deaf", version: 1, queue }, async (ctx) => ctx.waitForSignal("done"));
    const pawl = open(place);
    await replay(pawl, queue, [deaf]);
    const run = await pawl.start(deaf);
    const answer = run.update("ask").catch((error: unknown) => error);
    await run.signal("done");
    await run.result();
    expect(await answer).toMatchObject({ code: "RUN_ENDED" });
  });

  test("that is sent twice under one key is one, and both callers get its answer", async ({
    open,
    queue,
  }) => {
    let calls = 0;
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      let count = 0;
      ctx.onUpdate("add", async (_, inner) => {
        await inner.step("count", () => (calls += 1));
        return (count += 1);
      });
      await ctx.waitForSignal("done");
      return count;
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    const answers = await Promise.all(
      [1, 2, 3].map(() => run.update("add", undefined, { idempotencyKey: "same" })),
    );
    expect(answers).toEqual([1, 1, 1]);
    await run.signal("done");
    expect(await run.result()).toBe(1);
    expect(await run.update("add", undefined, { idempotencyKey: "same" })).toBe(1);
    expect(calls).toBe(1);
  });

  test("that came before the run began is delivered, with those after it in order", async ({
    open,
    queue,
  }) => {
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      const state: string[] = [];
      ctx.onUpdate<string>("say", (word) => {
        state.push(word);
        return [...state];
      });
      await ctx.waitForSignal("done");
      return state;
    });
    const pawl = open(place);
    const run = await pawl.start(asked);
    const first = run.update("say", "one");
    // The next one is sent once this one is stored.
    await eventually(() =>
      run.update("say", "two", { timeout: 1, idempotencyKey: "two" }).catch(() => "sent"),
    ).toBe("sent");
    await replay(pawl, queue, [asked]);
    expect(await run.update("say", "two", { idempotencyKey: "two" })).toContain("two");
    expect(await first).toContain("one");
    await run.signal("done");
    expect([...(await run.result())].toSorted()).toEqual(["one", "two"]);
  });

  test("in the inbox of a run that returns at once is answered, and seen by the code", async ({
    open,
    queue,
  }) => {
    const hasty = workflow({ name: "hasty", version: 1, queue }, async (ctx) => {
      let state = "initial";
      ctx.onUpdate("mutate", () => {
        state = "mutated";
        return "answered";
      });
      await ctx.step("anything", () => {});
      return state;
    });
    const pawl = open(place);
    const run = await pawl.start(hasty);
    await run.update("mutate", undefined, { timeout: 1, idempotencyKey: "one" }).catch(() => {});
    const answer = run.update("mutate", undefined, { idempotencyKey: "one" });
    answer.catch(() => {});
    await replay(pawl, queue, [hasty]);
    expect(await run.result()).toBe("mutated");
    expect(await answer).toBe("answered");
  });

  test("reaches its handler at the same point in every execution", async ({ open, queue }) => {
    const seen: string[] = [];
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      let isTold = false;
      ctx.onUpdate("tell", () => {
        isTold = true;
      });
      await ctx.waitForSignal("first");
      const early = isTold;
      await ctx.waitForSignal("second");
      const later = isTold;
      await ctx.sleep(1);
      seen.push(`${early} ${later}`);
      return [early, later];
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    await run.signal("first");
    await eventually(async () => (await pawl.get(run.id))?.wants).toContain("signal:second");
    await run.update("tell");
    await run.signal("second");
    expect(await run.result()).toEqual([false, true]);
    expect(new Set(seen)).toEqual(new Set(["false true"]));
  });

  test("whose handler has begun is waited for when the code returns", async ({ open, queue }) => {
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      ctx.onUpdate("slow", async (_, inner) => {
        await inner.waitForSignal("release");
        return "late";
      });
      await ctx.waitForSignal("done");
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    const answer = run.update("slow");
    await eventually(async () => (await pawl.get(run.id))?.wants).toContain("signal:release");
    await run.signal("done");
    await eventually(async () => (await pawl.get(run.id))?.wants).not.toContain("signal:done");
    expect(await run.status()).toBe("waiting");
    await run.signal("release");
    expect(await answer).toBe("late");
    await run.result();
  });

  test("that waits in its handler is refused when the run is cancelled", async ({ open, queue }) => {
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      ctx.onUpdate("slow", (_, inner) => inner.sleep("1h"));
      await ctx.waitForSignal("done");
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    const answer = run.update("slow").catch((error: unknown) => error);
    await eventually(async () => (await run.history()).length).toBeGreaterThan(1);
    await run.cancel();
    expect(await answer).toMatchObject({ code: "RUN_ENDED" });
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
  });

  test("can be waited for no longer than one likes; it is answered all the same", async ({ open, queue }) => {
    const gate = createGate();
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      ctx.onUpdate("slow", (_, inner) => inner.step("wait", () => gate.opened.then(() => "late")));
      await ctx.waitForSignal("done");
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    const key = { idempotencyKey: "one" };
    await expect(run.update("slow", undefined, { ...key, timeout: 20 })).rejects.toMatchObject({
      code: "UPDATE_TIMED_OUT",
    });
    gate.open();
    expect(await run.update("slow", undefined, key)).toBe("late");
  });

  // Temporal: condition. Code that waits for its own state awaits something of the context beside it.
  test("may end a wait of the code for its own state", async ({ open, queue }) => {
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      const state: string[] = [];
      const done = createGate();
      ctx.onUpdate<string>("say", (word) => void state.push(word));
      ctx.onUpdate("finish", () => {
        state.push("done");
        done.open();
      });
      const first = await ctx.race({ done: () => done.opened, late: ctx.sleep("1d") });
      return [...state, first.winner];
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    await run.update("say", "1");
    expect(await run.update("finish")).toBeUndefined();
    expect(await run.result()).toEqual(["1", "done", "done"]);
  });

  test("of two hundred at once gets its own answer", async ({ open, queue }) => {
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      let count = 0;
      ctx.onUpdate<number>("echo", async (payload, inner) => {
        await inner.step("count", () => {});
        count += 1;
        return payload;
      });
      await ctx.waitForSignal("done");
      return count;
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    expect(await Promise.all(upTo(200).map((payload) => run.update("echo", payload)))).toEqual(upTo(200));
    await run.signal("done");
    expect(await run.result()).toBe(200);
  }, 60_000);

  test("whose answer cannot be stored fails for its caller alone", async ({ open, queue }) => {
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      ctx.onUpdate("function", () => () => 1);
      return ctx.waitForSignal("done");
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    await expect(run.update("function")).rejects.toMatchObject({ code: "UPDATE_FAILED" });
    await run.signal("done", "fine");
    expect(await run.result()).toBe("fine");
  });

  test("to a run that is paused is answered once it is resumed", async ({ open, queue }) => {
    const asked = workflow({ name: "asked", version: 1, queue }, async (ctx) => {
      ctx.onUpdate("ask", () => "answer");
      return ctx.waitForSignal("done");
    });
    const pawl = open(place);
    await replay(pawl, queue, [asked]);
    const run = await pawl.start(asked);
    await eventually(() => run.status()).toBe("waiting");
    await run.pause();
    await eventually(() => run.status()).toBe("paused");
    const answer = run.update("ask");
    await expect(run.update("ask", undefined, { timeout: 50 })).rejects.toMatchObject({
      code: "UPDATE_TIMED_OUT",
    });
    expect(await run.status()).toBe("paused");
    await run.resume();
    expect(await answer).toBe("answer");
    await run.signal("done", 7);
    expect(await run.result()).toBe(7);
  });
});
