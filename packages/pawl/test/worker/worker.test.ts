import { describe, expect, test } from "vitest";
import { PawlError } from "../../src/core/error.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import type { Store } from "../../src/store/store.ts";
import type { Worker } from "../../src/worker/worker.ts";
import { createManualWorld, type ManualWorld } from "../manual-world.ts";

const greet = workflow({ name: "greet", version: 1 }, async (ctx, name: string) => {
  const text = await ctx.step("write", () => `Hello ${name}`);
  await ctx.sleep("10m");
  return `${text}!`;
});

/** A workflow whose one step ends when the test says so. */
function createGate(name = "gated") {
  const opens: ((value: string) => void)[] = [];
  let aborted = 0;
  const gated = workflow({ name, version: 1 }, async (ctx) => {
    const text = await ctx.step("wait at the gate", ({ signal }) => {
      signal.addEventListener("abort", () => (aborted += 1));
      return new Promise<string>((resolve) => opens.push(resolve));
    });
    return text;
  });
  return {
    gated,
    /** Steps begun so far. */
    begun: () => opens.length,
    aborted: () => aborted,
    /** Ends the step that began as the n-th, from 0. */
    open: (index: number, value = "open") => opens[index]?.(value),
  };
}

async function started(world: ManualWorld, ...args: Parameters<ManualWorld["worker"]>): Promise<Worker> {
  const worker = world.worker(...args);
  await worker.start();
  return worker;
}

/** A store whose answers fail while `isDown` says so. */
function unreliable(store: Store, isDown: () => boolean): Store {
  const guarded = Object.entries(store).map(([name, call]) => [
    name,
    (...args: never[]) => {
      if (name !== "subscribe" && isDown()) throw new PawlError("STORE_UNAVAILABLE", "The store is down.");
      return (call as (...args: never[]) => unknown)(...args);
    },
  ]);
  return Object.fromEntries(guarded) as Store;
}

describe("a worker that holds nothing", () => {
  /** When it was heard, by the clock. */
  function listen(world: ManualWorld): { readonly store: Store; readonly beats: number[] } {
    const beats: number[] = [];
    const heartbeat: Store["heartbeat"] = (beat) => {
      beats.push(world.clock.now());
      return world.store.heartbeat(beat);
    };
    return { store: { ...world.store, heartbeat }, beats };
  }

  test("rests: it is heard once a minute, and its peers know that it lives", async () => {
    const world = createManualWorld();
    const { store, beats } = listen(world);
    await started(world, { workflows: [greet] }, { store });
    await started(world, { workflows: [greet] });
    await world.advance("10m");
    expect(beats.length).toBeLessThan(13);
    expect(world.store.snapshot().workers.map(({ endedAt }) => endedAt)).toEqual([null, null]);
  });

  test("is heard as often as usual once it has taken a run, and is missed as soon", async () => {
    const world = createManualWorld();
    const { store, beats } = listen(world);
    const gate = createGate();
    await started(world, { workflows: [gate.gated] }, { store });
    await world.advance("3m");
    beats.length = 0;
    await world.client.start(gate.gated);
    await world.advance("1m");
    expect(gate.begun()).toBe(1);
    expect(beats.length).toBeGreaterThan(11);
    expect(world.store.snapshot().workers).toMatchObject([{ leaseMs: 15_000, endedAt: null }]);
    gate.open(0);
    await world.advance("10s");
    beats.length = 0;
    await world.advance("10m");
    expect(beats.length).toBeLessThan(12);
  });

  test("counts its lease from a claim whose answer was lost, and not from the next one", async () => {
    const world = createManualWorld();
    const gate = createGate();
    let claims = 0;
    const store: Store = {
      ...world.store,
      async claimRuns(request) {
        const claim = await world.store.claimRuns(request);
        if (claim.runs.length > 0 && ++claims === 1)
          throw new PawlError("STORE_UNAVAILABLE", "The answer was lost.");
        return claim;
      },
      // From the first claim on, no heartbeat arrives.
      heartbeat: (beat) => (claims > 0 ? new Promise(() => {}) : world.store.heartbeat(beat)),
    };
    await started(world, { workflows: [gate.gated] }, { store });
    await world.advance("1m");
    await world.client.start(gate.gated);
    await world.advance("10s");
    await world.client.start(gate.gated);
    await world.advance("4s");
    expect(gate.begun()).toBe(1);
    expect(gate.aborted()).toBe(0);
    await world.advance("2s");
    expect(gate.aborted()).toBe(1);
  });

  test("does not rest between runs that come one after the other", async () => {
    const world = createManualWorld();
    const { store, beats } = listen(world);
    const quick = workflow({ name: "quick", version: 1 }, () => "done");
    await started(world, { workflows: [quick] }, { store });
    await world.advance("3m");
    beats.length = 0;
    for (let n = 0; n < 60; n++) {
      await world.client.start(quick);
      await world.advance("1s");
    }
    expect(beats.length).toBeLessThan(15);
  });

  test("is heard at once when a claim is left without an answer", async () => {
    const world = createManualWorld();
    const { store, beats } = listen(world);
    const gate = createGate();
    let isLost = true;
    const claimRuns: Store["claimRuns"] = async (request) => {
      const claim = await world.store.claimRuns(request);
      if (!isLost || claim.runs.length === 0) return claim;
      throw new PawlError("STORE_UNAVAILABLE", "The answer was lost.");
    };
    await started(world, { workflows: [gate.gated] }, { store: { ...store, claimRuns } });
    await world.advance("3m");
    beats.length = 0;
    await world.client.start(gate.gated);
    await world.advance("6s");
    expect(beats.length).toBeGreaterThan(0);
    isLost = false;
    await world.client.start(gate.gated);
    await world.advance("20s");
    expect(gate.begun()).toBe(2);
    expect(world.store.snapshot().lease.map(({ attempt }) => attempt)).toEqual([1, 1]);
  });
});

