import { startPostgres } from "@pawl/embedded";
import { once } from "node:events";
import { createPawl, type RunHandle } from "pawl";
import { tell } from "./tale.ts";
import { startWorker } from "./worker-process.ts";
import { order, type Report, stepNames } from "./workflows.ts";

// Six orders, two workers, one kill -9: the other worker takes over, and no finished step runs again.
// With --keep the database stays up afterwards, to be looked at.

const orderIds = [1, 2, 3, 4, 5, 6];
const begun = new Map<string, string[]>();
const running = new Map<string, string>();
const finishedBeforeKill = new Set<string>();

function onReport(worker: string, { orderId, step, what }: Report): void {
  const place = `order ${orderId}  ${step}`;
  if (what === "begins") {
    begun.set(place, [...(begun.get(place) ?? []), worker]);
    running.set(place, worker);
  } else running.delete(place);
  tell(`${place.padEnd(18)}${what === "done" ? "done" : "…   "}  worker ${worker}`);
}

console.log("Pawl demo: six orders of four steps, two workers, and kill -9 for one of them.\n");
await using postgres = await startPostgres();
tell(`Postgres ${postgres.version} is up, in a temporary folder`);
await using pawl = createPawl({ url: postgres.url });
await pawl.migrate();
const workers = await Promise.all(["A", "B"].map((name) => startWorker(name, postgres.url, onReport)));
for (const { name, pid } of workers) tell(`worker ${name} is up (process ${pid})`);

const runs = await Promise.all(
  orderIds.map((orderId) => pawl.start(order, { orderId }, { key: `order:${orderId}` })),
);
tell("six orders are started");

const [dying, heir] = workers;
if (dying === undefined || heir === undefined) throw new Error("The demo needs two workers.");
await untilInTheMiddle(dying.name);
for (const place of await finishedSteps(runs)) finishedBeforeKill.add(place);
dying.kill();
const cutOff = [...running.values()].filter((worker) => worker === dying.name).length;
tell(
  `kill -9 for worker ${dying.name}, in the middle of ${cutOff} steps; ${finishedBeforeKill.size} were finished`,
);
tell(`its lease of 2 s runs out, then worker ${heir.name} takes over`);

const results = await Promise.all(runs.map((run) => run.result()));
tell("all six orders are done\n");

const again = [...begun].filter(([, by]) => by.length > 1);
const repeated = again.filter(([place]) => finishedBeforeKill.has(place));
console.log(`Finished steps that ran again: ${repeated.length}`);
console.log(
  `Steps that were cut off in the middle, and so began again on worker ${heir.name}: ${again.length - repeated.length}`,
);
for (const [index, lines] of results.entries())
  console.log(`  order ${orderIds[index]}: ${lines.join(", ")}`);
console.log(`
Look further:
  run.history()                                  every fact of a run, in order
  select id, status, attempt from pawl.runs;     all runs, in SQL
  select * from pawl.steps where run_id = '${runs[0]?.id}';
The workflow is examples/demo/workflows.ts; npm run demo -- --keep leaves the database up to look at.`);

if (process.argv.includes("--keep")) {
  console.log(`\nThe database is at ${postgres.url}\nCtrl-C ends it.`);
  await once(process, "SIGINT");
}
await Promise.all(workers.map((worker) => worker.stop()));
if (repeated.length > 0) throw new Error(`A step that worker ${dying.name} had finished ran again.`);

/** Resolves when a third of all steps is done and this worker is in others. */
async function untilInTheMiddle(worker: string): Promise<void> {
  const enough = (orderIds.length * stepNames.length) / 3;
  while ((await finishedSteps(runs)).length < enough || ![...running.values()].includes(worker)) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function finishedSteps(handles: readonly RunHandle[]): Promise<readonly string[]> {
  const histories = await Promise.all(handles.map((handle) => handle.history()));
  return histories.flatMap((history, index) =>
    history
      .filter((event) => event.kind === "step_completed")
      .map((event) => `order ${orderIds[index]}  ${event.name}`),
  );
}
