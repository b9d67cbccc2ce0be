import { setTimeout as pause } from "node:timers/promises";
import { Ground } from "../scenes/ground.ts";
import type { Scene } from "../scenes/scene.ts";
import { createWorkflows } from "../scenes/workflows.ts";

/** Workers without work look for it all the time: reading takes no transaction ids. */
export const idlePolling: Scene = {
  name: "idle-polling",
  faults: ["poll without work"],
  async act({ isLong, landed, figure, report }) {
    await using ground = await Ground.open({
      autovacuum: "off",
      shared_preload_libraries: "pg_stat_statements",
    });
    await ground.pool.query("create extension pg_stat_statements");
    const [workers, seconds] = isLong ? [100, 600] : [20, 12];
    const workflows = createWorkflows("first", () => Promise.resolve());
    for (let n = 0; n < workers; n++) await ground.pawl.worker({ workflows, pollInterval: 200 }).start();
    // They have looked round, and rest.
    await pause(4_000);
    await ground.pool.query("select pg_stat_statements_reset()");
    const next = "select pg_snapshot_xmax(pg_current_snapshot())::text::float8";
    const before = await ground.value(next);
    await pause(seconds * 1_000);
    const ids = (await ground.value(next)) - before;
    const polls = await ground.value(
      "select coalesce(sum(calls), 0)::int from pg_stat_statements where query like '%claim_runs_v1%' or query like '%wake_due_v1%'",
    );
    const heartbeats = await ground.value(
      "select coalesce(sum(calls), 0)::int from pg_stat_statements where query like '%heartbeat_v1%'",
    );
    landed("poll without work", polls);
    figure(
      `${workers} idle workers in ${seconds} s: ${polls} polls, ${heartbeats} heartbeats, ${ids} transaction ids`,
    );
    if (ids > heartbeats + 2)
      report("I21", "idle workers use up transaction ids", { ids, heartbeats, polls });
  },
};
