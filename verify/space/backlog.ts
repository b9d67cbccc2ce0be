import { setTimeout as pause } from "node:timers/promises";
import { schemaName } from "../../packages/pawl/src/postgres/schema-name.ts";
import { fillTables } from "../../packages/pawl/test/postgres/bulk.ts";
import { Ground } from "../scenes/ground.ts";
import type { Scene } from "../scenes/scene.ts";
import { chain, nap } from "../scenes/workflows.ts";

/** How long single runs take from start to result, in ms: the middle and the 95th of a hundred. */
async function latency(ground: Ground): Promise<readonly [number, number]> {
  const times: number[] = [];
  for (let n = 0; n < 100; n++) {
    const startedAt = performance.now();
    const run = await ground.pawl.start(chain, { steps: 1, stepMs: 0 });
    await run.result({ signal: AbortSignal.timeout(60_000) });
    times.push(performance.now() - startedAt);
  }
  const sorted = times.toSorted((a, b) => a - b);
  return [sorted[50]!, sorted[95]!];
}

/** Rows that nobody can claim, runs that wait, runs that have ended: who comes now is as quick as on an empty schema. */
export const backlog: Scene = {
  name: "backlog",
  faults: ["row in the backlog"],
  async act({ isLong, landed, figure, report }) {
    await using ground = await Ground.open();
    await ground.hire({ lease: "15s" });
    await latency(ground);
    const empty = await latency(ground);
    const count = isLong ? 1_000_000 : 100_000;
    await fillTables(ground.pool, schemaName("pawl"), {
      finished: count,
      parked: count,
      unclaimable: count,
      held: 0,
    });
    landed("row in the backlog", 3 * count);
    // Autovacuum and checkpoints have their part of the disk at first.
    await ground.pool.query("checkpoint");
    await ground.pool.query("analyze");
    const full = await latency(ground);
    figure(
      `a run takes ${empty.map(Math.round).join(" / ")} ms (p50 / p95) without, ${full.map(Math.round).join(" / ")} ms with 3 x ${count} rows`,
    );
    if (full[0] > 2 * empty[0] + 20) report("I17", "runs are slower behind a backlog", { empty, full });
  },
};

/** How many runs that sleep no time at all end in a second. */
async function napRate(ground: Ground): Promise<number> {
  const items = Array.from({ length: 500 }, () => ({ input: { until: 0 } }));
  let ms = 0;
  // The first time plans are made, and connections.
  for (let round = 0; round < 2; round++) {
    await ground.pawl.startMany(nap, items);
    ms = await ground.drain();
  }
  await ground.pool.query("truncate pawl.event, pawl.run");
  return (1_000 * items.length) / ms;
}

/** So many timers are due at one moment: none is early, none is forgotten, none fires twice. */
export const sameSecond: Scene = {
  name: "same-second",
  faults: ["timer due at the same moment"],
  async act({ isLong, landed, figure, report }) {
    await using ground = await Ground.open();
    await Promise.all([ground.hire({ lease: "15s" }), ground.hire({ lease: "15s" })]);
    const count = isLong ? 100_000 : 5_000;
    const perSecond = await napRate(ground);
    const setAt = performance.now();
    const until = Date.now() + (isLong ? 240_000 : 12_000);
    for (let n = 0; n < count; n += 500)
      await ground.pawl.startMany(
        nap,
        Array.from({ length: 500 }, () => ({ input: { until } })),
      );
    await ground.until(
      "all sleep",
      async () =>
        (await ground.value("select count(*)::int from pawl.parked")) === count || Date.now() > until,
      isLong ? 240_000 : 60_000,
    );
    const asleep = await ground.value("select count(*)::int from pawl.event where kind = 'timer_set'");
    const setMs = performance.now() - setAt;
    await pause(Math.max(0, until - Date.now()));
    const drainMs = await ground.drain(120_000 + count * 5);
    const { rows } = await ground.pool.query<{
      early: number;
      fired: number;
      p50: number;
      p99: number;
    }>(
      `select count(*) filter (where f.at < s.due_at)::int as early, count(*)::int as fired,
              percentile_cont(0.5) within group (order by extract(epoch from f.at - s.due_at) * 1000)::float8 as p50,
              percentile_cont(0.99) within group (order by extract(epoch from f.at - s.due_at) * 1000)::float8 as p99
         from pawl.event f join pawl.event s on s.run_id = f.run_id and s.name = f.name and s.kind = 'timer_set'
        where f.kind = 'timer_fired'`,
    );
    const [fired] = rows;
    landed("timer due at the same moment", asleep);
    if (fired === undefined || fired.early > 0) report("I9", "a timer fired early", fired);
    const runs = await ground.countRuns("workflow = 'nap' and status = 'completed'");
    if (runs !== count) report("I1", `${count} runs slept, ${runs} have ended`);
    figure(
      `${count} timers (${asleep} set beforehand, in ${Math.round(setMs)} ms): late by ${Math.round(fired?.p50 ?? 0)} / ${Math.round(fired?.p99 ?? 0)} ms (p50 / p99), all done ${drainMs} ms after they were due`,
    );
    // Nothing but the work itself holds them up: each run is claimed, fires its timer and ends.
    const bearableMs = 5_000 + (3_000 * count) / perSecond;
    if ((fired?.p99 ?? 0) > bearableMs)
      report("I9", `timers are late by more than ${Math.round(bearableMs)} ms`, fired);
  },
};
