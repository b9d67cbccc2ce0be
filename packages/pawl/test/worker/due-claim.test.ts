import { expect, test } from "vitest";
import { PawlError } from "../../src/core/error.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import type { Store } from "../../src/store/store.ts";
import { createManualWorld, type ManualWorld } from "../manual-world.ts";

/** The store, and what a worker has asked it for by name. */
function createView(world: ManualWorld, more: Partial<Store> = {}) {
  const asked: string[] = [];
  const base: Store = { ...world.store, ...more };
  const store: Store = {
    ...base,
    async claimRuns(request) {
      const claim = await base.claimRuns(request);
      if (claim.runs.length > 0) asked.push("claim");
      return claim;
    },
    async wakeDue(limit, holder) {
      const answer = await base.wakeDue(limit, holder);
      if (answer.woken > 0) asked.push(answer.held.length > 0 ? "hold due" : "wake due");
      return answer;
    },
    record(recording) {
      asked.push("record");
      return base.record(recording);
    },
    park(parking) {
      asked.push("park");
      return base.park(parking);
    },
    end(ending) {
      asked.push("end");
      return base.end(ending);
    },
    loadHistory(runId, afterSeq) {
      asked.push("load");
      return base.loadHistory(runId, afterSeq);
    },
  };
  return { asked, store };
}

const nap = workflow({ name: "nap", version: 1 }, async (ctx) => {
  await ctx.sleep("1h");
  return ctx.now();
});

test("a run that slept goes on without being queued, read, or asked to say that its time has come", async () => {
  const world = createManualWorld();
  const { asked, store } = createView(world);
  await world.worker({ workflows: [nap] }, { store }).start();
  const run = await world.client.start(nap);
  await world.advance("30m");
  asked.length = 0;
  await world.advance("1h");
  expect(asked).toEqual(["hold due", "end"]);
  const fired = (await world.store.loadHistory(run.id, 0)).find(({ kind }) => kind === "timer_fired");
  expect(await run.result()).toBe(fired?.at);
});

test.each([
  ["comes with its history, where that is short", 0, ["hold due", "end"]],
  ["is asked for its history, where that is long", 8, ["hold due", "load", "end"]],
] as const)("one that is not in memory %s, and its timer has fired", async (_, steps, calls) => {
  const world = createManualWorld();
  const { asked, store } = createView(world);
  let called = 0;
  const worn = workflow({ name: "worn", version: 1 }, async (ctx) => {
    for (let at = 0; at < steps; at++) await ctx.step("one", () => (called += 1));
    await ctx.sleep("1h");
    return called;
  });
  await world.worker({ workflows: [worn], stickyRuns: 0 }, { store }).start();
  const run = await world.client.start(worn);
  await world.advance("30m");
  asked.length = 0;
  await world.advance("1h");
  expect(asked).toEqual(calls);
  expect(await run.result()).toBe(steps);
  expect(called).toBe(steps);
});

test("a worker wants no histories as long as all that was due last was in its memory", async () => {
  const world = createManualWorld();
  const wanted: (boolean | undefined)[] = [];
  const { store } = createView(world, {
    async wakeDue(limit, waker) {
      const answer = await world.store.wakeDue(limit, waker);
      if (answer.held.length > 0) wanted.push(waker?.histories);
      return answer;
    },
  });
  await world.worker({ workflows: [nap], stickyRuns: 1 }, { store }).start();
  const nightWith = async (runs: number): Promise<void> => {
    const all = await Promise.all(Array.from({ length: runs }, () => world.client.start(nap)));
    await world.advance("3h");
    for (const run of all) expect(await run.status()).toBe("completed");
  };
  for (const runs of [1, 1, 2, 1, 1]) await nightWith(runs);
  // Of two one is not in its memory.
  expect(wanted).toEqual([true, false, false, true, false]);
});

test("of two timers the first to come is given first, whoever says that it has fired", async () => {
  const world = createManualWorld();
  const both = workflow({ name: "both", version: 1 }, async (ctx) => {
    const order: string[] = [];
    const slept = async (name: string, duration: "1h" | "2h"): Promise<void> => {
      await ctx.sleep(duration);
      order.push(name);
    };
    await Promise.all([slept("long", "2h"), slept("short", "1h")]);
    return order;
  });
  await world.worker({ workflows: [both] }).start();
  const run = await world.client.start(both);
  await world.advance("90m");
  expect((await world.store.loadHistory(run.id, 0)).map(({ kind }) => kind)).toEqual([
    "timer_set",
    "timer_set",
    "timer_fired",
  ]);
  await world.advance("1h");
  expect(await run.result()).toEqual(["short", "long"]);
});

test("a wait that times out and a race that a timer wins go on as ever", async () => {
  const waiting = workflow({ name: "waiting", version: 1 }, async (ctx) => {
    const first = await ctx.waitForSignal("a", { timeout: "1h" });
    const winner = await ctx.race({
      late: () => ctx.waitForSignal("b"),
      soon: () => ctx.sleep("1h"),
    });
    return [first, winner.winner];
  });
  for (const stickyRuns of [1_000, 0]) {
    const world = createManualWorld();
    await world.worker({ workflows: [waiting], stickyRuns }).start();
    const run = await world.client.start(waiting);
    await world.advance("3h");
    expect(await run.result()).toEqual([null, "soon"]);
  }
});

test("code that took the new side of a patch goes on there after a timer", async () => {
  const patched = workflow({ name: "patched", version: 1 }, async (ctx) => {
    const slept = ctx.sleep("1h");
    const isNew = ctx.patch("p");
    await slept;
    return ctx.step(isNew ? "new" : "old", () => isNew);
  });
  for (const stickyRuns of [1_000, 0]) {
    const world = createManualWorld();
    await world.worker({ workflows: [patched], stickyRuns }).start();
    const run = await world.client.start(patched);
    await world.advance("2h");
    expect(await run.result()).toBe(true);
  }
});

