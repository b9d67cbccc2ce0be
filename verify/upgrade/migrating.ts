import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { migrate, type MigrateAnswer } from "../../packages/pawl/src/postgres/migrate.ts";
import { migrations, type Migration } from "../../packages/pawl/src/postgres/migrations.generated.ts";
import { databaseClock, schemaName } from "../../packages/pawl/src/postgres/schema-name.ts";
import { systemTimers } from "../../packages/pawl/src/system/system-timers.ts";
import { dumpSchema } from "../../packages/pawl/test/postgres/dump-schema.ts";

const schema = schemaName("pawl");
export const newest = migrations.length;

/** Brings a database up to date, or up to these migrations. */
export function migrateWith(
  pool: pg.Pool,
  all: readonly Migration[] = migrations,
  onPause: () => void = () => {},
): Promise<MigrateAnswer> {
  return migrate({
    pool,
    schema,
    clock: databaseClock,
    timers: systemTimers,
    pause: async (ms) => {
      onPause();
      await pause(ms);
    },
    migrations: all,
  });
}

/** What `migrate` has made, and what it says that it has. */
export async function readState(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ found: boolean }>(
    "select to_regclass('pawl.migration') is not null as found",
  );
  if (rows[0]?.found !== true) return "nothing";
  const { rows: versions } = await pool.query("select version, name from pawl.migration order by 1");
  return `${JSON.stringify(versions)}\n${await dumpSchema(pool, schema)}`;
}

/** One more, that changes a table which every run uses. */
export const oneMore: Migration = {
  version: newest + 1,
  name: "one_more",
  transaction: true,
  breaking: false,
  sql: "alter table {schema}.run add column one_more text",
};

/** Pools of processes that nobody else has anything to do with. */
export function openPool(url: string, max = 3): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max });
  pool.on("error", () => {});
  return pool;
}
