import pg from "pg";
import { PawlError } from "../core/error.ts";
import { sqlState } from "../core/sql-state.ts";
import type { Timers } from "../core/timers.ts";
import { borrowClient } from "./borrow-client.ts";
import { type Migration, migrations } from "./migrations.generated.ts";
import { bindSchema, type SchemaName } from "./schema-name.ts";
import { isBlocked, translateError } from "./sql-error.ts";

/** What `migrate` takes. */
export interface MigrateOptions {
  /** Only check: throw unless the schema is exactly what this library needs. Default false. */
  readonly verifyOnly?: boolean;
  /** A role that may run workers and clients afterwards, without rights to change the schema. Default: none. */
  readonly grantTo?: string;
}

/** What `migrate` has done. */
export interface MigrateAnswer {
  /** Versions applied by this call; empty when the schema was up to date. */
  readonly applied: readonly number[];
  readonly version: number;
}

export interface MigrationTarget {
  readonly pool: pg.Pool;
  readonly schema: SchemaName;
  readonly clock: string;
  readonly timers: Timers;
  /** Waits before the next try when somebody is in the way. */
  readonly pause: (ms: number) => Promise<void>;
  /** All of ours by default; tests upgrade step by step. */
  readonly migrations?: readonly Migration[];
}

const latest = (all: readonly Migration[]): number => all.at(-1)?.version ?? 0;
/** The schema's version that this library needs. */
export const latestVersion = latest(migrations);

/**
 * Brings the schema up to date. Safe to call from many processes at once: one does the work, the others wait and find it
 * done. Each call that changes anything is one transaction, but for migrations that Postgres wants outside of one.
 * While somebody holds a table that must be changed it steps back and tries again, so that nobody queues up behind it.
 */
export async function migrate(target: MigrationTarget, options: MigrateOptions = {}): Promise<MigrateAnswer> {
  const { pool, schema, migrations: all = migrations } = target;
  const { client, giveBack } = await borrowClient(pool, target.timers).catch((error: unknown) => {
    throw translateError(error, "migrate");
  });
  let isBroken = false;
  try {
    if (options.verifyOnly === true) {
      assertVersion(await appliedVersion(client, schema), all, schema);
      return { applied: [], version: latest(all) };
    }
    const applied: number[] = [];
    while (applied.at(-1) !== latest(all)) {
      const step = await unlessHeld(client, target, () => applyNext(client, target, all));
      if (step.length === 0) break;
      applied.push(...step);
    }
    const { grantTo } = options;
    if (grantTo !== undefined) await unlessHeld(client, target, () => grant(client, target, grantTo));
    return { applied, version: latest(all) };
  } catch (error) {
    await client.query("rollback").catch(() => {
      isBroken = true;
    });
    throw translateError(error, "migrate");
  } finally {
    giveBack(isBroken);
  }
}

/** Everything `migrate` would run on an empty database, for those who apply it with their own tools. */
export function printMigrations(schema: SchemaName, clock: string): string {
  const parts = migrations.map(
    ({ version, name, breaking, sql }) =>
      `-- ${version}: ${name}\n${sql}\ninsert into {schema}.migration (version, name, is_breaking) values (${version}, '${name}', ${breaking});\n`,
  );
  return bindSchema(
    [`create schema if not exists {schema};\n${createMigrationTable};\n`, ...parts].join("\n"),
    schema,
    clock,
  );
}

const createMigrationTable = `create table if not exists {schema}.migration (
  version     integer     primary key,
  name        text        not null,
  applied_at  timestamptz not null default clock_timestamp(),
  is_breaking boolean     not null default false              -- workers of the version before cannot live with it
)`;

/** How long a change waits for those who use a table, and how often it is tried. */
const lockTimeoutMs = 1_000;
const tries = 30;
const askAgainMs = 50;

/** Tries again while somebody holds what is to be changed: meanwhile all who use it would have to wait behind us. */
async function unlessHeld<Answer>(
  client: pg.PoolClient,
  target: MigrationTarget,
  act: () => Promise<Answer>,
): Promise<Answer> {
  for (let left = tries; ; left--) {
    try {
      return await act();
    } catch (error) {
      if (!isBlocked(error) || left === 1) throw error;
      await client.query("rollback");
      await target.pause(lockTimeoutMs);
    }
  }
}

