import { mkdirSync, writeFileSync } from "node:fs";
import { ownProducts, peerProducts, type Product } from "./contestant.ts";
import { openGround, type Calibration } from "./ground.ts";
import { median } from "./median.ts";
import { plot, type Panel } from "./plot.ts";
import type { Figure, Workload } from "./workload.ts";
import { createWorkloads } from "./workloads.ts";

// npm run bench [-- --repetitions 5] [-- --seconds 3] [-- --only W3] [-- --without-peers] [-- --short] [-- --json] [-- --save]
// Pawl, its peers and the limit on one embedded Postgres with durable settings, each in a process and a database of its own. All
// contestants of a workload take turns, in another order each time, so that what else the machine does falls on all of them:
// compare ratios, not rates. --short: Pawl and the limit alone, to see that it works. --save: figures and plots in results/.
// Started by hand, each says how: soak.ts (W10), engine.ts (a run in Node alone), long-run.ts, fan-out.ts, values.ts, partitioning.ts.

interface Measured {
  readonly workload: string;
  readonly unit: Workload["unit"];
  readonly product: string;
  readonly figures: readonly Figure[];
}

const option = (name: string): string | undefined => {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
};
const isShort = process.argv.includes("--short");
const isJson = process.argv.includes("--json");
const repetitions = Number(option("--repetitions") ?? (isShort ? 1 : 3));
const seconds = Number(option("--seconds") ?? (isShort ? 0.2 : 3));
const only = option("--only");
const say = (text: string): void => void (isJson ? process.stderr.write(`${text}\n`) : console.log(text));

const peers = isShort || process.argv.includes("--without-peers") ? [] : peerProducts();
if (peers === null)
  say(
    "The peers are not installed: npm ci --ignore-scripts --prefix bench/peers. Pawl is compared with the limit alone.",
  );
const own = await ownProducts();
const products: readonly Product[] = [...own.products, ...(peers ?? [])];
const size = {
  seconds,
  drained: Math.ceil(seconds * 15_000),
  latencies: Math.ceil(seconds * 15),
  timers: seconds < 3 ? 20_000 : 100_000,
  backlog: seconds < 3 ? 100_000 : 1_000_000,
  heldMs: seconds < 3 ? 15_000 : 60_000,
};
const shortened = ["W1", "W2: drain of plain runs, one", "W3: five steps, 200", "W6"];
const chosen = only === undefined ? (isShort ? shortened : [""]) : [only];
const workloads = createWorkloads(size).filter(({ name }) => chosen.some((each) => name.startsWith(each)));

const ground = await openGround();
const settings: Record<string, string> = {};
for (const product of products) {
  const database = await ground.openDatabase();
  const contestant = await product.start(database.url);
  settings[await contestant.read("product")] = await contestant.read("settings");
  await contestant.close();
  await database.drop();
}
const calibrations: Calibration[] = [];
const found = new Map<Workload, Map<string, Figure[]>>();
for (let repetition = 0; repetition < repetitions; repetition++) {
  for (const workload of workloads) {
    const able = products.filter((product) => workload.isFor(product));
    const inTurn = able.map((_, index) => able[(index + repetition) % able.length] as Product);
    calibrations.push(await ground.calibrate());
    for (const product of inTurn) {
      const figures = found.get(workload) ?? new Map<string, Figure[]>();
      found.set(workload, figures);
      const figure = await workload.measure(product, ground);
      figures.set(product.name, [...(figures.get(product.name) ?? []), figure]);
      say(`${workload.name}: ${product.name} ${format(figure.value)} ${workload.unit}`);
    }
  }
}
await ground.close();
await own.remove();

const measured: Measured[] = [...found].flatMap(([workload, figures]) =>
  [...figures].map(([product, each]) => ({
    workload: workload.name,
    unit: workload.unit,
    product,
    figures: each,
  })),
);
const machine = {
  node: process.version,
  loopMs: spread(calibrations.map(({ loopMs }) => loopMs)),
  insertMs: spread(calibrations.map(({ insertMs }) => insertMs)),
};
const everything = JSON.stringify({ machine, settings, measured }, null, 2);
if (isJson) console.log(everything);
else show();
if (process.argv.includes("--save")) save();

function save(): void {
  const results = new URL("results/", import.meta.url);
  mkdirSync(results, { recursive: true });
  writeFileSync(new URL("latest.json", results), `${everything}\n`);
  const caption =
    `${new Date().toISOString().slice(0, 10)}, Node ${machine.node}, medians of ${repetitions} repetitions. ` +
    "Longer is better; each line is ten times the one before.";
  writeFileSync(new URL("latest.svg", results), plot([...found].map(panelOf), caption));
}

/** Rates as they are, and times turned round, so that more is always better. */
function panelOf([{ name, unit }, figures]: [Workload, ReadonlyMap<string, readonly Figure[]>]): Panel {
  const medianOf = (each: readonly Figure[]): number => median(each.map(({ value }) => value));
  const pawl = medianOf(figures.get("pawl") ?? []);
  return {
    title: name,
    bars: [...figures].map(([product, each]) => {
      const value = medianOf(each);
      return {
        name: product,
        times: isLessBetter(unit) ? pawl / value : value / pawl,
        label: `${format(value)} ${unit === "1/s" ? "a second" : unit}`,
      };
    }),
  };
}

function isLessBetter(unit: Workload["unit"]): boolean {
  return unit === "ms" || unit === "MB";
}

function show(): void {
  console.log(
    `\nMachine: 20 million additions ${machine.loopMs} ms, one durable insert ${machine.insertMs} ms.`,
  );
  for (const [product, each] of Object.entries(settings)) console.log(`${product}: ${each}.`);
  for (const [workload, figures] of found) {
    const pawl = figures.get("pawl") ?? [];
    console.log(`\n${workload.name}`);
    console.table(
      Object.fromEntries(
        [...figures].map(([product, each]) => [
          product,
          {
            [workload.unit]: spread(each.map(({ value }) => value)),
            "Pawl is": product === "pawl" ? "" : ratio(workload, pawl, each),
            "Node ms": perRun(each.map(({ nodeMs }) => nodeMs)),
            "Postgres ms": perRun(each.map(({ postgresMs }) => postgresMs)),
          },
        ]),
      ),
    );
  }
}

/** The median of the ratios within each repetition. */
function ratio({ unit }: Workload, pawl: readonly Figure[], other: readonly Figure[]): string {
  const ratios = pawl.map(({ value }, index) => value / (other[index]?.value ?? Number.NaN));
  return `${median(ratios).toFixed(2)} times ${isLessBetter(unit) ? "its time" : "its rate"}`;
}

function perRun(values: readonly (number | null)[]): string {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? "" : median(known).toFixed(3);
}

function spread(values: readonly number[]): string {
  return `${format(median(values))} (${format(Math.min(...values))} to ${format(Math.max(...values))})`;
}

function format(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);
}