test("a worker that knows of queued work wakes what is due for everybody", async () => {
  const world = createManualWorld();
  const gate: (() => void)[] = [];
  const busy = workflow({ name: "busy", version: 1 }, async (ctx) =>
    ctx.step("wait", () => new Promise<void>((resolve) => gate.push(resolve))),
  );
  const { asked, store } = createView(world);
  await world.worker({ workflows: [nap, busy], concurrency: 4 }, { store }).start();
  const run = await world.client.start(nap);
  await world.advance("1m");
  await world.client.startMany(
    busy,
    Array.from({ length: 20 }, () => ({})),
  );
  await world.advance("1s");
  asked.length = 0;
  await world.advance("1h");
  expect(asked).toContain("wake due");
  expect(asked).not.toContain("hold due");
  for (let left = 0; left < 40; left++) {
    for (const open of gate.splice(0)) open();
    await world.advance("1s");
  }
  expect(await run.status()).toBe("completed");
});

test("what it could not hold it wakes for everybody, and holds what is due after that", async () => {
  const world = createManualWorld();
  let failures = 1;
  const { asked, store } = createView(world, {
    async wakeDue(limit, holder) {
      const answer = await world.store.wakeDue(limit, holder);
      if (answer.held.length === 0 || failures-- <= 0) return answer;
      throw new PawlError("STORE_UNAVAILABLE", "The answer was lost.");
    },
  });
  await world.worker({ workflows: [nap] }, { store }).start();
  const run = await world.client.start(nap);
  await world.advance("2h");
  expect(await run.status()).toBe("completed");
  const other = await world.client.start(nap);
  asked.length = 0;
  await world.advance("2h");
  expect(asked.slice(-2)).toEqual(["hold due", "end"]);
  expect(await other.status()).toBe("completed");
});

test("a worker of few slots takes what is due in the order of the queue", async () => {
  const world = createManualWorld();
  const { asked, store } = createView(world);
  await world.worker({ workflows: [nap], concurrency: 1 }, { store }).start();
  await world.client.start(nap);
  await world.advance("2h");
  expect(asked).toContain("wake due");
  expect(asked).not.toContain("hold due");
});

const other = workflow({ name: "other", version: 1 }, async () => 1);
const busy = workflow({ name: "busy", version: 1 }, async (ctx) =>
  ctx.step("wait", () => new Promise<void>(() => {})),
);

/** A worker that has one free slot of ten. */
async function createNearlyFull(world: ManualWorld): Promise<void> {
  await world.worker({ workflows: [nap, busy], concurrency: 10 }).start();
  await world.client.startMany(
    busy,
    Array.from({ length: 9 }, () => ({})),
  );
  await world.advance("10m");
}

test("a worker with little room gets done what is due as fast as it can", async () => {
  const world = createManualWorld();
  await createNearlyFull(world);
  const runs = await Promise.all(Array.from({ length: 100 }, () => world.client.start(nap)));
  await world.advance("1h");
  await world.advance("1s");
  const statuses = await Promise.all(runs.map((run) => run.status()));
  expect(new Set(statuses)).toEqual(new Set(["completed"]));
});

test("a worker with some room asks for more when it has got done what it took", async () => {
  const world = createManualWorld();
  await world.worker({ workflows: [nap, busy], concurrency: 20 }).start();
  await world.client.startMany(
    busy,
    Array.from({ length: 12 }, () => ({})),
  );
  await world.advance("10m");
  const runs = await Promise.all(Array.from({ length: 100 }, () => world.client.start(nap)));
  await world.advance("1h");
  await world.advance("1s");
  const statuses = await Promise.all(runs.map((run) => run.status()));
  expect(new Set(statuses)).toEqual(new Set(["completed"]));
});

test("what nobody takes does not keep back what is due behind it", async () => {
  const world = createManualWorld();
  await createNearlyFull(world);
  await world.client.startMany(
    other,
    Array.from({ length: 60 }, () => ({ delay: "1h" as const })),
  );
  const run = await world.client.start(nap);
  await world.advance("1h");
  await world.advance("300ms");
  expect(await run.status()).toBe("completed");
});

test("a worker that rests lives on, whatever is due for others", async () => {
  const world = createManualWorld();
  await world.worker({ workflows: [nap] }).start();
  await world.client.startMany(
    other,
    [10, 12, 17, 22].map((minutes) => ({ delay: `${minutes}m` as const })),
  );
  await world.advance("40m");
  expect(world.lines.filter(({ level }) => level === "warn")).toEqual([]);
});

test("who waits until nothing is due does not wait for what is due for others", async () => {
  const world = createManualWorld();
  await world.client.startMany(
    other,
    Array.from({ length: 600 }, () => ({ delay: "10m" as const })),
  );
  await world.advance("10m");
  const idle = world.worker({ workflows: [nap], concurrency: 10 }).runUntilIdle();
  await world.advance("1s");
  expect(await idle).toMatchObject({ isIdle: true });
});

test("a worker that is being stopped takes nothing that is due", async () => {
  const world = createManualWorld();
  const { asked, store } = createView(world);
  const worker = world.worker({ workflows: [nap, busy] }, { store });
  await worker.start();
  await world.client.start(nap);
  await world.client.start(busy);
  await world.advance("59m");
  asked.length = 0;
  const stopped = worker.stop({ timeout: "2h" });
  await world.advance("2h");
  await stopped;
  expect(asked).not.toContain("hold due");
});
