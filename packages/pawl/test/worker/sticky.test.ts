import { expect, test } from "vitest";
import { workflow } from "../../src/runtime/workflow.ts";
import type { Store } from "../../src/store/store.ts";
import { createManualWorld, type ManualWorld } from "../manual-world.ts";

/** A workflow that sleeps twice, and how often its code began. */
function createSleeper() {
  const begun: string[] = [];
  const sleeper = workflow({ name: "sleeper", version: 1 }, async (ctx, input: string) => {
    begun.push(input);
    await ctx.step("first", () => {});
    await ctx.sleep("1h");
    await ctx.step("second", () => {});
    await ctx.sleep("1h");
    return ctx.random();
  });
  return { sleeper, begun };
}

/** What a worker sees of the store: it may be kept from claiming, and what it reads is counted. */
function createView(world: ManualWorld) {
  const view = { isClaiming: true, histories: 0, inboxes: 0 };
  const store: Store = {
    ...world.store,
    async claimRuns(request) {
      if (view.isClaiming) return world.store.claimRuns(request);
      return { runs: [], suspectsWaiting: false, now: await world.store.now() };
    },
    wakeDue: (limit, holder) => world.store.wakeDue(limit, view.isClaiming ? holder : undefined),
    loadHistory(runId, afterSeq) {
      view.histories += 1;
      return world.store.loadHistory(runId, afterSeq);
    },
    readInbox(look) {
      view.inboxes += 1;
      return world.store.readInbox(look);
    },
  };
  return { view, store };
}

test("a run that its worker gets again goes on without being read or replayed", async () => {
  const world = createManualWorld();
  const { sleeper, begun } = createSleeper();
  const { view, store } = createView(world);
  await world.worker({ workflows: [sleeper] }, { store }).start();
  const run = await world.client.start(sleeper, "a");
  await world.advance("3h");
  expect(await run.status()).toBe("completed");
  expect(begun).toEqual(["a"]);
  expect(view).toEqual({ isClaiming: true, histories: 0, inboxes: 0 });
});

test("what it computes is what replay would have computed", async () => {
  const outputs: unknown[] = [];
  for (const stickyRuns of [1_000, 0]) {
    const world = createManualWorld();
    const { sleeper, begun } = createSleeper();
    await world.worker({ workflows: [sleeper], stickyRuns }).start();
    const run = await world.client.start(sleeper, "a");
    await world.advance("3h");
    outputs.push(await run.result());
    expect(begun).toHaveLength(stickyRuns === 0 ? 3 : 1);
  }
  expect(outputs[0]).toBe(outputs[1]);
});

test("a run that another worker had in between is replayed", async () => {
  const world = createManualWorld();
  const { sleeper, begun } = createSleeper();
  const here = createView(world);
  const there = createView(world);
  there.view.isClaiming = false;
  await world.worker({ workflows: [sleeper] }, { store: here.store }).start();
  await world.worker({ workflows: [sleeper] }, { store: there.store }).start();
  const run = await world.client.start(sleeper, "a");
  await world.advance("30m");
  here.view.isClaiming = false;
  there.view.isClaiming = true;
  await world.advance("1h");
  here.view.isClaiming = true;
  there.view.isClaiming = false;
  await world.advance("1h");
  expect(await run.status()).toBe("completed");
  expect(begun).toHaveLength(3);
});

test("a run that was paused and resumed meanwhile is replayed", async () => {
  const world = createManualWorld();
  const { sleeper, begun } = createSleeper();
  await world.worker({ workflows: [sleeper] }).start();
  const run = await world.client.start(sleeper, "a");
  await world.advance("10m");
  await run.pause();
  await world.advance("10m");
  await run.resume();
  await world.advance("3h");
  expect(await run.status()).toBe("completed");
  expect(begun).toHaveLength(2);
});

test("beyond the bound, the run that was parked longest ago is replayed", async () => {
  const world = createManualWorld();
  const { sleeper, begun } = createSleeper();
  await world.worker({ workflows: [sleeper], stickyRuns: 1 }).start();
  await world.client.start(sleeper, "a");
  await world.advance("1m");
  await world.client.start(sleeper, "b");
  await world.advance("30m");
  expect(begun).toEqual(["a", "b"]);
  await world.advance("30m");
  expect(begun).toEqual(["a", "b", "a"]);
  await world.advance("1m");
  expect(begun).toEqual(["a", "b", "a", "b"]);
});

