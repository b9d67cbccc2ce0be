import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Fault, Hit } from "../../../../verify/chaos/wire-link.ts";
import { WireProxy } from "../../../../verify/chaos/wire-proxy.ts";
import { expectOrder } from "./invariants.ts";
import { startOrder, type StartedOrder } from "./orders.ts";
import { outputsOf } from "./outputs-of.ts";
import { leaseMs, type Scene, test } from "./scene.ts";
import { spreadOf } from "./spread.ts";
import { chain, expectedOutput } from "./workflows.ts";

const isAny = (rows: readonly unknown[]): boolean => rows.length > 0;

/** Its last row is no run. */
const isClaim = (rows: readonly unknown[]): boolean => rows.length > 1;

/** Every write of a run's life, and when an answer to it says that something was done. */
const statements: Readonly<Record<string, (rows: readonly (string | null)[]) => boolean>> = {
  // Says nothing of runs without a key.
  create_runs: () => true,
  claim_runs: isClaim,
  record_events: isAny,
  record_step: isAny,
  park_runs: isAny,
  // Names the runs that it did not end.
  end_runs: (rows) => rows.length === 0,
  tell_runs: isAny,
  heartbeat: isAny,
};
const losses = 5;
const cuts = 2;

function shuffledFaults({ random }: Scene): readonly Fault[] {
  const faults = Object.entries(statements).flatMap(([statement, isWorth]) => [
    ...Array.from({ length: losses }, (): Fault => ({ kind: "lose", statement, isWorth })),
    ...Array.from({ length: cuts }, (): Fault => ({ kind: "cut", statement })),
  ]);
  return faults
    .map((fault) => ({ fault, place: random.next() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ fault }) => fault);
}

describe("a connection that breaks", { timeout: 90_000 }, () => {
  test("before or after a write loses, doubles and stops no run", async ({ scene }) => {
    const proxy = scene.own(await WireProxy.listen(scene.url));
    const pawl = scene.connect(proxy.url);
    const crew = scene.crew({}, { url: proxy.url });
    await Promise.all([crew.hire(), crew.hire(), crew.hire()]);

    const starting: Promise<StartedOrder>[] = [];
    const hits: Hit[] = [];
    for (const fault of shuffledFaults(scene)) {
      await pause(40 + scene.random.next() * 80);
      const hitting = proxy.inject(fault);
      for (let hit: Hit | null = null; hit === null;) {
        for (let n = 0; n < 2; n++) starting.push(startOrder(scene, pawl, starting.length));
        hit = await Promise.race([hitting, pause(150, null)]);
        if (hit !== null) hits.push(hit);
      }
    }
    const lastHitAt = performance.now();
    const started = await Promise.all(starting);
    const runs = started.map(({ run }) => run);
    expect(await outputsOf(scene, runs)).toEqual(started.map(({ n }) => expectedOutput(n)));
    const drainedMs = performance.now() - lastHitAt;

    await expectOrder(scene);
    for (const [statement, isWorth] of Object.entries(statements)) {
      const lost = hits.filter(({ fault }) => fault.kind === "lose" && fault.statement === statement);
      expect({ [statement]: lost.filter(({ rows }) => isWorth(rows)).length }).toEqual({
        [statement]: losses,
      });
    }
    expect(await rootRuns(scene)).toBe(started.length);
    expect(await spentAttempts(scene)).toEqual([]);
    console.info(
      `lost answers: seed ${scene.seed}, ${hits.length} faults, ${started.length} runs,`,
      `all done ${Math.round(drainedMs)} ms after the last fault`,
    );
    expect(drainedMs).toBeLessThan(2 * leaseMs + 10_000);
  });

  test("together with all others is only a pause", async ({ scene }) => {
    const proxy = scene.own(await WireProxy.listen(scene.url));
    const pawl = scene.connect(proxy.url);
    const crew = scene.crew({}, { url: proxy.url });
    await Promise.all([crew.hire(), crew.hire(), crew.hire()]);
    const starting: Promise<StartedOrder>[] = [];
    for (let round = 0; round < 5; round++) {
      for (let n = 0; n < 8; n++) starting.push(startOrder(scene, pawl, starting.length));
      await pause(200 + scene.random.next() * 400);
      proxy.cutAll();
    }
    const started = await Promise.all(starting);
    const runs = started.map(({ run }) => run);
    expect(await outputsOf(scene, runs)).toEqual(started.map(({ n }) => expectedOutput(n)));
    await expectOrder(scene);
    expect(await rootRuns(scene)).toBe(started.length);
    expect(await spentAttempts(scene)).toEqual([]);
  });

  test("before a claim is answered delays its run by a lease, and counts for nothing", async ({ scene }) => {
    const proxy = scene.own(await WireProxy.listen(scene.url));
    const crew = scene.crew({}, { url: proxy.url });
    await Promise.all([crew.hire(), crew.hire(), crew.hire()]);
    const delays: number[] = [];
    for (let round = 0; round < losses; round++) {
      const claimed = proxy.inject({ kind: "lose", statement: "claim_runs", isWorth: isClaim });
      for (let hit: Hit | null = null; hit === null;) {
        const run = await scene.pawl.start(chain, { steps: 1, stepMs: 1 });
        // A claim that was on its way already when the fault was set may take the run unharmed.
        const done = outputsOf(scene, [run]);
        hit = await Promise.race([claimed, done.then(() => null)]);
        const lostAt = performance.now();
        await done;
        if (hit === null) continue;
        expect(hit.rows).toContain(run.id);
        delays.push(performance.now() - lostAt);
      }
    }
    await expectOrder(scene);
    expect(await spentAttempts(scene)).toEqual([]);
    console.info(`lost claims: runs done after ms ${JSON.stringify(spreadOf(delays))}`);
    expect(spreadOf(delays).p50).toBeLessThan(2 * leaseMs);
    expect(Math.max(...delays)).toBeLessThan(2 * leaseMs + 10_000);
  });
});

async function rootRuns({ pool, schema }: Scene): Promise<number> {
  const { rows } = await pool.query<{ runs: number }>(
    `select count(*)::int as runs from ${schema}.run where parent_id is null`,
  );
  return rows[0]!.runs;
}

/** Nobody died: no execution counts against a run. Unless the machine is too busy for leases of this length. */
async function spentAttempts({ pool, schema, crews }: Scene): Promise<readonly unknown[]> {
  const { rows } = await pool.query(
    `select run_id, seq, kind, attempt from ${schema}.event where attempt > 1 or kind in ('attempt_crashed', 'attempt_failed')`,
  );
  const isTooBusy = crews.some((crew) =>
    crew.logs.some(({ message }) => message.includes("lease has expired")),
  );
  return isTooBusy ? [] : rows;
}
