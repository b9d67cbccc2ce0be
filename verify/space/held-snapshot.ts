import { setTimeout as pause } from "node:timers/promises";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";
import { drainRate } from "./drain-rate.ts";
import { hotTables, isSwollen, kilobytes, sizeOf } from "./hot-tables.ts";

/** Somebody keeps a snapshot open for long: dead rows cannot be removed. Work goes on as fast, and the space comes back. */
export const heldSnapshot: Scene = {
  name: "held-snapshot",
  faults: ["dead row that could not be removed", "scan of a hot table by overlapping readers"],
  async act({ isLong, landed, figure, report }) {
    await using ground = await Ground.open({ autovacuum_naptime: "1s" });
    await Promise.all([ground.hire({ lease: "15s" }), ground.hire({ lease: "15s" })]);
    const phaseMs = isLong ? 60_000 : 5_000;
    const countEnded = (): Promise<number> =>
      ground.value("select count(*)::int from pawl.event where kind in ('completed', 'failed')");
    const rateOver = async (ms: number): Promise<number> => {
      const [before, at] = [await countEnded(), performance.now()];
      await pause(ms);
      return ((await countEnded()) - before) / ((performance.now() - at) / 1_000);
    };

    // How much can be done at most, so that 60 % of it is asked for.
    const most = await drainRate(ground);
    const load = new Load(ground.pawl, 0.6 * most);
    await pause(1_000);
    const before = await rateOver(phaseMs);

    const holder = await ground.pool.connect();
    await holder.query("begin isolation level repeatable read");
    await holder.query("select count(*) from pawl.ready");
    const readers = new AbortController();
    const reading = Promise.all(Array.from({ length: 4 }, () => scan(ground, readers.signal)));
    const during = await rateOver(phaseMs * (isLong ? 10 : 2));
    readers.abort();
    landed("scan of a hot table by overlapping readers", sum(await reading));
    const dead = await ground.value<string>(
      "select sum(n_dead_tup)::text from pg_stat_user_tables where schemaname = 'pawl' and relname = any ($1)",
      [hotTables],
    );
    landed("dead row that could not be removed", Number(dead));
    const swollen = await sizeOf(ground);
    await holder.query("commit");
    holder.release();

    await load.end();
    await ground.drain(120_000);
    // What autovacuum does in its next rounds.
    for (const table of [...hotTables, ...hotTables]) await ground.pool.query(`vacuum pawl.${table}`);
    const after = await sizeOf(ground);
    for (const table of hotTables) await ground.pool.query(`vacuum full pawl.${table}`);
    const live = await sizeOf(ground);
    figure(
      `at most ${most.toFixed(0)} runs/s; at 60 % of it ${before.toFixed(0)} before and ${during.toFixed(0)} under a held snapshot, with ${dead} dead rows`,
    );
    figure(
      `hot tables ${kilobytes(swollen.tables)} kB and indexes ${kilobytes(swollen.indexes)} kB at the worst; ${kilobytes(after.tables)} and ${kilobytes(after.indexes)} once vacuumed, empty ones ${kilobytes(live.tables)} and ${kilobytes(live.indexes)}`,
    );
    if (during < 0.9 * before)
      report("I21", `${before.toFixed(0)} runs/s became ${during.toFixed(0)} under a held snapshot`);
    if (isSwollen(after, live))
      report("I21", "hot tables keep the space that dead rows took", { swollen, after, live });
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
  },
};

/** Reads all hot tables again and again, each time in one long transaction. Answers how often. */
async function scan(ground: Ground, signal: AbortSignal): Promise<number> {
  let scans = 0;
  while (!signal.aborted) {
    const client = await ground.pool.connect();
    await client.query("begin isolation level repeatable read read only");
    for (const table of hotTables) {
      await client.query(`select count(*) from pawl.${table}`);
      await pause(100);
      scans += 1;
    }
    await client.query("commit");
    client.release();
  }
  return scans;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
