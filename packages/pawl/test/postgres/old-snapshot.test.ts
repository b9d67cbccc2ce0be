import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import { bindSchema, schemaName } from "../../src/postgres/schema-name.ts";
import type { Lane } from "../../src/store/lease.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { createClaimMarks } from "../../src/worker/claim-marks.ts";
import { readStatementStats, resetStatementStats } from "./statement-stats.ts";

const runCount = 30_000;
const runsPerSecond = 5_000;
const workerId = "00000000-0000-7000-8000-000000000002";
const lane: Lane = { queue: "default", workflow: "checkout", version: 1, after: null, crashLimit: 3 };

let database: TestDatabase;
let pool: pg.Pool;

interface Queue {
  readonly name: string;
  readonly store: PostgresStore;
  close(): Promise<void>;
}

/** A schema whose queue is long: its runs became ready at an even pace. */
async function createLongQueue(name: string): Promise<Queue> {
  const own = new pg.Pool({ connectionString: database.url, max: 1 });
  const store = createPostgresStore({
    pool: own,
    schema: name,
    listen: false,
    timers: systemTimers,
    random: systemRandom,
  });
  await store.migrate();
  await store.registerWorker({
    id: workerId,
    leaseMs: 600_000,
    host: "here",
    pid: 1,
    queues: ["default"],
    concurrency: 100,
  });
  const id = "(lpad(to_hex(1600000000000 + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid";
  const series = `generate_series(1, ${runCount}) n`;
  const statements = `
    alter table {schema}.ready set (autovacuum_enabled = off);
    insert into {schema}.run (id, created_at, version, priority, depth, shard, workflow, queue)
    select ${id}, now(), 1, 0, 0, 0, 'checkout', 'default' from ${series};
    insert into {schema}.ready (shard, run_id, ready_at, epoch, last_seq, attempt, priority, version, failures, crashes, suspicion, told, queue, workflow)
    select 0, ${id}, now() - interval '1 hour' + n * interval '${1 / runsPerSecond} seconds', 0, 0, 1, 0, 1, 0, 0, 0, false, 'default', 'checkout'
      from ${series}`;
  await own.query(bindSchema(statements, schemaName(name), ""));
  return { name, store, close: () => own.end() };
}

/**
 * Claims all of them as a worker does, and answers what one claim cost on average. Looking from the beginning each time,
 * these cost twice the processor time under an old snapshot (2 cores, 2026-11-15), and more the longer the queue.
 */
async function drain(queue: Queue): Promise<{ readonly buffers: number }> {
  let busyMs = 0;
  const marks = createClaimMarks({ now: () => busyMs });
  await resetStatementStats(pool);
  for (let claimed = 0; claimed < runCount;) {
    const look = marks.look([lane]);
    const askedAt = performance.now();
    const { runs } = await queue.store.claimRuns({
      workerId,
      lanes: look.lanes,
      limit: 100,
      suspects: false,
      begin: true,
    });
    const tookMs = performance.now() - askedAt;
    busyMs += tookMs;
    marks.found(look, runs, tookMs);
    expect(runs.length).toBe(100);
    claimed += runs.length;
  }
  const { calls, buffers } = await readStatementStats(pool, `"${queue.name}".claim_runs_v1`);
  return { buffers: buffers / calls };
}

beforeAll(async () => {
  database = await createDatabase("empty");
  pool = new pg.Pool({ connectionString: database.url, max: 2 });
});

afterAll(async () => {
  await pool.end();
  await dropDatabase(database);
});

test(
  "claims behind a moving mark hardly notice that somebody holds an old snapshot",
  { timeout: 60_000 },
  async () => {
    const quiet = await createLongQueue("quiet");
    const watched = await createLongQueue("watched");
    const unhindered = await drain(quiet);

    const watcher = await pool.connect();
    await watcher.query("begin isolation level repeatable read");
    await watcher.query("select count(*) from watched.ready");
    const hindered = await drain(watched);
    await watcher.query("rollback");
    watcher.release();

    expect(hindered.buffers).toBeLessThanOrEqual(1.5 * unhindered.buffers);
    await quiet.close();
    await watched.close();
  },
);
