import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Fault, Hit } from "../../../../verify/chaos/wire-link.ts";
import { WireProxy } from "../../../../verify/chaos/wire-proxy.ts";
import type { RunHandle } from "../../src/index.ts";
import { outputsOf } from "./outputs-of.ts";
import { leaseMs, type Scene, test } from "./scene.ts";
import type { WorkerProcess } from "./worker-process.ts";
import { shopping } from "./workflows.ts";

const shop = (
  { pawl }: Scene,
  purchases: number,
  purchaseMs: number,
): Promise<RunHandle<readonly number[]>> => pawl.start(shopping, { purchases, purchaseMs });

/** What has been bought, in order: `step` and by whom. */
async function purchasesOf(
  { pool }: Scene,
  runId: string,
): Promise<readonly { step: string; pid: number }[]> {
  const { rows } = await pool.query<{ step: string; pid: number }>(
    "select step, pid from public.purchase where run_id = $1 order by step",
    [runId],
  );
  return rows;
}

/** Resolves when the process has called the function of this step. */
function hearBuying(process: WorkerProcess, step: string): Promise<void> {
  return new Promise((resolve) => {
    process.onReport((report) => {
      if (report.kind === "buying" && report.step === step) resolve();
    });
  });
}

/** Its first transaction is in Pawl's database, its second in another. */
const steps = ["buy-1", "buy-2"] as const;

describe("a transaction whose process is killed", { timeout: 60_000 }, () => {
  test.for(steps)("in the function is done once, by the next: %s", async (step, { scene }) => {
    const crew = scene.crew();
    const [first, second] = await Promise.all([crew.hire(), crew.next()]);
    const buying = hearBuying(first, step);
    const run = await shop(scene, 2, 1_200);
    await buying;
    await pause(100);
    await first.kill();
    await second.work();
    expect(await outputsOf(scene, [run])).toEqual([[1, 2]]);
    const purchases = await purchasesOf(scene, run.id);
    expect(purchases.map((each) => each.step)).toEqual(["buy-1", "buy-2"]);
    expect(purchases.find((each) => each.step === step)?.pid).toBe(second.pid);
  });

  const places = [
    // Held back before the server hears of it, or after the server has carried it out.
    { step: "buy-1", kind: "delay", by: "second" },
    { step: "buy-1", kind: "hold", by: "first" },
    { step: "buy-2", kind: "delay", by: "second" },
    { step: "buy-2", kind: "hold", by: "first" },
  ] as const;

  test.for(places)(
    "at COMMIT ($kind) is done once, by the $by: $step",
    async ({ step, kind, by }, { scene }) => {
      const proxy = scene.own(await WireProxy.listen(scene.url));
      const direct = scene.crew();
      const proxied = scene.crew({}, { url: proxy.url, ledgerUrl: proxy.url });
      const [first, second] = await Promise.all([proxied.hire(), direct.next()]);
      const fault: Fault = { kind, statement: "commit" };
      const hits: Promise<unknown>[] = [];
      first.onReport((report) => {
        if (report.kind === "buying" && report.step === step) hits.push(proxy.inject(fault));
      });
      const run = await shop(scene, 2, 50);
      await expect.poll(() => hits.length, { timeout: 10_000 }).toBe(1);
      await hits[0];
      await first.kill();
      // The server learns that nobody is there any more.
      proxy.cutAll();
      await second.work();
      expect(await outputsOf(scene, [run])).toEqual([[1, 2]]);
      const purchases = await purchasesOf(scene, run.id);
      expect(purchases.map((each) => each.step)).toEqual(["buy-1", "buy-2"]);
      const bought = purchases.find((each) => each.step === step);
      expect(bought?.pid).toBe(by === "first" ? first.pid : second.pid);
    },
  );

  test("at random moments is done exactly once", async ({ scene }) => {
    const crew = scene.crew();
    let workers = await Promise.all([crew.hire(), crew.hire()]);
    crew.prepare(2);
    const runs = await Promise.all(Array.from({ length: 12 }, () => shop(scene, 8, 40)));
    let kills = 0;
    for (; kills < 5; kills++) {
      await pause(200 + scene.random.next() * 400);
      const [victim, ...others] = workers;
      await victim.kill();
      crew.prepare(1);
      workers = [...others, await crew.hire()];
    }
    const outputs = await outputsOf(scene, runs);
    expect(outputs).toEqual(runs.map(() => [1, 2, 3, 4, 5, 6, 7, 8]));
    const { rows } = await scene.pool.query<{ run_id: string; step: string; times: number }>(
      `select run_id, step, count(*)::int as times from public.purchase where run_id = any ($1) group by 1, 2`,
      [runs.map(({ id }) => id)],
    );
    expect(rows.filter(({ times }) => times !== 1)).toEqual([]);
    expect(rows).toHaveLength(runs.length * 8);
    console.info(`transactions: ${kills} kills, ${rows.length} purchases, each once`);
  });
});

describe("a transaction whose process is stopped just before COMMIT", { timeout: 60_000 }, () => {
  test.for(steps)("is ended by the server, and done by the next: %s", async (step, { scene }) => {
    const proxy = scene.own(await WireProxy.listen(scene.url));
    const direct = scene.crew();
    const proxied = scene.crew({}, { url: proxy.url, ledgerUrl: proxy.url });
    const [zombie, second] = await Promise.all([proxied.hire(), direct.next()]);
    const hits: Promise<Hit>[] = [];
    zombie.onReport((report) => {
      if (report.kind === "buying" && report.step === step)
        hits.push(proxy.inject({ kind: "delay", statement: "commit" }));
    });
    const run = await shop(scene, 2, 50);
    await expect.poll(() => hits.length, { timeout: 10_000 }).toBe(1);
    const commit = await hits[0]!;
    zombie.signal("SIGSTOP");
    await second.work();
    expect(await outputsOf(scene, [run])).toEqual([[1, 2]]);
    commit.letGo();
    zombie.signal("SIGCONT");
    await pause(leaseMs);
    const purchases = await purchasesOf(scene, run.id);
    expect(purchases.map((each) => each.step)).toEqual(["buy-1", "buy-2"]);
    expect(purchases.find((each) => each.step === step)?.pid).toBe(second.pid);
  });
});

describe("a transaction whose process is stopped for longer than its lease", { timeout: 60_000 }, () => {
  test.for(steps)("does not commit when it goes on: %s", async (step, { scene }) => {
    const crew = scene.crew();
    const [zombie, second] = await Promise.all([crew.hire(), crew.next()]);
    const buying = hearBuying(zombie, step);
    const run = await shop(scene, 2, 1_200);
    await buying;
    await pause(100);
    zombie.signal("SIGSTOP");
    await second.work();
    expect(await outputsOf(scene, [run])).toEqual([[1, 2]]);
    zombie.signal("SIGCONT");
    await pause(leaseMs);
    const purchases = await purchasesOf(scene, run.id);
    expect(purchases.map((each) => each.step)).toEqual(["buy-1", "buy-2"]);
    expect(purchases.find((each) => each.step === step)?.pid).toBe(second.pid);
  });
});
