import type pg from "pg";
import type { SchemaName } from "../../src/postgres/schema-name.ts";

/** No statistics at all, as in a table that nobody has ever analysed. */
export async function forgetStatistics(pool: pg.Pool, schema: SchemaName): Promise<void> {
  const tables = "select oid from pg_class where relnamespace = $1::regnamespace";
  await pool.query(`delete from pg_statistic where starelid in (${tables})`, [schema.quoted]);
  const sizes = `update pg_class set relpages = 0, reltuples = -1 where relkind in ('r', 'i') and oid in (${tables})`;
  await pool.query(sizes, [schema.quoted]);
}
