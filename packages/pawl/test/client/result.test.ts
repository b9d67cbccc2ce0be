import { describe, expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { PawlError } from "../../src/core/error.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import type { Store } from "../../src/store/store.ts";
import { createManualWorld, type ManualWorld } from "../manual-world.ts";

const nap = workflow({ name: "nap", version: 1, retry: { attempts: 1 } }, async (ctx, duration: number) => {
  await ctx.sleep(duration);
  return duration;
});

interface Watched extends ManualWorld {
  /** How many ids each look asked for. */
  readonly looks: number[];
}

/** A world whose client reaches the store through this view of it. */
async function createWatched(change: (store: Store) => Partial<Store> = () => ({})): Promise<Watched> {
  const world = createManualWorld();
  const looks: number[] = [];
  const seen: Store = { ...world.store, ...change(world.store) };
  const store: Store = {
    ...seen,
    getEnds(runIds) {
      looks.push(runIds.length);
      return seen.getEnds(runIds);
    },
  };
  await world.worker({ workflows: [nap] }).start();
  return { ...world, looks, client: createClient(world.seams({ store })) };
}

describe("waiting for a result", () => {
  test("ends with the notification, not with a poll", async () => {
    const world = await createWatched();
    const run = await world.client.start(nap, 300);
    const result = run.result();
    await world.advance(301);
    expect(await result).toBe(300);
    expect(world.looks).toEqual([1, 1]);
  });

  test("that begins after a redrive does not end with the life before", async () => {
    let held = Promise.resolve();
    const world = await createWatched((store) => ({
      async getEnds(runIds) {
        const ends = await store.getEnds(runIds);
        await held;
        return ends;
      },
    }));
    const run = await world.client.start(nap, 50);
    await run.terminate();
    let release = (): void => {};
    held = new Promise((resolve) => (release = resolve));
    const first = run.result().catch((error: unknown) => (error as PawlError).code);
    await world.advance(1);
    await run.redrive();
    const second = run.result().catch((error: unknown) => (error as PawlError).code);
    await world.advance(1);
    release();
    await world.advance(1_000);
    expect(await first).toBe("RUN_CANCELLED");
    expect(await second).toBe(50);
  });

  test("that has been there all along comes at once", async () => {
    const world = await createWatched();
    const run = await world.client.start(nap, 1);
    await world.advance(10);
    expect(await run.result()).toBe(1);
  });

  test("comes although the results of all who wait are too large for one answer", async () => {
    const world = await createWatched((store) => ({
      async getEnds(runIds) {
        if (runIds.length > 10) throw new PawlError("STORE_UNAVAILABLE", "The answer did not come in time.");
        return store.getEnds(runIds);
      },
    }));
    const runs = await Promise.all(Array.from({ length: 300 }, (_, n) => world.client.start(nap, n)));
    await world.advance(400);
    const results = Promise.all(runs.map((run) => run.result()));
    await world.advance("5m");
    expect(await results).toEqual(runs.map((_, n) => n));
  });

  test("looks no more often than every 5 ms under load", async () => {
    const world = await createWatched();
    const run = await world.client.start(nap, 1);
    await world.advance(10);
    const results = Promise.all(Array.from({ length: 100 }, () => run.result()));
    await world.advance(5);
    expect(await results).toHaveLength(100);
    expect(world.looks.length).toBeLessThanOrEqual(2);
  });

  test("ends with a poll when notifications are lost, one for all waiters", async () => {
    const world = await createWatched(() => ({ subscribe: () => () => {} }));
    const runs = await Promise.all(Array.from({ length: 50 }, () => world.client.start(nap, 20_000)));
    const results = Promise.all(runs.map((run) => run.result()));
    await world.advance("26s");
    expect(await results).toHaveLength(50);
    const polls = world.looks.slice(2);
    expect(polls.length).toBeLessThan(12);
    expect(polls.every((size) => size === 50)).toBe(true);
  });

  test("is not starved of polls by notifications of other runs", async () => {
    let lost = "";
    const world = await createWatched((store) => ({
      subscribe: (listener) =>
        store.subscribe((hint) =>
          hint.kind === "ended" && hint.runId === lost ? undefined : listener(hint),
        ),
    }));
    const run = await world.client.start(nap, 1_000);
    lost = run.id;
    let isOver = false;
    const result = run.result().then(() => (isOver = true));
    for (let tick = 0; tick < 80; tick += 1) {
      const other = (await world.client.start(nap, 50)).result();
      await world.advance(100);
      await other;
    }
    expect(isOver).toBe(true);
    await result;
  });

  test("goes on through an outage", async () => {
    let isDown = true;
    const world = await createWatched((store) => ({
      getEnds: async (runIds) => {
        if (isDown) throw new PawlError("STORE_UNAVAILABLE", "The store is down.");
        return store.getEnds(runIds);
      },
    }));
    const run = await world.client.start(nap, 10);
    const result = run.result();
    await world.advance("1m");
    isDown = false;
    await world.advance("6s");
    expect(await result).toBe(10);
  });

  test("can be given up; the run goes on", async () => {
    const world = await createWatched();
    const run = await world.client.start(nap, 1_000);
    const giveUp = new AbortController();
    const result = run.result({ signal: giveUp.signal });
    await world.rest();
    giveUp.abort(new Error("enough"));
    await expect(result).rejects.toThrow("enough");
    await expect(run.result({ signal: giveUp.signal })).rejects.toThrow("enough");
    await world.advance("2s");
    expect(await run.status()).toBe("completed");
  });

  test("leaves no timer behind once nobody waits", async () => {
    const world = createManualWorld();
    const run = await world.client.start(nap, 1);
    const giveUp = new AbortController();
    const result = run.result({ signal: giveUp.signal }).catch(() => {});
    await world.rest();
    expect(world.plannedCalls()).toBe(1);
    giveUp.abort();
    await result;
    await world.rest();
    expect(world.plannedCalls()).toBe(0);
  });

  test("ends with CLOSED when the client is closed, and so does every later call", async () => {
    const world = await createWatched();
    const run = await world.client.start(nap, 1_000);
    const failed = run.result().catch((error: unknown) => error);
    await world.rest();
    await world.client.close();
    expect(await failed).toMatchObject({ code: "CLOSED" });
    await expect(run.result()).rejects.toMatchObject({ code: "CLOSED" });
    await expect(world.client.start(nap, 1)).rejects.toMatchObject({ code: "CLOSED" });
  });

  test("of a run that does not exist is an error", async () => {
    const world = await createWatched();
    const nobody = world.client.handle("01900000-0000-7000-8000-000000000000");
    await expect(nobody.result()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    await expect(nobody.status()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    await expect(nobody.history()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  });

  test("of what is no run's id is an error that reaches nobody else", async () => {
    const world = await createWatched();
    const run = await world.client.start(nap, 10);
    const result = run.result();
    const nothing = world.client.handle("not-an-id");
    await expect(nothing.result()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    await expect(nothing.history()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    await world.advance(20);
    expect(await result).toBe(10);
  });

  test("ends with the store's error when waiting longer would not help", async () => {
    let isMissing = true;
    const world = await createWatched((store) => ({
      getEnds: async (runIds) => {
        if (isMissing) throw new PawlError("SCHEMA_MISSING", "There is no schema.");
        return store.getEnds(runIds);
      },
    }));
    const run = await world.client.start(nap, 10);
    await expect(run.result()).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
    isMissing = false;
    const result = run.result();
    await world.advance(20);
    expect(await result).toBe(10);
  });

  test("takes no option it does not know", async () => {
    const world = await createWatched();
    const run = await world.client.start(nap, 10);
    await expect(run.result({ timeout: "1s" } as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(run.result({ signal: "stop" } as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

describe("the result of a run that did not complete", () => {
  test("is RUN_FAILED with the run's own error as cause", async () => {
    const world = createManualWorld();
    const fail = workflow({ name: "fail", version: 1, retry: { attempts: 1 } }, async () => {
      throw new RangeError("out of stock");
    });
    await world.worker({ workflows: [fail] }).start();
    const run = await world.client.start(fail);
    await world.rest();
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      message: expect.stringContaining("out of stock"),
      details: { runId: run.id },
      cause: { name: "RangeError", message: "out of stock" },
    });
  });

  test("is RUN_CANCELLED, RUN_TIMED_OUT or RUN_EXPIRED", async () => {
    const world = createManualWorld();
    const cancelled = await world.client.start(nap, 1);
    const expired = await world.client.start(nap, 1, { expiresIn: "1s", queue: "nobody" });
    const timedOut = await world.client.start(nap, 60_000, { timeout: "2s" });
    await cancelled.cancel();
    await world.worker({ workflows: [nap] }).start();
    await world.advance("15s");
    const results = Promise.allSettled([cancelled, expired, timedOut].map((run) => run.result()));
    await world.advance(5);
    const codes = (await results).map((result) =>
      result.status === "rejected" ? (result.reason as PawlError).code : "",
    );
    expect(codes).toEqual(["RUN_CANCELLED", "RUN_EXPIRED", "RUN_TIMED_OUT"]);
  });
});

test("many results may be awaited with one signal, and no listener is left behind for each", async () => {
  const world = createManualWorld();
  const giveUp = new AbortController();
  let listeners = 0;
  const add = giveUp.signal.addEventListener.bind(giveUp.signal);
  giveUp.signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners += 1;
    add(...args);
  };
  const runs = await Promise.all(Array.from({ length: 20 }, () => world.client.start(nap, 1_000)));
  const results = runs.map((run) => run.result({ signal: giveUp.signal }));
  await world.rest();
  giveUp.abort(new Error("enough"));
  const ended = await Promise.allSettled(results);
  expect(ended.every(({ status }) => status === "rejected")).toBe(true);
  expect(listeners).toBe(1);
});
