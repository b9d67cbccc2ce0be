import { startPostgres } from "@pawl/embedded";
import pg from "pg";
import { createIds } from "../packages/pawl/src/core/ids.ts";
import { createPostgresStore, type PostgresStore } from "../packages/pawl/src/postgres/postgres-store.ts";
import type { Lease, NewEvent } from "../packages/pawl/src/store/lease.ts";
import { plainRun } from "../packages/pawl/src/store/run-record.ts";
import { systemRandom } from "../packages/pawl/src/system/system-random.ts";
import { systemTimers } from "../packages/pawl/src/system/system-timers.ts";

// npx tsx --conditions=@pawl/source bench/partitioning.ts: what it costs to have `run` and `event` partitioned by ranges of
// ids, a month of days and a default, against plain tables. For docs/decisions/0003-partitioning.md.

const rounds = 7;
/** A busy system, and an idle one. */
const loads = [
  { size: 200, batches: 20 },
  { size: 1, batches: 200 },
] as const;
const days = 30;
const oldRuns = 150_000;
const functions = [
  "create_runs_v1",
  "claim_runs_v1",
  "record_events_v1",
  "load_history_v1",
  "end_runs_v1",
] as const;
type Timed = (typeof functions)[number];

await using server = await startPostgres({
  durable: false,
  settings: { shared_preload_libraries: "pg_stat_statements", max_wal_size: "4GB" },
});
const pool = new pg.Pool({ connectionString: server.url, max: 5 });
const ids = createIds(Date.now, systemRandom);

const dayMs = 86_400_000;

/** The first id of a day, counted from today. */
function firstIdOf(day: number): string {
  const time = (Math.floor(Date.now() / dayMs + day) * dayMs).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}

async function openStore(schema: string): Promise<PostgresStore> {
  const store = createPostgresStore({
    pool,
    schema,
    listen: false,
    timers: systemTimers,
    random: systemRandom,
  });
  await store.migrate();
  return store;
}

/** Replaces an empty table by one of the same shape in parts, a day each, and one for the rest. */
async function partition(schema: string, table: string, key: string, primaryKey: string): Promise<void> {
  const { rows: indexes } = await pool.query<{ sql: string }>(
    `select pg_get_indexdef(indexrelid) as sql from pg_index where indrelid = '${schema}.${table}'::regclass and not indisprimary`,
  );
  const parts = Array.from({ length: days }, (_, n) => {
    const day = n - days + 2;
    return `create table ${schema}.${table}_${n} partition of ${schema}.${table}
              for values from ('${firstIdOf(day)}') to ('${firstIdOf(day + 1)}')`;
  });
  const statements = [
    `create table ${schema}.shape (like ${schema}.${table} including defaults including constraints)`,
    `drop view ${schema}.endings, ${schema}.runs, ${schema}.steps cascade`,
    `drop table ${schema}.${table}`,
    `create table ${schema}.${table} (like ${schema}.shape including all) partition by range (${key})`,
    `drop table ${schema}.shape`,
    `alter table ${schema}.${table} add primary key (${primaryKey})`,
    ...parts,
    `create table ${schema}.${table}_rest partition of ${schema}.${table} default`,
    ...indexes.map(({ sql }) => sql.replace(" ON ONLY ", " ON ")),
  ];
  for (const statement of statements) {
    if (!statement.startsWith("drop view") || (await hasView(schema))) await pool.query(statement);
  }
}

async function hasView(schema: string): Promise<boolean> {
  return (await pool.query("select to_regclass($1) as view", [`${schema}.runs`])).rows[0].view !== null;
}

/** Ended runs of the month before, so that every part has its share. */
async function fill(schema: string): Promise<void> {
  const spreadMs = Math.floor((days * dayMs) / oldRuns);
  const id = `(lpad(to_hex(${Date.now() - (days - 2) * dayMs} + n::bigint * ${spreadMs}), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid`;
  await pool.query(`
    insert into ${schema}.run (id, created_at, version, priority, depth, shard, workflow, queue, input)
    select ${id}, now(), 1, 0, 0, 0, 'old', 'default', '{"orderId":1}' from generate_series(1, ${oldRuns}) n
     where n * ${spreadMs}::bigint < ${(days - 2) * dayMs};
    insert into ${schema}.event (shard, run_id, seq, at, kind, attempt)
    select 0, id, 1, now(), 'completed', 1 from ${schema}.run; analyze ${schema}.run; analyze ${schema}.event`);
}

/** So many runs at once from start to end, three steps each. */
async function driveBatch(store: PostgresStore, workerId: string, size: number): Promise<void> {
  const data = { json: '{"orderId":9182}', notes: null };
  const newRun = () => ({
    id: ids.next(),
    workflow: "checkout",
    version: 1,
    queue: "default",
    ...plainRun,
    input: data,
  });
  await Promise.all(Array.from({ length: size }, () => store.createRuns([newRun()])));
  const lane = { queue: "default", workflow: "checkout", version: 1, after: null, crashLimit: 3 };
  const { runs } = await store.claimRuns({
    workerId,
    lanes: [lane],
    limit: size,
    suspects: false,
    begin: true,
  });
  const leases: readonly Lease[] = runs.map(({ runId, epoch, server }) => ({
    runId,
    epoch,
    workerId,
    server,
  }));
  for (let seq = 1; seq <= 3; seq++) {
    const step: NewEvent = {
      seq,
      kind: "step_completed",
      name: "charge",
      attempt: 1,
      beganAt: Date.now(),
      data,
    };
    await Promise.all(leases.map((lease) => store.record({ lease, events: [step], children: [] })));
  }
  for (const { runId } of leases.slice(0, 20)) await store.loadHistory(runId, 0);
  const end: NewEvent = { seq: 4, kind: "completed", name: null, attempt: 1, data: null };
  const ended = { parentId: null, children: [], status: "completed", output: data, error: null } as const;
  await Promise.all(leases.map((lease) => store.end({ lease, events: [end], ...ended })));
}

