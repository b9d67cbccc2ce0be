import { createIds } from "../packages/pawl/src/core/ids.ts";
import { silentLog } from "../packages/pawl/src/core/log.ts";
import { createExecution, type ExecutionDeps } from "../packages/pawl/src/runtime/execution.ts";
import { workflow, type Workflow } from "../packages/pawl/src/runtime/workflow.ts";
import type { ClaimedRun } from "../packages/pawl/src/store/lease.ts";
import type { Store } from "../packages/pawl/src/store/store.ts";
import { systemClock } from "../packages/pawl/src/system/system-clock.ts";
import { systemRandom } from "../packages/pawl/src/system/system-random.ts";
import { systemSettle } from "../packages/pawl/src/system/system-settle.ts";
import { systemTimers } from "../packages/pawl/src/system/system-timers.ts";

// npx tsx --conditions=@pawl/source bench/engine.ts: what a run costs in Node alone, with a store that says yes at once. 200 in
// flight, as a worker has them. Whatever is left between this and a whole run is the store's, and the driver's.

const names = ["one", "two", "three", "four", "five"] as const;
const fiveSteps = workflow(
  { name: "five-steps", version: 1 },
  async (ctx, input: { readonly order: number }) => {
    for (const name of names) await ctx.step(name, () => ({ order: input.order, ok: true }));
  },
);
const plain = workflow({ name: "plain", version: 1 }, async (_ctx, _input: { readonly order: number }) => {});
const parallel = workflow({ name: "parallel", version: 1 }, async (ctx) => {
  await Promise.all(Array.from({ length: 1_000 }, (_, n) => ctx.step("one", () => n)));
});

const noTimers: ReadonlyMap<number, number> = new Map();
const yes = {
  record: () => Promise.resolve({ told: false, dueAt: noTimers, now: Date.now() }),
  end: () => Promise.resolve(),
} as unknown as Store;

const ids = createIds(Date.now, systemRandom);
const workflows = new Map<string, Workflow>([fiveSteps, plain, parallel].map((each) => [each.name, each]));
const deps: ExecutionDeps = {
  store: yes,
  workerId: ids.next(),
  clock: systemClock,
  random: systemRandom,
  timers: systemTimers,
  log: silentLog,
  probe: () => {},
  isAlive: () => true,
  findWorkflow: (name) => workflows.get(name),
  ids,
  settle: systemSettle,
};

function claimed(name: string, order: number): ClaimedRun {
  const runId = ids.next();
  const now = Date.now();
  return {
    runId,
    epoch: 1,
    workflow: name,
    version: 1,
    queue: "default",
    key: null,
    parentId: null,
    rootId: runId,
    depth: 0,
    input: { json: JSON.stringify({ order }), notes: null },
    isInputLeftOut: false,
    isRaw: false,
    tags: [],
    retry: null,
    lastSeq: 0,
    attempt: 1,
    failures: 0,
    suspicion: 0,
    told: false,
    createdAt: now,
    deadlineAt: null,
    claimedAt: now,
    mark: { priority: 0, readyAt: now, runId },
  };
}

async function measure(name: string, count: number, inFlight: number): Promise<number> {
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < count) {
      const outcome = await createExecution(claimed(name, next++), deps).done;
      if (outcome !== "ended") throw new Error(`The run was ${outcome}.`);
    }
  };
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: inFlight }, caller));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

const rounds = Number(process.argv[2] ?? 5);
const only = process.argv[3];
for (const [name, count, inFlight] of [
  ["plain", 20_000, 200],
  ["five-steps", 8_000, 200],
  ["parallel", 20, 2],
] as const) {
  if (only !== undefined && only !== name) continue;
  const found: number[] = [];
  for (let round = 0; round < rounds; round++) found.push(await measure(name, count, inFlight));
  console.log(name.padEnd(12), found.map((us) => us.toFixed(1)).join("  "), "µs of CPU a run");
}
