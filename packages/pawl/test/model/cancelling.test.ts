import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { workflow, type Context, type PawlError } from "../../src/index.ts";
import { createGate, eventually, factsOf, places, replay, test } from "./model-test.ts";

/** Cancellation, as Temporal's scopes, DBOS and OpenWorkflow test it. */
describe.each(places)("cancelling in %s", (place) => {
  // Temporal, DBOS: what a workflow waits in hears of it
  test.for([
    ["a sleep", (ctx: Context) => ctx.sleep("1h")],
    ["a wait for a signal", (ctx: Context) => ctx.waitForSignal("never")],
    ["a wait for a signal with a timeout", (ctx: Context) => ctx.waitForSignal("never", { timeout: "1h" })],
    ["several at once", (ctx: Context) => Promise.all([ctx.sleep("1h"), ctx.waitForSignal("never")])],
    ["a race", (ctx: Context) => ctx.race({ a: ctx.sleep("1h"), b: ctx.waitForSignal("never") })],
    ["a scope in a scope", (ctx: Context) => ctx.scope("a", (a) => a.scope("b", (b) => b.sleep("1h")))],
    [
      "a retry far away",
      (ctx: Context) =>
        ctx.step(
          "bad",
          () => {
            throw new Error("bad");
          },
          { retry: { initial: "1h" } },
        ),
    ],
  ] as const)(
    "ends %s, runs catch and finally, and is what the run ends as",
    async ([, waits], { open, queue }) => {
      const heard: string[] = [];
      const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => {
        try {
          await waits(ctx);
        } catch (error) {
          heard.push((error as PawlError).code);
          throw error;
        } finally {
          heard.push("finally");
        }
      });
      const pawl = open(place);
      await replay(pawl, queue, [waiter]);
      const run = await pawl.start(waiter);
      await eventually(() => run.status()).toBe("waiting");
      await run.cancel("no more");
      await expect(run.result()).rejects.toMatchObject({
        code: "RUN_CANCELLED",
        details: { reason: "no more" },
      });
      expect(await run.status()).toBe("cancelled");
      expect(heard).toEqual(["RUN_CANCELLED", "finally"]);
    },
  );

  // DBOS: waiting for a child; Temporal: the child hears of it, too
  test("ends a wait for a child, and the child", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => ctx.call(child));
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    const run = await pawl.start(parent);
    const statusOfChild = async () => (await pawl.list({ queue, workflow: "child" })).runs[0]?.status;
    await eventually(statusOfChild).toBe("waiting");
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    await eventually(statusOfChild).toBe("cancelled");
  });

  // Temporal: an activity that heeds cancellation; cancel_try_cancel
  test("aborts the signal of the step in progress, which may still return", async ({ open, queue }) => {
    const begun = createGate();
    const worker = workflow({ name: "worker", version: 1, queue }, async (ctx) => {
      const made = await ctx.step("work", async ({ signal }) => {
        begun.open();
        await pause(60_000, undefined, { signal }).catch(() => {});
        return "half";
      });
      await ctx.step("never", () => {});
      return made;
    });
    const pawl = open(place);
    await replay(pawl, queue, [worker]);
    const run = await pawl.start(worker);
    await begun.opened;
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    expect(await factsOf(run, "step_completed")).toEqual(["work"]);
  });

  // DBOS: no step begins after a cancel
  test("lets no other step begin", async ({ open, queue }) => {
    const steps: string[] = [];
    const gate = createGate();
    const two = workflow({ name: "two", version: 1, queue }, async (ctx) => {
      await ctx.step("one", async ({ signal }) => {
        steps.push("one");
        await gate.opened;
        return signal.aborted;
      });
      await ctx.step("two", () => steps.push("two"));
    });
    const pawl = open(place);
    await replay(pawl, queue, [two]);
    const run = await pawl.start(two);
    await eventually(() => steps).toEqual(["one"]);
    await run.cancel();
    await eventually(() => factsOf(run, "cancel_requested").then(({ length }) => length)).toBe(1);
    gate.open();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    expect(steps).toEqual(["one"]);
  });

  // Temporal: cleanup after a cancel in a non-cancellable scope. Here it is an undo.
  test("leaves what has to be cleaned up to undos, which run with retries of their own", async ({
    open,
    queue,
  }) => {
    const undone: string[] = [];
    const saga = workflow({ name: "saga", version: 1, queue }, async (ctx) => {
      const undo =
        (name: string) =>
        (_: unknown, { attempt }: { attempt: number }) => {
          if (attempt === 1) throw new Error("once more");
          undone.push(name);
        };
      await ctx.step("a", () => {}, { undo: undo("a"), undoRetry: { initial: 0 } });
      await ctx.step("b", () => {}, { undo: undo("b"), undoRetry: { initial: 0 } });
      try {
        await ctx.sleep("1h");
      } finally {
        await ctx.step("clean up", () => undone.push("in finally")).catch(() => undone.push("refused"));
      }
    });
    const pawl = open(place);
    await replay(pawl, queue, [saga]);
    const run = await pawl.start(saga);
    await eventually(() => run.status()).toBe("waiting");
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    expect(undone).toEqual(["refused", "b", "a"]);
  });

  // Temporal lets a workflow swallow its cancellation and complete. Here a cancelled run is cancelled.
  test("stands, whatever the code makes of it", async ({ open, queue }) => {
    const stubborn = workflow({ name: "stubborn", version: 1, queue }, async (ctx) => {
      await ctx.sleep("1h").catch(() => {});
      return "completed after all";
    });
    const pawl = open(place);
    await replay(pawl, queue, [stubborn]);
    const run = await pawl.start(stubborn);
    await eventually(() => run.status()).toBe("waiting");
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
  });

  // DBOS, OpenWorkflow
  test("of a run that no worker has begun ends it without its code", async ({ open, queue }) => {
    let calls = 0;
    const job = workflow({ name: "job", version: 1, queue }, async () => void (calls += 1));
    const pawl = open(place);
    const run = await pawl.start(job);
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    await replay(pawl, queue, [job]);
    const other = await pawl.start(job);
    await other.result();
    expect(calls).toBe(1);
  });

  // DBOS, OpenWorkflow
  test("twice, or after the end, changes nothing", async ({ open, queue }) => {
    const quick = workflow({ name: "quick", version: 1, queue }, async () => "done");
    const pawl = open(place);
    await replay(pawl, queue, [quick]);
    const run = await pawl.start(quick);
    await run.result();
    await run.cancel();
    await run.cancel();
    expect(await run.result()).toBe("done");
    expect(await run.status()).toBe("completed");
  });

  // DBOS: cancel, then resume
  test("can be taken back: the run goes on where it was, and what it had done is kept", async ({
    open,
    queue,
  }) => {
    const steps: string[] = [];
    const two = workflow({ name: "two", version: 1, queue }, async (ctx) => {
      await ctx.step("one", () => steps.push("one"));
      await ctx.waitForSignal("go");
      await ctx.step("two", () => steps.push("two"));
      return "done";
    });
    const pawl = open(place);
    await replay(pawl, queue, [two]);
    const run = await pawl.start(two);
    await eventually(() => run.status()).toBe("waiting");
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    await run.retry();
    await run.signal("go");
    expect(await run.result()).toBe("done");
    expect(steps).toEqual(["one", "two"]);
  });

  // Temporal: terminate
  test("at once, by terminate, runs no code, and says why", async ({ open, queue }) => {
    const heard: string[] = [];
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => {
      try {
        await ctx.sleep("1h");
      } finally {
        heard.push("finally");
      }
    });
    const pawl = open(place);
    await replay(pawl, queue, [waiter]);
    const run = await pawl.start(waiter);
    await eventually(() => run.status()).toBe("waiting");
    await run.terminate("hasta la vista");
    await expect(run.result()).rejects.toThrow("hasta la vista");
    expect(heard).toEqual([]);
  });

  // Temporal: a scope that is cancelled from inside: the rest of the run goes on
  test("a part of a run leaves the rest of it alone", async ({ open, queue }) => {
    const heard: string[] = [];
    const parts = workflow({ name: "parts", version: 1, queue }, async (ctx) => {
      const untouched = ctx.scope("untouched", (inner) => inner.sleep(30)).then(() => "slept");
      const { winner } = await ctx.race({
        work: async (inner) => {
          try {
            await inner.scope("nested", (nested) => nested.sleep("1h"));
          } catch (error) {
            heard.push((error as PawlError).code);
            throw error;
          }
        },
        stop: ctx.sleep(5),
      });
      return [winner, await untouched];
    });
    const pawl = open(place);
    await replay(pawl, queue, [parts]);
    expect(await (await pawl.start(parts)).result()).toEqual(["stop", "slept"]);
    expect(new Set(heard)).toEqual(new Set(["WITHDRAWN"]));
  });

  // DBOS: cancel many workflows
  test("all runs that fit asks each of them once", async ({ open, queue }) => {
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const pawl = open(place);
    await replay(pawl, queue, [waiter]);
    const runs = await pawl.startMany(waiter, [{}, {}, {}]);
    expect(await pawl.cancelAll({ queue, workflow: "waiter" }, { reason: "all" })).toBe(3);
    for (const run of runs)
      await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED", details: { reason: "all" } });
  });

  test.for(["cancelAll", "pauseAll", "resumeAll", "retryAll"] as const)(
    "no run that %s was not meant for, where a variable of the filter is undefined",
    async (all, { open }) => {
      const filter = { workflow: undefined as unknown as string };
      await expect(open(place)[all](filter)).rejects.toMatchObject({
        code: "INVALID_OPTION",
        message: expect.stringContaining("is undefined") as string,
      });
    },
  );
});