describe("a worker", () => {
  test("carries a run from its start through a sleep to its end", async () => {
    const world = createManualWorld();
    await started(world, { workflows: [greet] });
    const run = await world.client.start(greet, "Ada");
    const result = run.result();
    await world.advance("9m");
    expect(await run.status()).toBe("waiting");
    await world.advance("1m");
    await world.advance(1);
    expect(await result).toBe("Hello Ada!");
  });

  test("wakes a short sleep on time, without waiting for a poll", async () => {
    const world = createManualWorld();
    const nap = workflow({ name: "nap", version: 1 }, async (ctx) => {
      await ctx.sleep(70);
      return ctx.now();
    });
    await started(world, { workflows: [nap] });
    const run = await world.client.start(nap);
    await world.advance(72);
    expect(await run.status()).toBe("completed");
  });

  test("takes runs of the workflows and versions it knows, from its queues alone", async () => {
    const world = createManualWorld();
    const first = workflow({ name: "known", version: 1 }, async () => 1);
    const second = workflow({ name: "known", version: 2 }, async () => 2);
    const other = workflow({ name: "other", version: 1 }, async () => 3);
    await started(world, { workflows: [second], queues: ["default", "slow"] });
    const runs = await Promise.all([
      world.client.start(first),
      world.client.start(second),
      world.client.start(other),
      world.client.start(second, undefined, { queue: "slow" }),
      world.client.start(second, undefined, { queue: "elsewhere" }),
    ]);
    await world.advance("10s");
    const statuses = await Promise.all(runs.map((run) => run.status()));
    expect(statuses).toEqual(["pending", "completed", "pending", "completed", "pending"]);
  });

  test("executes by priority, then age, no more at once than its concurrency", async () => {
    const world = createManualWorld();
    const order: string[] = [];
    let most = 0;
    let running = 0;
    const job = workflow({ name: "job", version: 1 }, async (ctx, label: string) => {
      await ctx.step("work", async () => {
        running += 1;
        most = Math.max(most, running);
        order.push(label);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
      });
    });
    await world.client.start(job, "late", { priority: 1 });
    await world.client.start(job, "first", { priority: -1 });
    await world.client.start(job, "middle");
    await world.client.start(job, "second middle");
    await started(world, { workflows: [job], concurrency: 2 });
    await world.advance("1s");
    expect(order).toEqual(["first", "middle", "second middle", "late"]);
    expect(most).toBe(2);
  });

  test("wakes a run whose signal was stored in a caller's own transaction", async () => {
    const world = createManualWorld();
    const listen = workflow({ name: "listen", version: 1 }, async (ctx) => ctx.waitForSignal<string>("word"));
    await started(world, { workflows: [listen] });
    const run = await world.client.start(listen);
    await world.advance("1s");
    const data = { json: '"hello"', notes: null };
    await world.store.insertMessage({
      id: "m",
      runId: run.id,
      topic: "signal:word",
      data,
      idempotencyKey: null,
    });
    await world.advance(15);
    expect(await run.result()).toBe("hello");
  });

  test("tells a run that it holds of a cancel while its step is running", async () => {
    const world = createManualWorld();
    const gate = createGate();
    await started(world, { workflows: [gate.gated] });
    const run = await world.client.start(gate.gated);
    await world.rest();
    await run.cancel();
    await world.rest();
    expect(gate.aborted()).toBe(1);
    gate.open(0);
    await world.advance("1s");
    expect(await run.status()).toBe("cancelled");
  });

  test("hears of a cancel at the next heartbeat when the notification is lost", async () => {
    const world = createManualWorld();
    const gate = createGate();
    await started(
      world,
      { workflows: [gate.gated] },
      { store: { ...world.store, subscribe: () => () => {} } },
    );
    const run = await world.client.start(gate.gated);
    await world.advance("2s");
    await run.cancel();
    await world.advance("6s");
    expect(gate.aborted()).toBe(1);
  });

  test("refuses options that make no sense", async () => {
    const world = createManualWorld();
    const twin = workflow({ name: "greet", version: 1 }, async () => 1);
    const made = (options: object) => () => world.worker({ workflows: [greet], ...options });
    expect(made({ workflows: [] })).toThrow(/"workflows" of worker must be a list/);
    expect(made({ workflows: [greet, twin] })).toThrow(/two different workflows/);
    expect(made({ concurency: 3 })).toThrow(/Did you mean "concurrency"/);
    expect(made({ lease: "50ms" })).toThrow(/from "100ms" to "1d"/);
    expect(made({ heartbeat: "10s" })).toThrow(/at most half the lease/);
    expect(made({ queues: [""] })).toThrow(/"queues.0" of worker must not be empty/);
  });
});