/**
 * Begins a transaction that only one process can be in. Asks again and again rather than wait for the lock: whoever waits
 * in a statement holds a snapshot, which building an index concurrently would wait for in turn.
 */
async function beginAlone(client: pg.PoolClient, { schema, pause }: MigrationTarget): Promise<void> {
  const lock = "select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as is_ours";
  for (;;) {
    await client.query("begin isolation level read committed");
    const { rows } = await client.query<{ is_ours: boolean }>(lock, [`pawl migrate ${schema.name}`]);
    if (rows[0]?.is_ours === true) break;
    await client.query("rollback");
    await pause(askAgainMs);
  }
  await client.query(`set local lock_timeout = ${lockTimeoutMs}`);
  // Should this process vanish in between, the others need not wait until its connection is found dead.
  await client.query("set local idle_in_transaction_session_timeout = '60s'");
}

/** Applies the run of migrations that can share a transaction, or one that cannot. Answers their versions. */
async function applyNext(
  client: pg.PoolClient,
  target: MigrationTarget,
  all: readonly Migration[],
): Promise<readonly number[]> {
  const { schema, clock } = target;
  await beginAlone(client, target);
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
    // On a connection of its own, outside a transaction, while ours keeps the others away.
    await runOutside(target, first);
    await recordVersion(client, schema, first);
    await client.query("commit");
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

/** Statement by statement: several in one message would be a transaction. */
async function runOutside({ pool, schema, clock }: MigrationTarget, { sql }: Migration): Promise<void> {
  const client = new pg.Client(pool.options);
  client.on("error", () => {});
  await client.connect();
  try {
    const statements = bindSchema(sql, schema, clock).split(/;\s*$/m);
    for (const statement of statements) if (statement.trim() !== "") await client.query(statement);
  } finally {
    await client.end();
  }
}

/** A role that may not create schemas can still migrate one that was made for it. */
async function createSchema(client: pg.PoolClient, schema: SchemaName): Promise<void> {
  const { rowCount } = await client.query("select 1 from pg_namespace where nspname = $1", [schema.name]);
  if (rowCount === 0) await client.query(bindSchema("create schema {schema}", schema, ""));
  await client.query(bindSchema(createMigrationTable, schema, ""));
}

async function recordVersion(
  client: pg.PoolClient,
  schema: SchemaName,
  { version, name, breaking }: Migration,
): Promise<void> {
  const sql =
    "insert into {schema}.migration (version, name, is_breaking) values ($1, $2, $3) on conflict do nothing";
  await client.query(bindSchema(sql, schema, ""), [version, name, breaking]);
}

async function appliedVersion(client: pg.PoolClient, schema: SchemaName): Promise<number> {
  const { rows: tables } = await client.query<{ found: boolean }>(
    "select to_regclass($1) is not null as found",
    [`${schema.quoted}.migration`],
  );
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
    throw new PawlError(
      "SCHEMA_MISSING",
      `The schema "${schema.name}" is not there yet: run pawl.migrate().`,
      details,
    );
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

async function grant(client: pg.PoolClient, target: MigrationTarget, role: string): Promise<void> {
  const to = `"${role.replaceAll('"', '""')}"`;
  const { quoted } = target.schema;
  const rights = `grant usage on schema ${quoted} to ${to};
    grant select, insert, update, delete on all tables in schema ${quoted} to ${to};
    revoke insert, update, delete on ${quoted}.migration from ${to};
    grant execute on all functions in schema ${quoted} to ${to};
    commit`;
  await beginAlone(client, target);
  try {
    await client.query(rights);
  } catch (error) {
    if (sqlState(error) !== "42704") throw error;
    throw new PawlError(
      "INVALID_OPTION",
      `There is no role named ${role} to grant the schema to.`,
      { role },
      { cause: error },
    );
  }
}
