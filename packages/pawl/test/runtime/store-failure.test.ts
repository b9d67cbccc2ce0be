import { expect, test } from "vitest";
import { workflow } from "../../src/runtime/workflow.ts";
import type { Recording } from "../../src/store/lease.ts";
import type { Store } from "../../src/store/store.ts";
import { createEngine, type Engine } from "./engine.ts";
import { createGate } from "./gate.ts";

const options = { version: 1, crashLimit: 1_000 } as const;

for (const when of ["before", "after"] as const) {
  test(`a write that fails ${when} it is applied is repeated, and counts once`, async () => {
    const engine = createEngine({ failAt: (call, at) => at === when && call % 3 !== 0 });
    const called: string[] = [];
    const child = workflow({ ...options, name: "child" }, async (_ctx, n: number) => n * 2);
    const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
      const a = await ctx.step("a", () => (called.push("a"), 1));
      await ctx.sleep("1m");
      const b = await ctx.call(child, 20);
      return ctx.step("c", () => (called.push("c"), a + b));
    });
    engine.register(child);
    const id = await engine.start(tested);
    await engine.end(id);
    expect(await engine.output(id)).toBe(41);
    expect(called).toEqual(["a", "c"]);
    expect((await engine.facts(id)).length).toBe(new Set(await engine.facts(id)).size);
  });
}

test("the time of a record whose answer was lost is the time it was recorded at", async () => {
  const times: number[][] = [];
  const engine = createEngine({ failAt: (call, when) => call === 1 && when === "after" });
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const seen: number[] = [];
    times.push(seen);
    await ctx.step("a", () => 1);
    seen.push(ctx.now());
    await ctx.sleep("1h");
    seen.push(ctx.now());
  });
  const startedAt = engine.clock.now();
  const id = await engine.start(tested);
  await engine.end(id);
  expect(times).toEqual([[startedAt], [startedAt, expect.any(Number)]]);
});

test("a run whose lease is gone is dropped: no more calls, and its code hears nothing any more", async () => {
  const engine = createEngine();
  const gate = createGate();
  const heard: string[] = [];
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const never = ctx.step("b", ({ signal }) => {
      signal.addEventListener("abort", () => heard.push("abort"));
      return new Promise(() => {});
    });
    await ctx.step("a", () => gate.opened);
    heard.push("after a");
    await never;
  });
  const id = await engine.start(tested);
  await engine.idle();
  // Somebody else takes it from under the worker's feet.
  await engine.store.retireWorker("worker-0");
  await engine.store.registerWorker({
    id: "thief",
    leaseMs: 1e9,
    host: "",
    pid: 1,
    queues: [],
    concurrency: 1,
  });
  const lane = { queue: "default", workflow: "tested", version: 1, after: null, crashLimit: 3 };
  await engine.store.claimRuns({ workerId: "thief", lanes: [lane], limit: 1, suspects: false, begin: true });
  gate.open();
  expect(await engine.executions[0]!.done).toBe("lost");
  const calls = engine.calls.length;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([heard, engine.calls.length]).toEqual([["abort"], calls]);
  expect(await engine.facts(id)).toEqual([]);
});

test("an execution that is dropped stops at once, even in the middle of a call to the store", async () => {
  const engine = createEngine({ crashAt: (call, when) => call === 1 && when === "after" });
  const heard: string[] = [];
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    await ctx.step("a", () => 1);
    heard.push(`after a in attempt ${ctx.run.attempt}`);
  });
  const id = await engine.start(tested);
  await engine.end(id);
  expect(engine.outcomes).toEqual(["lost", "ended"]);
  expect(heard).toEqual(["after a in attempt 2"]);
});

test("a released run is given back when its running step has ended, and nothing new begins", async () => {
  const engine = createEngine();
  const gate = createGate();
  const called: string[] = [];
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    await ctx.step("a", async () => {
      called.push("a");
      await gate.opened;
    });
    await ctx.step("b", () => void called.push("b"));
  });
  const id = await engine.start(tested);
  await engine.idle();
  const [execution] = engine.executions;
  expect(execution!.stepsInProgress().map(({ key }) => key)).toEqual(["a"]);
  execution!.release();
  await engine.idle();
  expect(engine.outcomes).toEqual([]);
  gate.open();
  expect(await execution!.done).toBe("released");
  expect(called).toEqual(["a"]);
  await engine.end(id);
  expect(called).toEqual(["a", "b"]);
});

test("a released job without requests is let run to its end", async () => {
  const engine = createEngine();
  const gate = createGate();
  const job = workflow({ ...options, name: "job" }, async () => gate.opened.then(() => "done"));
  const id = await engine.start(job);
  await engine.idle();
  engine.executions[0]!.release();
  await engine.idle();
  gate.open();
  await engine.idle();
  expect([engine.outcomes, await engine.output(id)]).toEqual([["ended"], "done"]);
});

test("a run whose workflow is not registered is given back", async () => {
  const job = workflow({ ...options, name: "job" }, async () => 1);
  let looks = 0;
  const engine = createEngine({ deps: { findWorkflow: () => (looks++ === 0 ? undefined : job) } });
  const id = await engine.start(job);
  await engine.idle();
  expect([engine.outcomes, await engine.output(id)]).toEqual([["released", "ended"], 1]);
});

test("what many steps return at once goes to the store in writes of bounded size", async () => {
  const sizes: number[] = [];
  const engine: Engine = createEngine({ deps: { store: measured(() => engine.store, sizes) } });
  const gate = createGate();
  const large = "x".repeat(1_000_000);
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => ctx.step(`${n}`, () => gate.opened.then(() => large))),
    );
    return results.filter((result) => result === large).length;
  });
  const id = await engine.start(tested);
  await engine.idle();
  gate.open();
  await engine.end(id);
  expect(await engine.output(id)).toBe(20);
  expect(Math.max(...sizes)).toBeLessThan(5_000_000);
  expect(sizes.filter((size) => size > 0).length).toBeLessThan(10);
});

test("a history whose end is missing is not replayed: nothing is called again", async () => {
  const engine: Engine = createEngine({ deps: { store: forgetful(() => engine.store) } });
  const called: string[] = [];
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    await ctx.step("a", () => void called.push("a"));
    await ctx.waitForSignal("go");
  });
  const id = await engine.start(tested);
  await engine.idle();
  await engine.tell(id, "signal:go");
  await engine.idle();
  expect(called).toEqual(["a"]);
  expect(engine.outcomes).toEqual(["parked", "lost"]);
  expect(engine.log.map(({ message }) => message)).toContain(
    "A bug in Pawl stopped the execution: please report it.",
  );
});

/** A store that leaves out the newest fact. */
function forgetful(store: () => Store): Store {
  return new Proxy<Store>({} as Store, {
    get:
      (_, name: keyof Store) =>
      async (...args: readonly unknown[]): Promise<unknown> => {
        const answer = await (store()[name] as (...args: readonly unknown[]) => unknown)(...args);
        return name === "loadHistory" ? (answer as readonly unknown[]).slice(0, -1) : answer;
      },
  });
}

/** A store that notes how much it is given to record. */
function measured(store: () => Store, sizes: number[]): Store {
  return new Proxy<Store>({} as Store, {
    get:
      (_, name: keyof Store) =>
      (...args: readonly unknown[]): unknown => {
        const { events = [] } = (args[0] ?? {}) as Partial<Recording>;
        sizes.push(events.reduce((sum, { data }) => sum + (data?.json.length ?? 0), 0));
        return (store()[name] as (...args: readonly unknown[]) => unknown)(...args);
      },
  });
}