describe("stopping a worker", () => {
  test("lets running steps end, then gives the run back for another worker to continue", async () => {
    const world = createManualWorld();
    const gate = createGate();
    const first = await started(world, { workflows: [gate.gated] });
    const run = await world.client.start(gate.gated);
    await world.rest();
    const stopped = first.stop();
    await world.advance("20s");
    expect(await run.status()).toBe("running");
    gate.open(0, "once");
    await world.advance("1s");
    await stopped;

    await started(world, { workflows: [gate.gated] });
    await world.advance("1s");
    expect(await run.result()).toBe("once");
    expect(gate.begun()).toBe(1);
  });

  test("after the timeout gives back what is still running, without spending an attempt", async () => {
    const world = createManualWorld();
    const gate = createGate();
    const first = await started(world, { workflows: [gate.gated] });
    const run = await world.client.start(gate.gated);
    await world.rest();
    const stopped = first.stop({ timeout: "5s" });
    await world.advance("5s");
    await stopped;
    expect(gate.aborted()).toBe(1);
    expect(await world.client.get(run.id)).toMatchObject({ status: "pending", attempt: 1 });
  });

  test("a second call with a shorter timeout shortens the wait", async () => {
    const world = createManualWorld();
    const gate = createGate();
    const worker = await started(world, { workflows: [gate.gated] });
    await world.client.start(gate.gated);
    await world.rest();
    const stopped = worker.stop({ timeout: "1h" });
    await world.advance("1s");
    const again = worker.stop({ timeout: 0 });
    await world.advance(1);
    await Promise.all([stopped, again]);
  });

  test("takes no more runs, and leaves nothing behind that would go on", async () => {
    const world = createManualWorld();
    const worker = await started(world, { workflows: [greet] });
    await worker.stop();
    await worker.stop();
    const run = await world.client.start(greet, "Bob");
    await world.advance("1m");
    expect(await run.status()).toBe("pending");
    expect(world.plannedCalls()).toBe(0);
    await expect(worker.start()).rejects.toMatchObject({ code: "CLOSED" });
  });

  test("gives back at once what it parks or never began, and a worker that never started stops too", async () => {
    const world = createManualWorld();
    await world.worker({ workflows: [greet] }).stop();
    const worker = await started(world, { workflows: [greet] });
    const run = await world.client.start(greet, "Cy");
    const stopped = worker.stop();
    await world.advance(200);
    await stopped;
    expect(world.store.snapshot().lease).toEqual([]);
    expect(["pending", "waiting"]).toContain(await run.status());
  });
});

