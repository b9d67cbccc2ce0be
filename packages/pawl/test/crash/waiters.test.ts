import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { readStatementStats, resetStatementStats } from "../postgres/statement-stats.ts";
import { test } from "./scene.ts";

const waiters = 10_000;
const watchMs = 6_000;
const plain = workflow({ name: "plain", version: 1 }, async (_ctx, n: number) => n);

describe("ten thousand who wait for a result", { timeout: 60_000 }, () => {
  test("ask together, a few times a second, and all are told", async ({ scene }) => {
    const { pawl, pool } = scene;
    const numbers = Array.from({ length: waiters }, (_, n) => n);
    const runs = await Promise.all(numbers.map((n) => pawl.start(plain, n)));
    const results = Promise.all(runs.map((run) => run.result()));
    await pause(500);

    await resetStatementStats(pool);
    await pause(watchMs);
    const { calls: polls } = await readStatementStats(pool, "read_ends_v1");

    const startedAt = performance.now();
    const worker = pawl.worker({ workflows: [plain], concurrency: 500 });
    scene.own({ [Symbol.asyncDispose]: () => worker.stop({ timeout: 0 }) });
    await worker.start();
    expect(await results).toEqual(numbers);
    const endedMs = performance.now() - startedAt;
    const { calls } = await readStatementStats(pool, "read_ends_v1");
    console.info(
      `${waiters} waiters: ${polls} statements in ${watchMs} ms while nothing ends;`,
      `${calls - polls} until all are told, ${Math.round(endedMs)} ms after a worker came`,
    );
    // Each poll asks for a thousand runs a statement, and polls grow rarer: after 1, 2.5 and 4.75 s.
    expect(polls).toBeGreaterThan(0);
    expect(polls).toBeLessThanOrEqual(5 * (waiters / 1_000));
    expect(calls - polls).toBeLessThan(waiters / 10);
  });
});
