import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLog } from "../../src/core/log.ts";
import { createPawl, workflow, type PawlEvent } from "../../src/index.ts";
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

  test("its report says that a pooler is in between, and notifications are dead", async () => {
    const store = open();
    expect(await store.examine()).toMatchObject({ isPooled: true, listening: "off" });
    store.subscribe(() => {});
    await expect.poll(async () => (await store.examine()).listening, { timeout: 10_000 }).toBe("pooled");
  });

  test("a worker runs, says once that there is a pooler, and health asks for a listenUrl", async () => {
    const job = workflow({ name: "job", version: 1 }, async (ctx) => ctx.step("work", () => 1));
    const events: PawlEvent[] = [];
    const lines: string[] = [];
    const log = { ...silentLog, info: (line: string) => void lines.push(line) };
    await using pawl = createPawl({ url: bouncer.url, log, onEvent: (event) => events.push(event) });
    const run = await pawl.start(job);
    for (let count = 0; count < 2; count += 1) await pawl.worker({ workflows: [job] }).start();
    expect(await run.result()).toBe(1);
    expect(lines.filter((line) => line.includes("pooler"))).toHaveLength(1);
    await expect
      .poll(() => events, { timeout: 10_000 })
      .toContainEqual(expect.objectContaining({ kind: "listen.lost", isPooled: true }));
    const health = await pawl.health();
    expect(health).toMatchObject({ ok: true, pooled: true, listening: "dead" });
    expect(health.warnings.some((warning) => warning.includes("listenUrl"))).toBe(true);
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
