import { mkdirSync, writeFileSync } from "node:fs";
import { judge } from "./bars.ts";
import { ownProducts, peerProducts, type Product } from "./contestant.ts";
import { createFindings } from "./found.ts";
import { openGround, type Calibration } from "./ground.ts";
import { plot } from "./plot.ts";
import { format, panelOf, showFound, showVerdicts, spread } from "./report.ts";
import { createWorkloads } from "./workloads.ts";

// npm run bench [-- --repetitions 5] [-- --seconds 3] [-- --only W3] [-- --without-peers] [-- --peers dbos,pg-boss] [-- --short] [-- --json] [-- --save]
// Pawl, its peers and the limit on one embedded Postgres with durable settings, each in a process and a database of its own. All
// contestants of a workload take turns, in another order each time, so that what else the machine does falls on all of them:
// compare ratios, not rates. At the end it tells which of the bars, in bars.ts, are met. --short: Pawl and the limit alone, to see
// that it works. --save: figures and plots in results/.
// Started by hand, each says how: soak.ts (W10), engine.ts (a run in Node alone), long-run.ts, fan-out.ts, values.ts, partitioning.ts.

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

const peersNamed = option("--peers")?.split(",");
const peers =
  isShort || process.argv.includes("--without-peers")
    ? []
    : (peerProducts()?.filter(({ name }) => peersNamed?.includes(name) ?? true) ?? null);
if (peers === null)
  say(
    "The peers are not installed: npm ci --ignore-scripts --prefix bench/peers. Pawl is compared with the limit alone.",
  );
const own = await ownProducts();
const products: readonly Product[] = [...own.products, ...(peers ?? [])];
const size = {
  seconds,
  drained: Math.ceil(seconds * 15_000),
  latencies: Math.ceil(seconds * 100),
  resumed: isShort ? 500 : 5_000,
  timers: isShort ? 2_000 : seconds < 3 ? 20_000 : 100_000,
  backlog: isShort ? 3_000 : seconds < 3 ? 100_000 : 1_000_000,
  unknown: isShort ? 3_000 : 100_000,
  heldMs: isShort ? 100 : seconds < 3 ? 15_000 : 60_000,
};
const shortened = [
  "W1",
  "W2: drain of plain runs, one",
  "W3: five steps, 200",
  "W4",
  "W5",
  "W6",
  "W7: the next step",
  "W8: calls",
  "W9: p95",
];
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
const findings = createFindings();
for (let repetition = 0; repetition < repetitions; repetition++) {
  for (const workload of workloads) {
    const able = products.filter((product) => workload.isFor(product));
    const inTurn = able.map((_, index) => able[(index + repetition) % able.length] as Product);
    calibrations.push(await ground.calibrate());
    for (const product of inTurn) {
      for (const reading of await workload.measure(product, ground)) {
        findings.add(product.name, reading);
        say(`${reading.name}: ${product.name} ${format(reading.figure.value)} ${reading.unit}`);
      }
    }
  }
}
await ground.close();
await own.remove();

const found = findings.all();
const verdicts = judge(found);
const measured = found.flatMap(({ name, unit, figures }) =>
  [...figures].map(([product, each]) => ({ workload: name, unit, product, figures: each })),
);
const machine = {
  node: process.version,
  loopMs: spread(calibrations.map(({ loopMs }) => loopMs)),
  insertMs: spread(calibrations.map(({ insertMs }) => insertMs)),
};
const everything = JSON.stringify({ machine, settings, measured, bars: verdicts }, null, 2);
if (isJson) console.log(everything);
else show();
if (process.argv.includes("--save")) save();

function show(): void {
  console.log(
    `\nMachine: 20 million additions ${machine.loopMs} ms, one durable insert ${machine.insertMs} ms.`,
  );
  for (const [product, each] of Object.entries(settings)) console.log(`${product}: ${each}.`);
  showFound(found);
  const isChosen = (of: string): boolean => chosen.some((each) => of.startsWith(each) || each.startsWith(of));
  showVerdicts(verdicts.filter(({ of, isMet }) => isMet !== null || isChosen(of)));
}

function save(): void {
  const results = new URL("results/", import.meta.url);
  mkdirSync(results, { recursive: true });
  writeFileSync(new URL("latest.json", results), `${everything}\n`);
  const caption =
    `${new Date().toISOString().slice(0, 10)}, Node ${machine.node}, medians of ${repetitions} repetitions. ` +
    "Longer is better; each line is ten times the one before.";
  const drawn = found.filter(({ figures }) => figures.has("pawl"));
  writeFileSync(new URL("latest.svg", results), plot(drawn.map(panelOf), caption));
}
