import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { Fleet, type Kill } from "./fleet.ts";
import { expectOrder } from "./invariants.ts";
import { leaseMs, type Scene, test } from "./scene.ts";
import { spreadOf } from "./spread.ts";
import { Traffic } from "./traffic.ts";

const effectiveKills = 20;
/** On a machine so busy that processes take long to come up, fewer will do. */
const longestMs = 40_000;
const fewestKills = 5;
const inFlight = 40;
/** What is left to do when the last one is killed takes the others about this long. */
const workMs = 5_000;

describe("kill -9", { timeout: 90_000 }, () => {
  test("of workers at random moments loses, doubles and stops nothing", async ({ scene }) => {
    const fleet = new Fleet(scene);
    await fleet.start();
    const traffic = new Traffic(scene, scene.pawl, inFlight);
    const kills: Kill[] = [];
    const until = performance.now() + longestMs;
    while (kills.length < effectiveKills && (performance.now() < until || kills.length < fewestKills)) {
      await pause(300 + scene.random.next() * 700);
      const kill = await fleet.kill();
      if (kill !== null) kills.push(kill);
    }
    const lastKillAt = performance.now();
    await fleet.isComplete();
    await traffic.end(30_000);
    const drainedMs = performance.now() - lastKillAt;

    await expectOrder(scene);
    const takeovers = await takeoverTimes(scene, kills);
    console.info(
      `kill -9: seed ${scene.seed}, ${kills.length} effective kills, ${traffic.started} runs,`,
      `takeover ms ${JSON.stringify(spreadOf(takeovers))}, all done ${Math.round(drainedMs)} ms after the last kill`,
    );
    expect(takeovers).toHaveLength(kills.length);
    expect(spreadOf(takeovers).p50).toBeLessThan(2 * leaseMs);
    expect(drainedMs).toBeLessThan(2 * leaseMs + 10_000 + workMs);
  });
});

/** How long after each death a peer took its runs. */
async function takeoverTimes({ pool, schema }: Scene, kills: readonly Kill[]): Promise<readonly number[]> {
  const { rows } = await pool.query<{ pid: number; at: number }>(
    `select w.pid, (extract(epoch from min(e.at)) * 1000)::float8 as at
       from ${schema}.event e
       join ${schema}.worker w on w.id = e.worker_id
      where e.kind = 'attempt_crashed'
      group by w.pid`,
  );
  const takenAt = new Map(rows.map(({ pid, at }) => [pid, at]));
  return kills.flatMap(({ pid, at }) => (takenAt.has(pid) ? [takenAt.get(pid)! - at] : []));
}