async function registerWorker(store: PostgresStore): Promise<string> {
  const id = ids.next();
  await store.registerWorker({
    id,
    leaseMs: 600_000,
    host: "here",
    pid: 1,
    queues: ["default"],
    concurrency: 200,
  });
  return id;
}

/** The quickest call of each kind since the last reset: whatever else the machine did only made calls slower. */
async function leastMs(schema: string): Promise<ReadonlyMap<Timed, number>> {
  const times = new Map<Timed, number>();
  for (const name of functions) {
    const { rows } = await pool.query<{ ms: number }>(
      "select min_exec_time as ms from pg_stat_statements where toplevel and position($1 in query) > 0",
      [`"${schema}".${name}(`],
    );
    times.set(name, rows[0]?.ms ?? Number.NaN);
  }
  return times;
}

/** The first call of each function on a connection of its own, which has to make all plans. */
async function firstCallsMs(schema: string): Promise<number> {
  const own = new pg.Pool({ connectionString: server.url, max: 1 });
  const store = createPostgresStore({
    pool: own,
    schema,
    listen: false,
    timers: systemTimers,
    random: systemRandom,
  });
  await store.now();
  const workerId = await registerWorker(store);
  const begunAt = performance.now();
  await driveBatch(store, workerId, 1);
  const firstMs = performance.now() - begunAt;
  const againAt = performance.now();
  await driveBatch(store, workerId, 1);
  const againMs = performance.now() - againAt;
  await own.end();
  return firstMs - againMs;
}

/** A plain table with rows becomes the first part of a new one: what users of plain tables would do. */
async function attachLater(): Promise<{ readonly attachMs: number; readonly rows: number }> {
  const store = await openStore("later");
  await fill("later");
  const bound = firstIdOf(1);
  await pool.query(`
    alter table later.run rename to run_first;
    alter table later.run_first rename constraint run_pkey to run_first_pkey;
    alter index later.run_parent rename to run_first_parent;
    create table later.run (like later.run_first including defaults including constraints) partition by range (id);
    alter table later.run add primary key (id, shard);
    create index run_parent on later.run (parent_id) where parent_id is not null;
    alter table later.run_first add constraint run_first_range check (id < '${bound}') not valid`);
  // Reads the table, but lets everybody write meanwhile.
  await pool.query("alter table later.run_first validate constraint run_first_range");
  const begunAt = performance.now();
  await pool.query(
    `alter table later.run attach partition later.run_first for values from (minvalue) to ('${bound}')`,
  );
  const attachMs = performance.now() - begunAt;
  await pool.query("create table later.run_rest partition of later.run default");
  await store.createRuns([
    { id: ids.next(), workflow: "checkout", version: 1, queue: "default", ...plainRun },
  ]);
  const { rows } = await pool.query<{ rows: number }>("select count(*)::integer as rows from later.run");
  return { attachMs, rows: rows[0]?.rows ?? 0 };
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const plain = await openStore("plain");
const parts = await openStore("parts");
await partition("parts", "run", "id", "id, shard");
await partition("parts", "event", "run_id", "run_id, seq, shard");
await pool.query("create extension pg_stat_statements");
for (const schema of ["plain", "parts"]) await fill(schema);
const workers = { plain: await registerWorker(plain), parts: await registerWorker(parts) };

const firstCalls: { readonly plain: number; readonly parts: number }[] = [];
for (let round = 0; round < rounds; round++) {
  firstCalls.push({ plain: await firstCallsMs("plain"), parts: await firstCallsMs("parts") });
}

for (const { size, batches } of loads) {
  const perRound: {
    readonly plain: ReadonlyMap<Timed, number>;
    readonly parts: ReadonlyMap<Timed, number>;
  }[] = [];
  for (let round = 0; round <= rounds; round++) {
    await pool.query("select pg_stat_statements_reset()");
    for (let batch = 0; batch < batches; batch++) {
      await driveBatch(plain, workers.plain, size);
      await driveBatch(parts, workers.parts, size);
    }
    // The first round makes the plans and fills the caches.
    if (round > 0) perRound.push({ plain: await leastMs("plain"), parts: await leastMs("parts") });
  }
  console.log(`batches of ${size}`);
  console.table(
    functions.map((name) => {
      const ratios = perRound.map((round) => (round.parts.get(name) ?? 0) / (round.plain.get(name) ?? 0));
      return {
        call: name,
        "plain ms": median(perRound.map((round) => round.plain.get(name) ?? 0)).toFixed(3),
        "parts ms": median(perRound.map((round) => round.parts.get(name) ?? 0)).toFixed(3),
        ratio: median(ratios).toFixed(2),
        "from … to": `${Math.min(...ratios).toFixed(2)} … ${Math.max(...ratios).toFixed(2)}`,
      };
    }),
  );
}
console.log(
  `plans of a new connection: plain ${median(firstCalls.map(({ plain }) => plain)).toFixed(1)} ms, ` +
    `parts ${median(firstCalls.map(({ parts }) => parts)).toFixed(1)} ms`,
);
const { attachMs, rows } = await attachLater();
console.log(`attached a table of ${rows - 1} rows as the first part in ${attachMs.toFixed(1)} ms`);
await pool.end();