/** Workflow timeouts and deadlines of DBOS, execution timeouts of Temporal, maximum delays of Absurd. */
describe.each(places)("a deadline in %s", (place) => {
  const once = { attempts: 1 } as const;

  test.for(["a start", "the workflow"])(
    "of %s ends a run that sleeps, as timed out",
    async (whose, { open, queue }) => {
      const heard: string[] = [];
      const ofWorkflow = whose === "a start" ? {} : { timeout: 3_000 };
      const sleeper = workflow({ name: "sleeper", version: 1, queue, ...ofWorkflow }, async (ctx) => {
        await ctx.sleep("1h").catch((error: unknown) => heard.push((error as PawlError).code));
      });
      const pawl = open(place);
      await replay(pawl, queue, [sleeper]);
      const run = await pawl.start(sleeper, undefined, whose === "a start" ? { timeout: 3_000 } : {});
      await eventually(() => run.status()).toBe("waiting");
      await expect(run.result()).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
      expect(await run.status()).toBe("timed_out");
      expect(heard).toEqual(["RUN_TIMED_OUT"]);
    },
  );

  test("that is not reached changes nothing", async ({ open, queue }) => {
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => {
      await ctx.sleep(5);
      return 42;
    });
    const pawl = open(place);
    await replay(pawl, queue, [sleeper]);
    expect(await (await pawl.start(sleeper, undefined, { timeout: "1h" })).result()).toBe(42);
  });

  // DBOS: the child has the very same deadline
  test("is its children's, too, to the millisecond, unless they are detached", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => {
      await ctx.start(child, undefined, { detached: true, tags: ["detached"] });
      await ctx.call(child, undefined, { timeout: "2h", tags: ["longer"] });
    });
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    const run = await pawl.start(parent, undefined, { timeout: "1h" });
    await eventually(async () => (await pawl.list({ queue, workflow: "child" })).runs.length).toBe(2);
    const { deadlineAt } = (await pawl.get(run.id))!;
    const { runs } = await pawl.list({ queue, workflow: "child" });
    expect(runs.find(({ tags }) => tags.includes("longer"))!.deadlineAt).toEqual(deadlineAt);
    expect(runs.find(({ tags }) => tags.includes("detached"))!.deadlineAt).toBeNull();
    await run.cancel();
  });

  // DBOS: child-wf-timeout-before-parent
  test("of a child that comes before its parent's fails the parent unless it is caught", async ({
    open,
    queue,
  }) => {
    const child = workflow({ name: "child", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const parent = workflow({ name: "parent", version: 1, queue, retry: once }, async (ctx) =>
      ctx.call(child, undefined, { timeout: 20 }),
    );
    const pawl = open(place);
    await replay(pawl, queue, [parent, child]);
    const run = await pawl.start(parent, undefined, { timeout: "1h" });
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { code: "RUN_TIMED_OUT" },
    });
  });

  // DBOS, Temporal: a workflow that nobody executes times out, too
  test("ends a run that no worker knows", async ({ open, queue }) => {
    const unknown = workflow({ name: "unknown", version: 1, queue: `${queue}-nobody` }, async () => {});
    const other = workflow({ name: "other", version: 1, queue }, async () => {});
    const pawl = open(place);
    await replay(pawl, queue, [other], { lease: "2s" });
    const run = await pawl.start(unknown, undefined, { timeout: 20 });
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
  });

  // Absurd: cancellation by maximum delay
  test("for its beginning ends a run that waited too long, and no other", async ({ open, queue }) => {
    const called: string[] = [];
    const job = workflow(
      { name: "job", version: 1, queue },
      async (_, name: string) => void called.push(name),
    );
    const pawl = open(place);
    const late = await pawl.start(job, "late", { expiresIn: 1 });
    const good = await pawl.start(job, "good", { expiresIn: "1h" });
    await pause(5);
    await replay(pawl, queue, [job], { lease: "2s" });
    await good.result();
    await expect(late.result()).rejects.toMatchObject({ code: "RUN_EXPIRED" });
    expect(called).toEqual(["good"]);
  });

  // Absurd: cancellation by maximum duration
  test("ends a run that would be tried again later", async ({ open, queue }) => {
    let calls = 0;
    const bad = workflow(
      { name: "bad", version: 1, queue, retry: { attempts: 4, initial: "1h" } },
      async () => {
        calls += 1;
        throw new Error("always");
      },
    );
    const pawl = open(place);
    await replay(pawl, queue, [bad]);
    const run = await pawl.start(bad, undefined, { timeout: 3_000 });
    await eventually(() => calls).toBe(1);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
    expect(calls).toBe(1);
  });

  // DBOS: a deadline survives recovery
  test("stays where it was when another worker goes on with the run", async ({ open, queue }) => {
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));
    const pawl = open(place);
    const first = await replay(pawl, queue, [sleeper]);
    const run = await pawl.start(sleeper, undefined, { timeout: "4s" });
    await eventually(() => run.status()).toBe("waiting");
    const { deadlineAt } = (await pawl.get(run.id))!;
    await first.stop();
    await replay(pawl, queue, [sleeper]);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
    expect((await pawl.get(run.id))!.deadlineAt).toEqual(deadlineAt);
  });
});
