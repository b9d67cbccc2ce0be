import { defineWorkflow, OpenWorkflow } from "openworkflow";
import type { Worker, Workflow } from "openworkflow";
import { BackendPostgres } from "openworkflow/postgres";
import postgres from "postgres";
import { createBeginProbe } from "../begin-probe.ts";
import { callFrom } from "../callers.ts";
import type { OpenDriver } from "../driver.ts";

const poolSize = 20;
const concurrency = 100;

const stepNames = ["one", "two", "three", "four", "five"] as const;

/** A workflow that takes a number: which one it is, or how many to do. */
type Numbered = Workflow<number, unknown, number>;

export const open: OpenDriver = (url) => {
  // It reads its columns by names in camel case, as the pool gives them that it would make itself, of 10 connections.
  const pool = postgres(url, { max: poolSize, transform: { column: { from: postgres.toCamel } } });
  const backend = BackendPostgres.fromPool(pool);
  const client = new OpenWorkflow({ backend });
  const probe = createBeginProbe();
  const { plain, fiveSteps, parallelSteps, child, parent } = defineWorkflows(() => probe.begin());
  let worker: Worker | null = null;

  for (const { spec, fn } of [plain, fiveSteps, parallelSteps, child, parent])
    client.implementWorkflow(spec, fn);
  const run = async (workflow: Numbered, input: number): Promise<unknown> =>
    await (await client.runWorkflow(workflow.spec, input)).result();

  return {
    product: "OpenWorkflow 0.10.1",
    settings:
      `worker concurrency ${concurrency}, a pool of ${poolSize} connections; not settable: an idle worker looks every 0.1 to 1 s, ` +
      "and result() looks at once and then every second, which bounds whatever is awaited",
    async migrate() {
      await (await BackendPostgres.connect(url)).stop();
    },
    async startSingly(count, callers) {
      await callFrom(callers, count, (order) => client.runWorkflow(plain.spec, order));
    },
    async work() {
      worker = client.newWorker({ concurrency });
      await worker.start();
    },
    async hasPlainJobs() {
      const [row] = await pool<{ found: boolean }[]>`
        select exists (select from openworkflow.workflow_runs
                        where namespace_id = 'default' and workflow_name = 'plain' and status in ('pending', 'running')) as found`;
      return row?.found ?? false;
    },
    async fiveSteps(count, inFlight) {
      await callFrom(inFlight, count, (order) => run(fiveSteps, order));
    },
    async latencies(count) {
      const { begins, ends: results } = await probe.time(count, (order) => run(plain, order));
      return { begins, results, direct: [] };
    },
    async parallelSteps(count) {
      await run(parallelSteps, count);
    },
    async children(count) {
      await run(parent, count);
    },
    async close() {
      await worker?.stop();
      await backend.stop();
    },
  };
};

interface Workflows {
  readonly plain: Numbered;
  readonly fiveSteps: Numbered;
  readonly parallelSteps: Numbered;
  readonly child: Numbered;
  readonly parent: Numbered;
}

function defineWorkflows(onBegin: () => void): Workflows {
  const child: Numbered = defineWorkflow({ name: "child" }, ({ input }) => input);
  return {
    child,
    plain: defineWorkflow({ name: "plain" }, ({ input }) => {
      onBegin();
      return input;
    }),
    fiveSteps: defineWorkflow({ name: "five-steps" }, async ({ input: order, step }) => {
      for (const name of stepNames) await step.run({ name }, () => ({ order, ok: true }));
    }),
    parallelSteps: defineWorkflow({ name: "parallel-steps" }, async ({ input: count, step }) => {
      const orders = Array.from({ length: count }, (_, order) => order);
      await Promise.all(
        orders.map((order) => step.run({ name: `step-${order}` }, () => ({ order, ok: true }))),
      );
    }),
    parent: defineWorkflow({ name: "parent" }, async ({ input: count, step }) => {
      const orders = Array.from({ length: count }, (_, order) => order);
      await Promise.all(
        orders.map((order) => step.runWorkflow(child.spec, order, { name: `child-${order}` })),
      );
    }),
  };
}
