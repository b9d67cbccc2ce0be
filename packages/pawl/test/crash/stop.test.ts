import { describe, expect } from "vitest";
import { eventually } from "./eventually.ts";
import { expectOrder } from "./invariants.ts";
import { countEnds, countRuns } from "./observe.ts";
import { outputsOf } from "./outputs-of.ts";
import { type Scene, test } from "./scene.ts";
import { startChains } from "./workflows.ts";

async function countRepeated({ pool, schema }: Scene): Promise<number> {
  const { rowCount } = await pool.query(
    `select 1 from public.ledger where run_id in (select id from ${schema}.run) group by run_id, step having count(*) > 1`,
  );
  return rowCount!;
}

/** The highest number that any execution had. */
async function highestAttempt({ pool, schema }: Scene): Promise<number> {
  const { rows } = await pool.query<{ attempt: number }>(
    `select max(attempt) as attempt from ${schema}.event`,
  );
  return rows[0]!.attempt;
}

describe("a worker that is stopped", { timeout: 60_000 }, () => {
  test("lets its steps end and hands its runs over within two seconds", async ({ scene }) => {
    const crew = scene.crew({ lease: "15s" });
    const [leaving, heir] = await Promise.all([crew.hire(), crew.next()]);
    const runs = await startChains(scene.pawl, 8, { steps: 20, stepMs: 250 });
    await eventually(() => countEnds(scene, leaving)).toBeGreaterThan(8);
    await heir.work();

    const stoppedAt = performance.now();
    leaving.signal("SIGTERM");
    expect(await leaving.exited()).toBe(0);
    const exitMs = performance.now() - stoppedAt;
    await eventually(() => countRuns(scene, heir, runs)).toBe(8);
    const handoverMs = performance.now() - stoppedAt;
    await outputsOf(scene, runs);

    expect(await countRepeated(scene)).toBe(0);
    expect(await highestAttempt(scene)).toBe(1);
    await expectOrder(scene);
    expect(heir.logs.filter(({ level }) => level === "warn")).toEqual([]);
    console.info(
      `stop: exit after ${Math.round(exitMs)} ms, all runs in other hands after ${Math.round(handoverMs)} ms`,
    );
    expect(handoverMs).toBeLessThan(2_000);
  });

  test("and cannot wait for its steps gives its runs back at once", async ({ scene }) => {
    const crew = scene.crew({ lease: "15s" });
    const [leaving, heir] = await Promise.all([crew.hire(), crew.next()]);
    const runs = await startChains(scene.pawl, 4, { steps: 2, stepMs: 1_500 });
    await eventually(() => countRuns(scene, leaving, runs)).toBe(4);
    await heir.work();

    const stoppedAt = performance.now();
    const stopping = leaving.hear("stopping");
    leaving.signal("SIGTERM");
    await stopping;
    leaving.signal("SIGTERM");
    expect(await leaving.exited()).toBe(0);
    await eventually(() => countRuns(scene, heir, runs)).toBe(4);
    const handoverMs = performance.now() - stoppedAt;
    await outputsOf(scene, runs);

    expect(await countRepeated(scene)).toBe(4);
    expect(await highestAttempt(scene)).toBe(1);
    await expectOrder(scene);
    expect(handoverMs).toBeLessThan(2_000);
  });

  test("twice stops at once, whatever its steps do, and no attempt is spent", async ({ scene }) => {
    const crew = scene.crew({ lease: "15s" });
    const [leaving, heir] = await Promise.all([crew.hire(), crew.next()]);
    // These know nothing of signals, and take longer than the test.
    const runs = await startChains(scene.pawl, 4, { steps: 1, stepMs: 120_000 });
    await eventually(() => countRuns(scene, leaving, runs)).toBe(4);
    await heir.work();

    const [stopping, stopped] = [leaving.hear("stopping"), leaving.hear("stopped")];
    leaving.signal("SIGTERM");
    await stopping;
    const hurriedAt = performance.now();
    leaving.signal("SIGTERM");
    await stopped;
    const stoppedMs = performance.now() - hurriedAt;
    await eventually(() => countRuns(scene, heir, runs)).toBe(4);
    const handoverMs = performance.now() - hurriedAt;

    console.info(
      `stop, twice: after ${Math.round(stoppedMs)} ms, other hands after ${Math.round(handoverMs)} ms`,
    );
    expect(stoppedMs).toBeLessThan(1_000);
    expect(handoverMs).toBeLessThan(2_000);
    expect(await attemptsHeld(scene)).toEqual([1, 1, 1, 1]);
  });
});

async function attemptsHeld({ pool, schema }: Scene): Promise<readonly number[]> {
  const { rows } = await pool.query<{ attempt: number }>(`select attempt from ${schema}.lease`);
  return rows.map(({ attempt }) => attempt);
}
