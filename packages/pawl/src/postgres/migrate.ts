import type pg from "pg";
import { PawlError } from "../core/error.ts";
import { borrowClient } from "./borrow-client.ts";
import { type Migration, migrations } from "./migrations.generated.ts";
import { bindSchema, type SchemaName } from "./schema-name.ts";
import { sqlState, translateError } from "./sql-error.ts";

export interface MigrateOptions {
  /** Only check: throw unless the schema is exactly what this library needs. Default false. */
  readonly verifyOnly?: boolean;
  /** A role that may run workers and clients afterwards, without rights to change the schema. Default: none. */
  readonly grantTo?: string;
}

export interface MigrateAnswer {
  /** Versions applied by this call; empty when the schema was up to date. */
  readonly applied: readonly number[];
  readonly version: number;
}

export interface MigrationTarget {
  readonly pool: pg.Pool;
  readonly schema: SchemaName;
  readonly clock: string;
  /** All of ours by default; tests upgrade step by step. */
  readonly migrations?: readonly Migration[];
}

const latest = (all: readonly Migration[]): number => all.at(-1)?.version ?? 0;

/**
 * Brings the schema up to date. Safe to call from many processes at once: one does the work, the others wait and find it
 * done. Each call that changes anything is one transaction, but for migrations that Postgres wants outside of one.
 */
export async function migrate(target: MigrationTarget, options: MigrateOptions = {}): Promise<MigrateAnswer> {
  const { pool, schema, migrations: all = migrations } = target;
  const { client, giveBack } = await borrowClient(pool).catch((error: unknown) => {
    throw translateError(error, "migrate");
  });
  try {
    if (options.verifyOnly === true) {
      assertVersion(await appliedVersion(client, schema), all, schema);
      return { applied: [], version: latest(all) };
    }
    const applied: number[] = [];
    while (applied.at(-1) !== latest(all)) {
      const step = await applyNext(client, target, all);
      if (step.length === 0) break;
      applied.push(...step);
    }
    if (options.grantTo !== undefined) await grant(client, schema, options.grantTo);
    return { applied, version: latest(all) };
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw translateError(error, "migrate");
  } finally {
    giveBack(false);
  }
}

/** Everything `migrate` would run on an empty database, for those who apply it with their own tools. */
export function printMigrations(schema: SchemaName, clock: string): string {
  const parts = migrations.map(
    ({ version, name, sql }) =>
      `-- ${version}: ${name}\n${sql}\ninsert into {schema}.migration (version, name) values (${version}, '${name}');\n`,
  );
  return bindSchema([`create schema if not exists {schema};\n${createMigrationTable};\n`, ...parts].join("\n"), schema, clock);
}

const createMigrationTable = `create table if not exists {schema}.migration (
  version    integer     primary key,
  name       text        not null,
  applied_at timestamptz not null default clock_timestamp()
)`;

/** Applies the run of migrations that can share a transaction, or one that cannot. Answers their versions. */
async function applyNext(client: pg.PoolClient, target: MigrationTarget, all: readonly Migration[]): Promise<readonly number[]> {
  const { schema, clock } = target;
  await client.query("begin");
  await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`pawl migrate ${schema.name}`]);
  const before = await appliedVersion(client, schema);
  if (before > latest(all)) throw tooNew(before, all, schema);
  const pending = all.filter((migration) => migration.version > before);
  const [first] = pending;
  if (first === undefined) {
    await client.query("commit");
    return [];
  }
  if (before === 0) await createSchema(client, schema);
  if (!first.transaction) {
    await client.query("commit");
    await client.query(bindSchema(first.sql, schema, clock));
    await recordVersion(client, schema, first);
    return [first.version];
  }
  const alone = pending.findIndex((migration) => !migration.transaction);
  const together = alone === -1 ? pending : pending.slice(0, alone);
  for (const migration of together) {
    await client.query(bindSchema(migration.sql, schema, clock));
    await recordVersion(client, schema, migration);
  }
  await client.query("commit");
  return together.map((migration) => migration.version);
}

/** A role that may not create schemas can still migrate one that was made for it. */
async function createSchema(client: pg.PoolClient, schema: SchemaName): Promise<void> {
  const { rowCount } = await client.query("select 1 from pg_namespace where nspname = $1", [schema.name]);
  if (rowCount === 0) await client.query(bindSchema("create schema {schema}", schema, ""));
  await client.query(bindSchema(createMigrationTable, schema, ""));
}

async function recordVersion(client: pg.PoolClient, schema: SchemaName, { version, name }: Migration): Promise<void> {
  const sql = "insert into {schema}.migration (version, name) values ($1, $2) on conflict do nothing";
  await client.query(bindSchema(sql, schema, ""), [version, name]);
}

async function appliedVersion(client: pg.PoolClient, schema: SchemaName): Promise<number> {
  const { rows: tables } = await client.query<{ found: boolean }>("select to_regclass($1) is not null as found", [
    `${schema.quoted}.migration`,
  ]);
  if (tables[0]?.found !== true) return 0;
  const { rows } = await client.query<{ version: number }>(
    bindSchema("select coalesce(max(version), 0) as version from {schema}.migration", schema, ""),
  );
  return rows[0]?.version ?? 0;
}

function assertVersion(version: number, all: readonly Migration[], schema: SchemaName): void {
  const wanted = latest(all);
  if (version > wanted) throw tooNew(version, all, schema);
  if (version === wanted) return;
  const details = { schema: schema.name, version, wanted };
  if (version === 0) {
    throw new PawlError("SCHEMA_MISSING", `The schema "${schema.name}" is not there yet: run pawl.migrate().`, details);
  }
  throw new PawlError(
    "SCHEMA_TOO_OLD",
    `The schema "${schema.name}" is at version ${version}, this library needs ${wanted}: run pawl.migrate().`,
    details,
  );
}

function tooNew(version: number, all: readonly Migration[], schema: SchemaName): PawlError {
  return new PawlError(
    "SCHEMA_TOO_NEW",
    `The schema "${schema.name}" is at version ${version}, newer than this library knows (${latest(all)}): upgrade the library.`,
    { schema: schema.name, version, wanted: latest(all) },
  );
}

async function grant(client: pg.PoolClient, schema: SchemaName, role: string): Promise<void> {
  const to = `"${role.replaceAll('"', '""')}"`;
  const rights = `grant usage on schema {schema} to ${to};
    grant select, insert, update, delete on all tables in schema {schema} to ${to};
    revoke insert, update, delete on {schema}.migration from ${to};
    grant execute on all functions in schema {schema} to ${to}`;
  try {
    await client.query(bindSchema(rights, schema, ""));
  } catch (error) {
    if (sqlState(error) !== "42704") throw error;
    throw new PawlError("INVALID_OPTION", `There is no role named ${role} to grant the schema to.`, { role }, { cause: error });
  }
}