describe("a worker in trouble", () => {
  test("a dead worker's runs are taken over by a peer after one lease", async () => {
    const world = createManualWorld();
    const gate = createGate();
    let isDead = false;
    const dead = unreliable(world.store, () => isDead);
    await started(world, { workflows: [gate.gated] }, { store: dead });
    const run = await world.client.start(gate.gated);
    await world.advance("1s");
    isDead = true;
    await started(world, { workflows: [gate.gated] });
    await world.advance("22s");
    gate.open(1, "taken over");
    await world.advance("1s");
    expect(await run.result()).toBe("taken over");
  });

  test("drops its runs when its heartbeats must have run out, and goes on when the store is back", async () => {
    const world = createManualWorld();
    const gate = createGate();
    let isDown = false;
    const worker = await started(
      world,
      { workflows: [gate.gated] },
      { store: unreliable(world.store, () => isDown) },
    );
    const run = await world.client.start(gate.gated);
    await world.advance("1s");
    isDown = true;
    await world.advance("13s");
    expect(gate.aborted()).toBe(0);
    await world.advance("2s");
    expect(gate.aborted()).toBe(1);
    isDown = false;
    await world.advance("7s");
    expect(gate.begun()).toBe(2);
    gate.open(1);
    await world.advance("1s");
    expect(await run.status()).toBe("completed");
    // The worker knew that it lived, and gave the run back itself.
    expect(await run.history()).not.toContainEqual(expect.objectContaining({ kind: "attempt_crashed" }));
    await worker.stop();
  });

  test("is not taken for dead by one that starts as the store comes back", async () => {
    const world = createManualWorld();
    const gate = createGate();
    let isDown = false;
    const store = unreliable(world.store, () => isDown);
    await started(world, { workflows: [gate.gated] }, { store });
    const run = await world.client.start(gate.gated);
    await world.advance("1s");
    isDown = true;
    await world.advance("30s");
    isDown = false;
    await started(world, { workflows: [gate.gated] }, { store });
    await world.advance("20s");
    expect(gate.begun()).toBe(2);
    expect(await run.history()).toEqual([]);
  });

  test("drops its runs in time also when the store does not answer at all", async () => {
    const world = createManualWorld();
    const gate = createGate();
    let isSilent = false;
    const store: Store = {
      ...world.store,
      heartbeat: (heartbeat) => (isSilent ? new Promise(() => {}) : world.store.heartbeat(heartbeat)),
    };
    await started(world, { workflows: [gate.gated] }, { store });
    await world.client.start(gate.gated);
    await world.advance("1s");
    isSilent = true;
    await world.advance("21s");
    expect(gate.aborted()).toBe(1);
  });

  test("drops a run that another worker has taken, and only that", async () => {
    const world = createManualWorld();
    const gate = createGate();
    await started(world, { workflows: [gate.gated] });
    const taken = await world.client.start(gate.gated);
    await world.client.start(gate.gated);
    await world.rest();
    const lease = world.store.snapshot().lease.find(({ runId }) => runId === taken.id);
    await world.store.release({ runId: taken.id, epoch: 1, workerId: lease?.workerId ?? "" });
    await world.advance("6s");
    expect(gate.aborted()).toBe(1);
  });

  /** The answer to the first claim that takes something is lost. */
  function losingOneClaim(world: ManualWorld): Store {
    let isLost = true;
    return {
      ...world.store,
      async claimRuns(request) {
        const claim = await world.store.claimRuns(request);
        if (isLost && claim.runs.length > 0) {
          isLost = false;
          throw new PawlError("STORE_UNAVAILABLE", "The connection was cut.");
        }
        return claim;
      },
    };
  }

  test("gives back a run whose claim's answer was lost, and counts no attempt", async () => {
    const world = createManualWorld();
    await started(world, { workflows: [greet] }, { store: losingOneClaim(world) });
    const run = await world.client.start(greet, "Dee");
    await world.rest();
    expect(await run.history()).toEqual([]);
    await world.advance("11s");
    expect(await run.history()).toContainEqual(expect.objectContaining({ kind: "step_completed" }));
  });

  test("takes what it gave back again without being told of it", async () => {
    const world = createManualWorld();
    const run = await world.client.start(greet, "Dee");
    const deaf = { ...losingOneClaim(world), subscribe: () => () => {} };
    await started(world, { workflows: [greet], pollInterval: "1h" }, { store: deaf });
    await world.advance("11s");
    expect(await run.history()).toContainEqual(expect.objectContaining({ kind: "step_completed" }));
  });

  test("warns of a blocked event loop and names the running steps", async () => {
    const world = createManualWorld();
    const gate = createGate();
    await started(world, { workflows: [gate.gated] });
    await world.client.start(gate.gated);
    await world.advance("1s");
    world.block("11s");
    await world.advance(1);
    const warning = world.lines.find(({ message }) => message.includes("event loop was blocked"));
    expect(warning?.fields["steps"]).toEqual([expect.objectContaining({ step: "wait at the gate" })]);
    expect(gate.aborted()).toBe(0);
  });

  test("goes on giving signs of life when the event loop was blocked while a heartbeat was under way", async () => {
    const world = createManualWorld();
    const answers: (() => void)[] = [];
    let isSilent = true;
    let beats = 0;
    const store: Store = {
      ...world.store,
      heartbeat: async (heartbeat) => {
        beats += 1;
        if (isSilent) await new Promise<void>((resolve) => answers.push(resolve));
        return world.store.heartbeat(heartbeat);
      },
    };
    await started(world, { workflows: [greet] }, { store });
    await world.advance("11s");
    world.block("15s");
    isSilent = false;
    await world.advance(1);
    for (const answer of answers) answer();
    beats = 0;
    await world.advance("2m");
    expect(beats).toBeGreaterThan(1);
  });

  test("a run that blocks the event loop for a whole lease counts as crashed, and fails in the end", async () => {
    const world = createManualWorld();
    let blocks = 0;
    const heavy = workflow({ name: "heavy", version: 1, crashLimit: 2 }, async (ctx) => {
      await ctx.step("compute", () => {
        blocks += 1;
        world.block("20s");
        return new Promise<void>(() => {});
      });
    });
    await started(world, { workflows: [heavy] });
    const run = await world.client.start(heavy);
    await world.advance("2m");
    expect(blocks).toBe(2);
    expect(await world.client.get(run.id)).toMatchObject({
      status: "failed",
      error: { code: "WORKER_CRASHED" },
    });
  });

  test("an unreachable store is an error when starting, after some tries", async () => {
    const world = createManualWorld();
    const worker = world.worker({ workflows: [greet] }, { store: unreliable(world.store, () => true) });
    const failed = worker.start().catch((error: unknown) => error);
    await world.advance("10s");
    expect(await failed).toMatchObject({ code: "STORE_UNAVAILABLE" });
    await worker.stop();
  });
});