test("a worker that goes on under a new id replays what it has kept", async () => {
  const world = createManualWorld();
  const { sleeper, begun } = createSleeper();
  await world.worker({ workflows: [sleeper] }).start();
  const run = await world.client.start(sleeper, "a");
  await world.advance("10m");
  world.block("30m");
  await world.advance("3h");
  expect(await run.status()).toBe("completed");
  expect(begun).toHaveLength(2);
});

test("what a worker has kept ends with it", async () => {
  const world = createManualWorld();
  const { sleeper, begun } = createSleeper();
  const worker = world.worker({ workflows: [sleeper] });
  await worker.start();
  const run = await world.client.start(sleeper, "a");
  await world.advance("10m");
  await worker.stop();
  await world.worker({ workflows: [sleeper] }).start();
  await world.advance("3h");
  expect(await run.status()).toBe("completed");
  expect(begun).toHaveLength(2);
});

test("code that went on by itself while its run was parked is not trusted", async () => {
  const world = createManualWorld();
  let open = (): void => {};
  const gate = new Promise<string>((resolve) => {
    open = () => resolve("gate");
  });
  const begun: string[] = [];
  const called: string[] = [];
  const astray = workflow({ name: "astray", version: 1 }, async (ctx) => {
    begun.push("code");
    const sleep = ctx.sleep("1h").then(() => "sleep");
    // As if somebody had rung, the first time only.
    const winner = await (begun.length === 1 ? Promise.race([sleep, gate]) : sleep);
    await ctx.step(winner, () => void called.push(winner));
    return winner;
  });
  await world.worker({ workflows: [astray] }).start();
  const run = await world.client.start(astray);
  await world.advance("10m");
  open();
  await world.advance("1h");
  expect(await run.result()).toBe("sleep");
  expect(called).toEqual(["sleep"]);
  expect(begun).toHaveLength(2);
  expect(world.lines.map(({ message }) => message)).toContain(
    "The run was parked while its code awaited something other than its context: put that into a step.",
  );
});

test("signals and children wake what was kept, and no timer fires early", async () => {
  const world = createManualWorld();
  const begun: string[] = [];
  const child = workflow({ name: "child", version: 1 }, async (ctx) => {
    await ctx.sleep("30m");
    return "child";
  });
  const parent = workflow({ name: "parent", version: 1 }, async (ctx) => {
    begun.push("parent");
    const nap = ctx.sleep("2h").then(() => "slept");
    const first = await ctx.waitForSignal("go", { timeout: "1h" });
    const second = await ctx.call(child);
    const third = await ctx.waitForSignal("go", { timeout: "1h" });
    return [first, second, third, await nap];
  });
  await world.worker({ workflows: [parent, child] }).start();
  const run = await world.client.start(parent);
  const startedAt = world.clock.now();
  await world.advance("20m");
  await run.signal("go", "went");
  await world.advance("4h");
  expect(await run.result()).toEqual(["went", "child", null, "slept"]);
  expect(begun).toEqual(["parent"]);
  const minutes = (await run.history())
    .filter(({ kind }) => kind !== "timer_set")
    .map(({ kind, at }) => [kind, Math.floor((at.getTime() - startedAt) / 60_000)]);
  expect(minutes).toEqual([
    ["signal_received", 20],
    ["child_started", 20],
    ["child_ended", 50],
    ["timer_fired", 110],
    ["timer_fired", 120],
    ["completed", 120],
  ]);
});

test("a kept run that is cancelled runs its finally blocks and ends", async () => {
  const world = createManualWorld();
  const seen: string[] = [];
  const stuck = workflow({ name: "stuck", version: 1 }, async (ctx) => {
    seen.push("begun");
    try {
      await ctx.waitForSignal("never");
    } finally {
      seen.push("finally");
    }
  });
  await world.worker({ workflows: [stuck] }).start();
  const run = await world.client.start(stuck);
  await world.advance("1h");
  await run.cancel();
  await world.advance("1m");
  expect(await run.status()).toBe("cancelled");
  expect(seen).toEqual(["begun", "finally"]);
});

test("a kept run that must not be executed twice counts as begun when it goes on", async () => {
  const world = createManualWorld();
  const begun: string[] = [];
  const once = workflow({ name: "once", version: 1, onCrash: "fail" }, async (ctx) => {
    begun.push("code");
    await ctx.sleep("1h");
    await ctx.step("hang", () => new Promise(() => {}));
  });
  const begins: number[] = [];
  const store: Store = {
    ...world.store,
    begin(lease) {
      begins.push(lease.epoch);
      return world.store.begin(lease);
    },
  };
  await world.worker({ workflows: [once] }, { store }).start();
  await world.client.start(once);
  await world.advance("61m");
  expect(begins).toEqual([1, 2]);
  expect(begun).toHaveLength(1);
});
