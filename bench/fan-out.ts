import { startPostgres } from "@pawl/embedded";
import { createPawl, workflow } from "pawl";
import pg from "pg";

// npx tsx --conditions=@pawl/source bench/fan-out.ts [children, default 10000] [workers, default 1] [concurrency, default 100]:
// one parent that calls so many children at once and waits for all, on an embedded Postgres with durable settings. A parent's
// wake-ups are its claims.

const [children = 10_000, workers = 1, concurrency = 100] = process.argv.slice(2).map(Number);

const child = workflow(
  { name: "child", version: 1 },
  async (_ctx, input: { readonly item: number }) => input.item,
);

const parent = workflow({ name: "parent", version: 1 }, async (ctx, input: { readonly children: number }) => {
  const items = Array.from({ length: input.children }, (_, item) => ({ item }));
  const outputs = await Promise.all(items.map((item) => ctx.call(child, item)));
  return outputs.reduce((sum, output) => sum + output, 0);
});

await using postgres = await startPostgres({ settings: { max_wal_size: "4GB" } });
const pawls = Array.from({ length: workers }, () => createPawl({ url: postgres.url }));
const [pawl] = pawls;
if (pawl === undefined) throw new Error("There must be a worker.");
await pawl.migrate();
await Promise.all(pawls.map((each) => each.worker({ workflows: [parent, child], concurrency }).start()));

const measure = async (count: number): Promise<Readonly<Record<string, string>>> => {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const run = await pawl.start(parent, { children: count });
  const sum = await run.result();
  const ms = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpu);
  if (sum !== (count * (count - 1)) / 2) throw new Error(`The children add up to ${sum}.`);
  const client = new pg.Client(postgres.url);
  await client.connect();
  const { rows } = await client.query<{ readonly epoch: number }>(
    "select epoch from pawl.runs where id = $1",
    [run.id],
  );
  await client.end();
  return {
    "ms/child": (ms / count).toFixed(3),
    "CPU ms/child": ((user + system) / 1000 / count).toFixed(3),
    "wake-ups of the parent": String(rows[0]?.epoch),
  };
};

await measure(Math.ceil(children / 10));
console.log(`${workers} workers in one process, concurrency ${concurrency}`);
console.table({ [`${children} children`]: await measure(children) });
await Promise.all(pawls.map((each) => each.close()));
