import { startPostgres } from "@pawl/embedded";
import { readFileSync, writeFileSync } from "node:fs";
import pg from "pg";
import { createIds } from "../packages/pawl/src/core/ids.ts";
import { createPostgresStore } from "../packages/pawl/src/postgres/postgres-store.ts";
import type { Lease } from "../packages/pawl/src/store/lease.ts";
import { plainRun, type NewRun } from "../packages/pawl/src/store/run-record.ts";
import { systemRandom } from "../packages/pawl/src/system/system-random.ts";
import { systemTimers } from "../packages/pawl/src/system/system-timers.ts";
import { createMeter, type Counted } from "./meter.ts";

// npm run bench:guard [-- --update]: fails if what a run or a step costs Postgres has grown by more than a tenth over
// baseline.json: calls, commits and WAL bytes without full-page images, one at a time and a hundred at a time. They do not
// depend on the machine. --update writes the baseline anew: say in the commit why it had to grow.

const sizes = [1, 100] as const;
const batches = { 1: 200, 100: 20 } as const;
const steps = ["one", "two", "three", "four", "five"] as const;
const mostGrowth = 1.1;
const baselineFile = new URL("baseline.json", import.meta.url);

await using postgres = await startPostgres({
  settings: {
    shared_preload_libraries: "pg_stat_statements",
    // What depends on checkpoints and on vacuum is left out.
    full_page_writes: "off",
    autovacuum: "off",
    max_wal_size: "4GB",
  },
});
const pool = new pg.Pool({ connectionString: postgres.url, max: 4 });
const ids = createIds(Date.now, systemRandom);
const store = createPostgresStore({ pool, listen: false, timers: systemTimers, random: systemRandom });
await store.migrate();
const meter = await createMeter(postgres.url);
const workerId = ids.next();
await store.registerWorker({
  id: workerId,
  leaseMs: 3_600_000,
  host: "guard",
  pid: 1,
  queues: ["default"],
  concurrency: 100,
});

const newRun = (order: number): NewRun => ({
  ...plainRun,
  id: ids.next(),
  workflow: "order",
  version: 1,
  queue: "default",
  input: { json: JSON.stringify({ order }), notes: null },
});

/** Calls that are made in one turn are one batch. */
const startAll = async (count: number): Promise<void> => {
  await Promise.all(Array.from({ length: count }, (_, order) => store.createRuns([newRun(order)])));
};

const claimAll = async (count: number): Promise<readonly Lease[]> => {
  const lane = { queue: "default", workflow: "order", version: 1, after: null, crashLimit: 5 };
  const { runs } = await store.claimRuns({
    workerId,
    lanes: [lane],
    limit: count,
    suspects: false,
    begin: true,
  });
  if (runs.length !== count) throw new Error(`${runs.length} of ${count} runs were claimed.`);
  return runs.map(({ runId, epoch, server, pack }) => ({ runId, epoch, workerId, server, pack }));
};

const recordAll = async (leases: readonly Lease[], seq: number): Promise<void> => {
  const data = { json: JSON.stringify({ order: seq, ok: true }), notes: null };
  const fact = {
    seq,
    kind: "step_completed",
    name: steps[seq - 1] ?? "",
    attempt: 1,
    beganAt: Date.now(),
    data,
  } as const;
  await Promise.all(leases.map((lease) => store.record({ lease, events: [fact], children: [] })));
};

const endAll = async (leases: readonly Lease[], seq: number): Promise<void> => {
  const fact = { seq, kind: "completed", name: null, attempt: 1, beganAt: Date.now(), data: null } as const;
  const end = { parentId: null, status: "completed", output: null, error: null } as const;
  await Promise.all(leases.map((lease) => store.end({ lease, events: [fact], children: [], ...end })));
};

const repeat = async (size: (typeof sizes)[number], act: () => Promise<void>): Promise<Counted> => {
  const count = batches[size];
  await act();
  const counted = await meter.count(async () => {
    for (let batch = 0; batch < count; batch++) await act();
  });
  const each = (total: number): number => Number((total / count / size).toPrecision(4));
  return { calls: each(counted.calls), commits: each(counted.commits), walBytes: each(counted.walBytes) };
};

const found: Record<string, Counted> = {};
for (const size of sizes) {
  const by = size === 1 ? "one at a time" : `${size} at a time`;
  found[`a plain run, ${by}`] = await repeat(size, async () => {
    await startAll(size);
    await endAll(await claimAll(size), 1);
  });
  found[`a run of five steps, ${by}`] = await repeat(size, async () => {
    await startAll(size);
    const leases = await claimAll(size);
    for (const seq of steps.keys()) await recordAll(leases, seq + 1);
    await endAll(leases, steps.length + 1);
  });
}
await meter.close();
await store.close();
await pool.end();

if (process.argv.includes("--update")) writeFileSync(baselineFile, `${JSON.stringify(found, null, 2)}\n`);
const baseline = JSON.parse(readFileSync(baselineFile, "utf8")) as Readonly<Record<string, Counted>>;
let hasGrown = false;
for (const [what, counted] of Object.entries(found)) {
  for (const kind of ["calls", "commits", "walBytes"] as const) {
    const before = baseline[what]?.[kind];
    const isMore = before === undefined || counted[kind] > before * mostGrowth;
    hasGrown ||= isMore;
    console.log(
      `${isMore ? "MORE" : "ok  "}  ${what}: ${counted[kind]} ${kind}, ${before ?? "unknown"} before`,
    );
  }
}
if (hasGrown) {
  console.error("A run costs Postgres more than a tenth more than it did. If it must, see bench/guard.ts.");
  process.exitCode = 1;
}
