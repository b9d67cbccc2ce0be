import { setTimeout as pause } from "node:timers/promises";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";
import { chain } from "../scenes/workflows.ts";

const hotTables = ["ready", "lease", "parked"] as const;

/** Somebody keeps a snapshot open for long: dead rows cannot be removed. Work goes on as fast, and the space comes back. */
export const heldSnapshot: Scene = {
  name: "held-snapshot",
  faults: ["dead row that could not be removed", "scan of a hot table by overlapping readers"],
  async act({ isLong, landed, figure, report }) {
    await using ground = await Ground.open({ autovacuum_naptime: "1s" });
    await Promise.all([ground.hire({ lease: "15s" }), ground.hire({ lease: "15s" })]);
    const phaseMs = isLong ? 60_000 : 5_000;
    const countEnded = (): Promise<number> =>
      ground.value("select count(*)::int from pawl.run where status is not null");
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
    // An index keeps its pages and uses them again; the least that is worth speaking of is a few hundred pages.
    const bound = 3 * Math.max(live.tables + live.indexes, 2 * 1024 * 1024);
    if (after.tables + after.indexes > bound)
      report("I21", "hot tables keep the space that dead rows took", { swollen, after, live });
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
  },
};

/** Runs a second, with more of them waiting than can be taken. */
async function drainRate(ground: Ground): Promise<number> {
  const items = Array.from({ length: 500 }, () => ({ input: { steps: 3, stepMs: 0 } }));
  let ms = 0;
  // The first time plans are made, and connections.
  for (let round = 0; round < 2; round++) {
    await ground.pawl.startMany(chain, items);
    ms = await ground.drain(120_000);
  }
  return (1_000 * items.length) / ms;
}

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

interface Size {
  readonly tables: number;
  readonly indexes: number;
}

async function sizeOf(ground: Ground): Promise<Size> {
  const { rows } = await ground.pool.query<{ tables: number; indexes: number }>(
    `select sum(pg_table_size(c.oid))::float8 as tables, sum(pg_indexes_size(c.oid))::float8 as indexes
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'pawl' and c.relname = any ($1)`,
    [hotTables],
  );
  return rows[0]!;
}

function kilobytes(bytes: number): number {
  return Math.round(bytes / 1_024);
}
