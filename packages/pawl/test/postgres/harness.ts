import pg from "pg";
import { parseDuration } from "../../src/core/duration.ts";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import { bindSchema, schemaName } from "../../src/postgres/schema-name.ts";
import { tellInTransaction, tellInTransactionValues } from "../../src/postgres/transitions/in-transaction.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import type { StoreHarness } from "../conformance/harness.ts";
import { takeSnapshot } from "./snapshot.ts";
import { storeTables } from "./store-tables.ts";
import { advanceTestClock, createTestClock, resetTestClock, testClockSql } from "./test-clock.ts";

export interface PostgresHarness extends StoreHarness {
  readonly store: PostgresStore;
  readonly pool: pg.Pool;
  /** Removes every row and turns the clock back, so that the next test begins as the first did. */
  clear(): Promise<void>;
}

/** A migrated schema whose clock stands still, in this database, on a server that names itself as the memory store does. */
export async function createPostgresHarness(
  url: string,
  name = "pawl",
  options: { listen?: boolean } = {},
): Promise<PostgresHarness> {
  const schema = schemaName(name);
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  // Dropping the database may cut a connection that is just being closed.
  pool.on("error", () => {});
  await createTestClock(pool, schema);
  const store = createPostgresStore({
    pool,
    schema: name,
    clock: testClockSql,
    timers: systemTimers,
    random: systemRandom,
    listen: options.listen ?? true,
  });
  await store.migrate();
  const server = "create or replace function {schema}.server_v1() returns float8 language sql as 'select 1'";
  await pool.query(bindSchema(server, schema, ""));
  const sql = (text: string): string => bindSchema(text, schema, testClockSql);
  return {
    store,
    pool,
    clock: { advance: (duration) => advanceTestClock(pool, schema, parseDuration(duration)) },
    snapshot: () => takeSnapshot(pool, schema),
    async insertMessage(message) {
      await pool.query(sql(tellInTransaction.text), [...tellInTransactionValues(message)]);
    },
    async setQueuePaused(queue, paused) {
      const text = `insert into {schema}.queue (name, paused_at) values ($1, case when $2 then now() end)
                    on conflict (name) do update set paused_at = excluded.paused_at`;
      await pool.query(sql(text), [queue, paused]);
    },
    async clear() {
      await pool.query(sql(storeTables.map((table) => `delete from {schema}.${table}`).join("; ")));
      await resetTestClock(pool, schema);
    },
    async close() {
      await store.close();
      await pool.end();
    },
  };
}
