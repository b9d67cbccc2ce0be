import { describe, expect, test } from "vitest";
import { workflow } from "../../src/runtime/workflow.ts";
import type { IdleSummary } from "../../src/worker/until-idle.ts";
import { createManualWorld } from "../manual-world.ts";

const nothing: IdleSummary = {
  isIdle: true,
  claimed: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  timedOut: 0,
  parked: 0,
  blocked: 0,
  released: 0,
  lost: 0,
};

const job = workflow({ name: "job", version: 1 }, async (ctx) => ctx.step("work", () => 1));
const nap = workflow({ name: "nap", version: 1 }, async (ctx, ms: number) => ctx.sleep(ms));

/** Whether a promise has settled, and with what. */
function watch<Value>(promise: Promise<Value>): { value: Value | null } {
  const seen: { value: Value | null } = { value: null };
  void promise.then((value) => (seen.value = value));
  return seen;
}

describe("a worker that runs until it is idle", () => {
  test("returns at once where there is nothing to do, and leaves no timer behind", async () => {
    const world = createManualWorld();
    expect(await world.worker({ workflows: [job] }).runUntilIdle()).toEqual(nothing);
    expect(world.plannedCalls()).toBe(0);
    expect(await world.store.listWorkers({ endedWithinMs: 0, limit: 9 })).toMatchObject([{ isAlive: false }]);
  });

  test("executes all that can be claimed, and what becomes ready meanwhile", async () => {
    const world = createManualWorld();
    const parent = workflow({ name: "parent", version: 1 }, async (ctx) => {
      const parts = await Promise.all([ctx.call(job), ctx.call(job), ctx.call(job)]);
      return parts.length;
    });
    const run = await world.client.start(parent);
    for (let count = 0; count < 20; count += 1) await world.client.start(job);
    const worker = world.worker({ workflows: [parent, job], concurrency: 2 });
    const done = watch(worker.runUntilIdle());
    await world.advance("1s");
    expect(await run.status()).toBe("completed");
    expect(done.value).toMatchObject({ isIdle: true, completed: 24, failed: 0, released: 0, lost: 0 });
    expect(done.value!.claimed).toBe(24 + done.value!.parked);
  });

  test("does not return while a step is running", async () => {
    const world = createManualWorld();
    let open = (): void => {};
    const gated = workflow({ name: "gated", version: 1 }, async (ctx) =>
      ctx.step("wait", () => new Promise<void>((resolve) => (open = resolve))),
    );
    await world.client.start(gated);
    const done = watch(world.worker({ workflows: [gated] }).runUntilIdle());
    await world.advance("5m");
    expect(done.value).toBeNull();
    open();
    await world.advance("1s");
    expect(done.value).toEqual({ ...nothing, claimed: 1, completed: 1 });
  });

  test("leaves what is due later, but takes what is due now", async () => {
    const world = createManualWorld();
    const late = await world.client.start(job, undefined, { delay: "1h" });
    const due = await world.client.start(job, undefined, { delay: "1m" });
    await world.advance("2m");
    const done = watch(world.worker({ workflows: [job] }).runUntilIdle());
    await world.advance(100);
    expect(done.value).toEqual({ ...nothing, claimed: 1, completed: 1 });
    expect(await due.status()).toBe("completed");
    expect(await late.status()).toBe("pending");
  });

  test("lingers for what is due soon", async () => {
    const world = createManualWorld();
    const soon = await world.client.start(nap, 700);
    const later = await world.client.start(nap, 60_000);
    const done = watch(world.worker({ workflows: [nap] }).runUntilIdle({ linger: "1s" }));
    await world.advance(600);
    expect(done.value).toBeNull();
    await world.advance("1s");
    expect(done.value).toEqual({ ...nothing, claimed: 3, completed: 1, parked: 2 });
    expect([await soon.status(), await later.status()]).toEqual(["completed", "waiting"]);
  });

  test("does not linger for ever over what others will execute", async () => {
    const world = createManualWorld();
    const theirs = workflow({ name: "theirs", version: 1 }, async () => {});
    for (let ms = 100; ms <= 60_000; ms += 100) await world.client.start(theirs, undefined, { delay: ms });
    const done = watch(world.worker({ workflows: [job] }).runUntilIdle({ linger: "1s" }));
    await world.advance("900ms");
    expect(done.value).toBeNull();
    await world.advance("300ms");
    expect(done.value).toEqual(nothing);
  });

  test("takes over what dead workers held, suspects one at a time", async () => {
    const world = createManualWorld();
    const runs = await Promise.all(Array.from({ length: 3 }, () => world.client.start(job)));
    const lane = { queue: "default", workflow: "job", version: 1, after: null, crashLimit: 3 };
    for (let crash = 0; crash < 2; crash += 1) {
      const id = world.seams().ids.next();
      await world.store.registerWorker({ id, leaseMs: 1_000, host: "", pid: 1, queues: [], concurrency: 9 });
      await world.store.claimRuns({ workerId: id, lanes: [lane], limit: 9, suspects: false, begin: true });
      await world.advance("2s");
      if (crash === 0) await world.store.sweep({ limit: 100, after: null });
    }
    const done = watch(world.worker({ workflows: [job] }).runUntilIdle());
    await world.advance("100ms");
    expect(done.value).toEqual({ ...nothing, claimed: 3, completed: 3 });
    expect(await Promise.all(runs.map((run) => run.status()))).toEqual([
      "completed",
      "completed",
      "completed",
    ]);
  });

  test("stops when its time is up, and gives back what it holds", async () => {
    const world = createManualWorld();
    const endless = workflow({ name: "endless", version: 1 }, async (ctx) => {
      for (;;)
        await ctx.step(
          "work",
          () => new Promise<void>((resolve) => world.seams().timers.after(900, resolve)),
        );
    });
    const run = await world.client.start(endless);
    const done = watch(world.worker({ workflows: [endless] }).runUntilIdle({ timeout: "10s" }));
    await world.advance("9s");
    expect(done.value).toBeNull();
    await world.advance("2s");
    expect(done.value).toEqual({ ...nothing, isIdle: false, claimed: 1, released: 1 });
    expect(await run.status()).toBe("pending");
  });

  test("ends when it is stopped", async () => {
    const world = createManualWorld();
    const stuck = workflow({ name: "stuck", version: 1 }, async (ctx) =>
      ctx.step("hang", () => new Promise<void>(() => {})),
    );
    await world.client.start(stuck);
    const worker = world.worker({ workflows: [stuck] });
    const done = watch(worker.runUntilIdle());
    await world.advance("1s");
    const stopped = worker.stop({ timeout: "1s" });
    await world.advance("2s");
    await stopped;
    expect(done.value).toEqual({ ...nothing, isIdle: false, claimed: 1, released: 1 });
  });

  test("goes on while the store is away for a moment", async () => {
    const world = createManualWorld();
    await world.client.start(job);
    let claims = 0;
    const store = {
      ...world.store,
      claimRuns: (...args: Parameters<typeof world.store.claimRuns>) => {
        claims += 1;
        return claims < 4 ? Promise.reject(new Error("away")) : world.store.claimRuns(...args);
      },
    };
    const done = watch(world.worker({ workflows: [job] }, { store }).runUntilIdle());
    await world.advance("10s");
    expect(done.value).toEqual({ ...nothing, claimed: 1, completed: 1 });
  });

  test("is used once", async () => {
    const world = createManualWorld();
    const worker = world.worker({ workflows: [job] });
    await worker.runUntilIdle();
    await expect(worker.start()).rejects.toMatchObject({ code: "CLOSED" });
    await expect(worker.runUntilIdle()).rejects.toMatchObject({ code: "CLOSED" });
    const started = world.worker({ workflows: [job] });
    await started.start();
    await expect(started.runUntilIdle()).rejects.toMatchObject({ code: "CLOSED" });
    await started.stop();
  });

  test("takes no option it does not know", async () => {
    const worker = createManualWorld().worker({ workflows: [job] });
    await expect(worker.runUntilIdle({ timout: 1 } as never)).rejects.toThrow('Did you mean "timeout"?');
  });
});
