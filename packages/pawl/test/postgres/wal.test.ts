import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { driveRuns } from "./drive-runs.ts";
import { readStatementStats, resetStatementStats } from "./statement-stats.ts";

/** What ends each call's transaction is written after the call was counted. */
const commitBytes = 100;
const pageBytes = 8192;

let database: TestDatabase;
let pool: pg.Pool;
let store: PostgresStore;

beforeAll(async () => {
  database = await createDatabase("empty");
  pool = new pg.Pool({ connectionString: database.url, max: 10 });
  store = createPostgresStore({
    pool,
    schema: "pawl",
    listen: false,
    timers: systemTimers,
    random: systemRandom,
  });
  await store.migrate();
});

afterAll(async () => {
  await store.close();
  await pool.end();
  await dropDatabase(database);
});

test("a run of five steps writes at most 3.8 kB of WAL, its start included, in at most 0.1 calls per step", async () => {
  const runs = 3_000;
  const drive = { runs, inFlight: 200, steps: 5 };
  await driveRuns(store, { ...drive, runs: 1_000 });
  await resetStatementStats(pool);
  await driveRuns(store, drive);

  const { calls, walBytes, walPageCopies } = await readStatementStats(pool, '"pawl".');
  expect(calls / (runs * drive.steps)).toBeLessThanOrEqual(0.1);
  // Copies of pages after a checkpoint do not count; the tests' own server makes none.
  const perRun = (walBytes - walPageCopies * pageBytes + calls * commitBytes) / runs;
  expect(perRun).toBeLessThanOrEqual(3_800);
  if (walPageCopies === 0) expect(perRun).toBeGreaterThan(1_500);
});
