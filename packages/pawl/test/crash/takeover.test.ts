import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { parseDuration } from "../../src/core/duration.ts";
import { eventually } from "./eventually.ts";
import { outputsOf } from "./outputs-of.ts";
import { type Scene, test } from "./scene.ts";
import { spreadOf } from "./spread.ts";
import type { WorkerProcess } from "./worker-process.ts";
import { startChains } from "./workflows.ts";

/** `PAWL_CRASH_LEASE=15s PAWL_CRASH_KILLS=20` measures what users get by default; it takes some 6 minutes. */
const lease = process.env["PAWL_CRASH_LEASE"] ?? "1s";
const kills = Number(process.env["PAWL_CRASH_KILLS"] ?? 4);
const leaseMs = parseDuration(lease, "lease");
/** A lease and two thirds of it; with short ones, what a busy machine needs: 25 s with the default lease of 15 s. */
const boundMs = Math.max((leaseMs * 5) / 3, leaseMs + 8_000);

describe("runs of a worker that was killed", { timeout: kills * (3 * leaseMs + 10_000) + 30_000 }, () => {
  test("go on elsewhere soon after its lease has run out", async ({ scene }) => {
    const crew = scene.crew({ lease: leaseMs });
    crew.prepare(4);
    const workers = [await crew.hire(), await crew.hire(), await crew.hire()];
    const times: number[] = [];
    for (let n = 0; n < kills; n++) {
      // More than two of the three can hold.
      const runs = await startChains(scene.pawl, 24, { steps: 3, stepMs: leaseMs / 6 });
      const victim = workers.shift()!;
      await eventually(() => countHeld(scene, victim)).toBeGreaterThan(0);
      // At no particular moment between two heartbeats.
      await pause(scene.random.next() * (leaseMs / 3));
      await victim.kill();
      const killedAt = await scene.now();
      workers.push(await crew.hire());
      crew.prepare(1);
      await outputsOf(scene, runs, 4 * leaseMs + 20_000);
      times.push(...(await resumedAfter(scene, victim, killedAt)));
    }
    const spread = spreadOf(times);
    console.info(
      `take-over: lease ${lease}, ${kills} kills, ms until each run's next step began ${JSON.stringify(spread)}`,
    );
    expect(times.length).toBeGreaterThanOrEqual(kills);
    expect(spread.p99).toBeLessThan(boundMs);
  });
});

async function countHeld({ pool, schema }: Scene, { pid }: WorkerProcess): Promise<number> {
  const { rows } = await pool.query<{ held: number }>(
    `select count(*)::int as held from ${schema}.live_runs l join ${schema}.worker w on w.id = l.worker_id where w.pid = $1`,
    [pid],
  );
  return rows[0]!.held;
}

/** For each run that crashed with this process: when a peer began a step of it. */
async function resumedAfter(
  { pool, schema }: Scene,
  { pid }: WorkerProcess,
  at: number,
): Promise<readonly number[]> {
  const { rows } = await pool.query<{ ms: number }>(
    `select (extract(epoch from min(l.began_at)) * 1000)::float8 - $2 as ms
       from ${schema}.event e
       join ${schema}.worker w on w.id = e.worker_id
       join public.ledger l on l.run_id = e.run_id and l.pid <> w.pid and l.began_at > e.at
      where e.kind = 'attempt_crashed' and w.pid = $1
      group by e.run_id`,
    [pid, at],
  );
  return rows.map(({ ms }) => ms);
}
