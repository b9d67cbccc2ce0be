import { setTimeout as pause } from "node:timers/promises";
import { migrations } from "../../packages/pawl/src/postgres/migrations.generated.ts";
import { PrivateServer } from "../../test-support/private-server.ts";
import { Ground } from "../scenes/ground.ts";
import type { Scene } from "../scenes/scene.ts";
import { chain } from "../scenes/workflows.ts";
import { migrateWith, newest, oneMore, openPool, readState } from "./migrating.ts";

/** Ten migrators at once, some of which lose their connections in the middle of it. */
export const crowdOfMigrators: Scene = {
  name: "crowd-of-migrators",
  faults: ["migrator ended among others"],
  async act({ rng, isLong, landed, figure, report }) {
    await using server = await PrivateServer.start({ fsync: "off" });
    const url = await server.createDatabase("crowd");
    const pool = openPool(url);
    await using _ = { [Symbol.asyncDispose]: () => pool.end() };
    await migrateWith(pool);
    const whole = await readState(pool);
    const rounds = isLong ? 40 : 6;
    for (let round = 0; round < rounds; round++) {
      await pool.query("drop schema if exists pawl cascade");
      const pools = Array.from({ length: 10 }, () => openPool(url, 2));
      const migrating = Promise.allSettled(pools.map((own) => migrateWith(own)));
      await pause(rng.between(5, 150));
      // Whoever is in a transaction: the one that does the work is among them.
      const { rows } = await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle' and xact_start is not null`,
      );
      landed("migrator ended among others", rows.length);
      const answers = await migrating;
      await Promise.all(pools.map((own) => own.end()));
      const appliers = answers.filter(
        (answer) => answer.status === "fulfilled" && answer.value.applied.length > 0,
      );
      if (appliers.length > 1) report("I1", "several migrators have each applied something", round);
      await migrateWith(pool);
      if ((await readState(pool)) !== whole)
        report("I1", "what a crowd of migrators made is another schema", round);
    }
    figure(`${rounds} rounds of 10 migrators`);
  },
};

/** A user's transaction holds the table that is to be changed. Runs go on; the change comes when the user is done. */
export const behindLongTransaction: Scene = {
  name: "behind-a-long-transaction",
  faults: ["migrator stepped back"],
  async act({ isLong, landed, figure, report }) {
    await using ground = await Ground.open();
    await ground.hire();
    const user = await ground.pool.connect();
    await user.query("begin");
    await user.query("select count(*) from pawl.run");
    const migrating = migrateWith(ground.pool, [...migrations, oneMore], () =>
      landed("migrator stepped back"),
    );
    const progress = { isMigrated: false };
    void migrating.then(() => (progress.isMigrated = true)).catch(() => {});
    const latencies: number[] = [];
    const until = performance.now() + (isLong ? 20_000 : 5_000);
    while (performance.now() < until) {
      const startedAt = performance.now();
      const run = await ground.pawl.start(chain, { steps: 3, stepMs: 1 });
      await run.result();
      latencies.push(performance.now() - startedAt);
      await pause(50);
    }
    if (progress.isMigrated) report("I1", "a table was changed under a transaction that used it");
    await user.query("commit");
    user.release();
    const { applied } = await migrating;
    if (applied.join() !== String(newest + 1)) report("I1", "the migration was not applied", applied);
    const longest = Math.max(...latencies);
    // A change waits for a second at a time: whoever comes meanwhile waits behind it, and no longer.
    if (longest > 5_000) report("I17", `a run took ${Math.round(longest)} ms while a migration was waiting`);
    figure(`${latencies.length} runs meanwhile, the slowest took ${Math.round(longest)} ms`);
  },
};
