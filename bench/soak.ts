import pg from "pg";
import { ownProducts } from "./contestant.ts";
import { openGround } from "./ground.ts";
import { median } from "./median.ts";
import { quantile } from "./quantile.ts";

// tsx --conditions=@pawl/source bench/soak.ts [--minutes 60]: W10. Runs of five steps at 60 % of what one process can do, for an
// hour. What the last twelfth of that time took, against the first: latency, CPU time, memory, and the sizes of the tables.

interface Window {
  readonly p95: number;
  readonly nodeMs: number;
  readonly postgresMs: number;
  readonly rssMb: number;
}

const option = process.argv.indexOf("--minutes");
const minutes = option < 0 ? 60 : Number(process.argv[option + 1]);
const windows = 12;
const secondsEach = (minutes * 60) / windows;
const load = 0.6;

const ground = await openGround();
const own = await ownProducts();
const product = own.products.find(({ name }) => name === "pawl");
if (product === undefined) throw new Error("Pawl is not among the products.");
const database = await ground.openDatabase();
const contestant = await product.start(database.url);
const client = new pg.Client(database.url);
await client.connect();
await contestant.call("migrate");
await contestant.call("work");

const rates: number[] = [];
for (let turn = 0; turn < 5; turn++) {
  const count = 5_000;
  const { ms } = await contestant.call("fiveSteps", count, 200);
  rates.push((count / ms) * 1_000);
}
const perSecond = Math.floor(median(rates.slice(1)) * load);
console.log(
  `${perSecond} runs a second, ${load * 100} % of ${median(rates.slice(1)).toFixed(0)}, ${minutes} minutes.`,
);

const found: Window[] = [];
const sizes: ReadonlyMap<string, number>[] = [];
for (let index = 0; index < windows; index++) {
  // In parts: each answer is a message between processes.
  const parts = Math.max(1, Math.round(secondsEach / 30));
  const before = ground.cpuMs() ?? Number.NaN;
  const latencies: number[] = [];
  let nodeMs = 0;
  let rssMb = 0;
  for (let part = 0; part < parts; part++) {
    const taken = await contestant.call("pace", perSecond, secondsEach / parts);
    for (const each of taken.answer) latencies.push(each);
    nodeMs += taken.cpuMs;
    ({ rssMb } = taken);
  }
  const postgresMs = ((ground.cpuMs() ?? Number.NaN) - before) / latencies.length;
  const p95 = quantile(latencies, 0.95);
  found.push({ p95, nodeMs: nodeMs / latencies.length, postgresMs, rssMb });
  sizes.push(await readSizes());
  console.log(
    `${(((index + 1) * secondsEach) / 60).toFixed(1)} min: p95 ${p95.toFixed(1)} ms, Node ${(nodeMs / latencies.length).toFixed(3)} ms, ` +
      `Postgres ${postgresMs.toFixed(3)} ms a run, ${rssMb.toFixed(0)} MB`,
  );
}
await client.end();
await contestant.close();
await database.drop();
await ground.close();
await own.remove();

const [first] = found;
const last = found.at(-1);
if (first === undefined || last === undefined) throw new Error("Nothing was measured.");
const cpuOf = (window: Window): number => window.nodeMs + window.postgresMs;
console.log(`\nThe last of ${windows} parts against the first:`);
console.log(
  `p95 ${(last.p95 / first.p95).toFixed(2)} times, CPU a run ${(cpuOf(last) / cpuOf(first)).toFixed(2)} times.`,
);
console.log(`Memory ${found.map(({ rssMb }) => rssMb.toFixed(0)).join(", ")} MB.`);
console.log("MB of tables with their indexes, after each part:");
for (const name of sizes[0]?.keys() ?? [])
  console.log(`  ${name}: ${sizes.map((each) => (each.get(name) ?? 0).toFixed(1)).join(", ")}`);

/** Of the tables that runs pass through. */
async function readSizes(): Promise<ReadonlyMap<string, number>> {
  const { rows } = await client.query<{ name: string; mb: number }>(`
    select c.relname as name, pg_total_relation_size(c.oid) / 1e6::float8 as mb
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'pawl' and c.relkind = 'r' and c.relname in ('run', 'event', 'ready', 'pack', 'lease', 'parked', 'inbox', 'worker')
     order by c.relname`);
  return new Map(rows.map(({ name, mb }) => [name, mb]));
}
