import { describe, expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { silentLog } from "../../src/core/log.ts";
import { createEmit, type PawlEvent } from "../../src/core/pawl-event.ts";
import { workflow, type Workflow } from "../../src/runtime/workflow.ts";
import type { Store } from "../../src/store/store.ts";
import { createManualWorld } from "../manual-world.ts";
import { createGate } from "../runtime/gate.ts";

/** A world with one worker, and all that it and a client tell. */
async function createWatched(workflows: readonly Workflow[], seen = (store: Store): Store => store) {
  const world = createManualWorld();
  const events: PawlEvent[] = [];
  const emit = (event: PawlEvent): void => void events.push(event);
  const client = createClient(world.seams({ emit }));
  // Code that changes while a run sleeps is met by replay alone.
  const worker = world.worker({ workflows, stickyRuns: 0 }, { store: seen(world.store), emit });
  await worker.start();
  return { world, client, worker, events, kinds: () => events.map(({ kind }) => kind) };
}

const about = (runId: string, name: string) => ({ runId, workflow: name, version: 1, queue: "default" });

describe("what onEvent is told", () => {
  test("a run's way from its start to its end, each fact once", async () => {
    const order = workflow({ name: "order", version: 1 }, async (ctx) => {
      await ctx.step("reserve", () => "held");
      await ctx.sleep("1m");
      return "sent";
    });
    const { world, client, worker, events, kinds } = await createWatched([order]);
    const begunAt = world.clock.now();
    const run = await client.start(order, undefined, { key: "o:1" });
    await client.start(order, undefined, { key: "o:1" });
    await world.advance("2m");
    await worker.stop();
    expect(kinds()).toEqual([
      "worker.started",
      "run.started",
      "run.claimed",
      "step.completed",
      "run.parked",
      "run.claimed",
      "run.completed",
      "worker.stopped",
    ]);
    const held = { ...about(run.id, "order"), attempt: 1, workerId: expect.any(String) as string };
    expect(events[1]).toMatchObject({ ...about(run.id, "order"), key: "o:1" });
    expect(events[2]).toMatchObject({ ...held, waitedMs: 0 });
    expect(events[3]).toMatchObject({ ...held, step: "reserve", durationMs: 0 });
    expect(events[4]).toMatchObject({ ...held, reason: "waiting", dueAt: new Date(begunAt + 60_000) });
    expect(events[6]).toMatchObject({ ...held, durationMs: expect.closeTo(60_000, -3) as number });
    for (const { at } of events) expect(at.getTime()).toBeGreaterThanOrEqual(begunAt);
  });

  test.for([
    ["end", "run.completed"],
    ["park", "run.parked"],
    ["release", "run.released"],
  ] as const)(
    "no lost lease where the store has let go of a run by its own %s, and a heartbeat tells it first",
    async ([call, told]) => {
      const gate = createGate();
      const order = workflow({ name: "order", version: 1 }, async (ctx) => {
        if (call === "park") await ctx.sleep("1h");
        if (call === "release") await ctx.step("take", () => gate.opened);
        if (call === "release") await ctx.sleep("1h");
      });
      const late = createGate();
      const answerLate = (store: Store): Store => ({
        ...store,
        async [call](given: never) {
          const answer = await (store[call] as (given: never) => Promise<unknown>)(given);
          await late.opened;
          return answer;
        },
      });
      const { world, client, worker, kinds } = await createWatched([order], answerLate);
      await client.start(order);
      await world.advance("1s");
      if (call === "release") void worker.stop();
      gate.open();
      await world.advance("20s");
      expect(kinds()).not.toContain(told);
      late.open();
      await world.advance("1s");
      expect(kinds()).toContain(told);
      expect(kinds()).not.toContain("lease.lost");
    },
  );

  test("failed steps, failed attempts with the next delay, and the end", async () => {
    const flaky = workflow(
      { name: "flaky", version: 1, retry: { attempts: 2, initial: "10s", jitter: false } },
      async (ctx) => {
        await ctx.step("charge", () => {
          throw new TypeError("declined");
        });
      },
    );
    const { world, client, events, kinds } = await createWatched([flaky]);
    await client.start(flaky);
    await world.advance("1m");
    expect(kinds().slice(2)).toEqual([
      "run.claimed",
      "step.failed",
      "attempt.failed",
      "run.parked",
      "run.claimed",
      "step.failed",
      "run.failed",
    ]);
    const error = { name: "TypeError", message: "declined" };
    expect(events[3]).toMatchObject({ step: "charge", attempt: 1, error });
    expect(events[4]).toMatchObject({ attempt: 1, nextDelayMs: 10_000, error });
    expect(events[5]).toMatchObject({ reason: "retry" });
    expect(events[8]).toMatchObject({ attempt: 2, error });
  });

  test("cancelled and timed out runs", async () => {
    const wait = workflow({ name: "wait", version: 1, timeout: "1m" }, async (ctx) => {
      await ctx.waitForSignal("never");
    });
    const { world, client, kinds } = await createWatched([wait]);
    const cancelled = await client.start(wait);
    await client.start(wait);
    await world.advance("1s");
    await cancelled.cancel();
    await world.advance("2m");
    expect(kinds().filter((kind) => kind === "run.cancelled")).toHaveLength(1);
    expect(kinds().filter((kind) => kind === "run.timed_out")).toHaveLength(1);
  });

  test("a run whose code does not fit its history", async () => {
    let name = "first";
    const changed = workflow({ name: "changed", version: 1 }, async (ctx) => {
      await ctx.step(name, () => 1);
      await ctx.sleep("1s");
    });
    const { world, client, events, kinds } = await createWatched([changed]);
    await client.start(changed);
    await world.rest();
    name = "second";
    await world.advance("4s");
    expect(kinds().at(-1)).toBe("run.blocked");
    expect(events.at(-1)).toMatchObject({ workflow: "changed", dueAt: expect.any(Date) as Date });
  });

  test("an expired worker, its lost leases, and what its peers recover", async () => {
    const world = createManualWorld();
    const events: PawlEvent[] = [];
    let isDown = false;
    const store: Store = {
      ...world.store,
      heartbeat: (beat) => (isDown ? new Promise(() => {}) : world.store.heartbeat(beat)),
    };
    const stuck = workflow({ name: "stuck", version: 1 }, async (ctx) => {
      await ctx.step("hang", () => new Promise(() => {}));
    });
    const emit = (event: PawlEvent): void => void events.push(event);
    await world.worker({ workflows: [stuck] }, { store, emit }).start();
    const run = await world.client.start(stuck);
    await world.advance("1s");
    isDown = true;
    await world.advance("16s");
    const expired = events.find(({ kind }) => kind === "worker.expired");
    expect(expired).toMatchObject({ held: 1, wasBlocked: false });
    const lost = events.find(({ kind }) => kind === "lease.lost");
    expect(lost).toMatchObject({ ...about(run.id, "stuck"), attempt: 1 });
    expect((lost as { readonly workerId: string }).workerId).toBe(
      (expired as { readonly workerId: string }).workerId,
    );
  });

  test("runs that are given back when a worker stops", async () => {
    const stuck = workflow({ name: "stuck", version: 1 }, async (ctx) => {
      await ctx.step("hang", () => new Promise(() => {}));
    });
    const { world, client, worker, kinds } = await createWatched([stuck]);
    await client.start(stuck);
    await world.advance("1s");
    const stopped = worker.stop({ timeout: 0 });
    await world.advance(1);
    await stopped;
    expect(kinds().slice(3)).toEqual(["run.released", "worker.stopped"]);
  });

  test("a hook that throws or rejects is logged, and changes nothing", async () => {
    const warnings: unknown[] = [];
    const log = { ...silentLog, warn: (_: string, fields: unknown) => void warnings.push(fields) };
    const world = createManualWorld();
    let calls = 0;
    const emit = createEmit(() => {
      calls += 1;
      if (calls % 2 === 0) throw new Error("thrown");
      return Promise.reject(new Error("rejected"));
    }, log);
    const job = workflow({ name: "job", version: 1 }, async (ctx) => ctx.step("work", () => 1));
    await world.worker({ workflows: [job] }, { emit }).start();
    const run = await world.client.start(job);
    await world.advance("1s");
    expect(await run.result()).toBe(1);
    expect(calls).toBeGreaterThan(3);
    expect(warnings).toHaveLength(calls);
  });
});

test("a step that blocked the event loop is named, though it has ended by the time it is noticed", async () => {
  const world = createManualWorld();
  const events: PawlEvent[] = [];
  const heavy = workflow({ name: "heavy", version: 1 }, async (ctx) => {
    await ctx.step("crunch numbers", () => world.block("11s"));
    await ctx.step("after", () => 1);
  });
  // The store answers late, so that the run is still held when the heartbeat comes.
  const store: Store = {
    ...world.store,
    async record(recording) {
      await new Promise<void>((resolve) => void world.seams().timers.after(1, resolve));
      return world.store.record(recording);
    },
  };
  await world.worker({ workflows: [heavy] }, { store, emit: (event) => void events.push(event) }).start();
  const run = await world.client.start(heavy);
  await world.rest();
  await world.advance(2);
  const blocked = events.find(({ kind }) => kind === "worker.blocked_loop");
  expect(blocked).toMatchObject({ steps: [{ runId: run.id, step: "crunch numbers" }] });
  const warning = world.lines.find(({ message }) => message.includes("event loop was blocked"));
  expect(warning?.fields["steps"]).toEqual([{ runId: run.id, step: "crunch numbers" }]);
});
