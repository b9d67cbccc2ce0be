import type pg from "pg";
import { bindSchema, type SchemaName } from "../../src/postgres/schema-name.ts";

/** What stands for the database's clock in a schema under test: an instant that moves only when told. */
export const testClockSql = "{schema}.test_clock()";

const firstInstantMs = Date.UTC(2026, 0, 1);

/** Makes the schema and its clock, before the migrations that mention it. */
export async function createTestClock(pool: pg.Pool, schema: SchemaName): Promise<void> {
  const sql = `
    create schema {schema};
    create table {schema}.test_clock (at timestamptz not null);
    insert into {schema}.test_clock values (to_timestamp(${firstInstantMs} / 1000.0));
    create function {schema}.test_clock() returns timestamptz language sql stable as 'select at from {schema}.test_clock'`;
  await pool.query(bindSchema(sql, schema, ""));
}

export async function advanceTestClock(pool: pg.Pool, schema: SchemaName, ms: number): Promise<void> {
  await pool.query(
    bindSchema("update {schema}.test_clock set at = at + $1 * interval '1 millisecond'", schema, ""),
    [ms],
  );
}

/** Back to where it stood at first. */
export async function resetTestClock(pool: pg.Pool, schema: SchemaName): Promise<void> {
  await pool.query(
    bindSchema(`update {schema}.test_clock set at = to_timestamp(${firstInstantMs} / 1000.0)`, schema, ""),
  );
}
