import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLog } from "../../src/core/log.ts";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import type { Hint } from "../../src/store/hint.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { driveRuns } from "./drive-runs.ts";
import { type PgBouncer, pgbouncer, startPgBouncer } from "./pgbouncer.ts";

if (pgbouncer === undefined)
  console.info("PgBouncer was not found: apt-get install pgbouncer. Its tests are skipped.");

describe.skipIf(pgbouncer === undefined)("behind a pooler that shares connections by transaction", () => {
  let database: TestDatabase;
  let direct: pg.Pool;
  let bouncer: PgBouncer;
  const stores: PostgresStore[] = [];
  const warnings: string[] = [];

  function open(listenUrl?: string): PostgresStore {
    const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
    const listen = listenUrl === undefined ? {} : { listenUrl };
    const store = createPostgresStore({
      url: bouncer.url,
      ...listen,
      timers: systemTimers,
      random: systemRandom,
      log,
    });
    stores.push(store);
    return store;
  }

  beforeAll(async () => {
    database = await createDatabase("empty");
    direct = new pg.Pool({ connectionString: database.url, max: 2 });
    bouncer = await startPgBouncer(database.url);
    await open().migrate();
  });

  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await direct.end();
    await bouncer.stop();
    await dropDatabase(database);
  });

  test("runs start, are claimed, recorded and ended", async () => {
    await driveRuns(open(), { runs: 300, inFlight: 50, steps: 3 });
    const { rows } = await direct.query(
      "select count(*)::integer as count from pawl.runs where status = 'completed'",
    );
    expect(rows).toEqual([{ count: 300 }]);
  });

  test("no statement is left prepared on a server connection", async () => {
    const store = open();
    await driveRuns(store, { runs: 20, inFlight: 10, steps: 1 });
    const pooled = new pg.Pool({ connectionString: bouncer.url, max: 4 });
    const counts = await Promise.all(
      Array.from({ length: 4 }, () =>
        pooled.query("select count(*)::integer as count, pg_sleep(0.05) from pg_prepared_statements"),
      ),
    );
    expect(counts.map(({ rows }) => rows[0].count)).toEqual([0, 0, 0, 0]);
    await pooled.end();
  });

  test("notifications are known not to come, and somebody is told", async () => {
    const store = open();
    store.subscribe(() => {});
    await expect.poll(() => warnings, { timeout: 10_000 }).toHaveLength(1);
    expect(warnings[0]).toContain("listenUrl");
    expect(store.isListening()).toBe(false);
  });

  test("notifications come over a direct connection, where one is given", async () => {
    const store = open(database.url);
    const hints: Hint[] = [];
    store.subscribe((hint) => hints.push(hint));
    await expect.poll(() => store.isListening(), { timeout: 10_000 }).toBe(true);
    await driveRuns(store, { runs: 1, inFlight: 1, steps: 1 });
    await expect.poll(() => hints, { timeout: 10_000 }).toContainEqual({ kind: "ready", queue: "default" });
  });
});
