import { DBOS, DBOSClient } from "@dbos-inc/dbos-sdk";
import pg from "pg";
import { createBeginProbe } from "../begin-probe.ts";
import { callFrom } from "../callers.ts";
import type { OpenDriver } from "../driver.ts";

const name = "bench";
const applicationVersion = "1";
const queueName = "plain";

const systemDatabasePoolSize = 20;
// Without a limit the first process to look takes the whole queue.
const workerConcurrency = 500;
// Both are a second by default. Below 10 ms the looks cost more than they gain.
const minPollingIntervalMs = 10;
const pollingIntervalMs = 10;

const stepNames = ["one", "two", "three", "four", "five"] as const;

const findJob = `select exists (select from dbos.workflow_status
                                 where queue_name = '${queueName}' and status in ('ENQUEUED', 'PENDING')) as found`;

type Numbered = (order: number) => Promise<unknown>;

/** DBOS is one per process, and what it runs is registered before it is launched: open it once. */
export const open: OpenDriver = (url) => {
  const probe = createBeginProbe();
  const database = new pg.Pool({ connectionString: url, max: 1 });
  const { plain, fiveSteps, parallelSteps, parent } = registerWorkflows(() => probe.begin());
  let client: Promise<DBOSClient> | null = null;

  const getClient = (): Promise<DBOSClient> =>
    (client ??= DBOSClient.create({ systemDatabaseUrl: url, systemDatabasePoolSize, applicationName: name }));
  const runDirectly = async (workflow: Numbered, order: number): Promise<unknown> =>
    await (await DBOS.startWorkflow(workflow)(order)).getResult();
  const runThroughQueue = async (workflow: Numbered, order: number): Promise<unknown> =>
    await (await DBOS.startWorkflow(workflow, { queueName })(order)).getResult({ pollingIntervalMs });

  return {
    product: "DBOS Transact 5.3.0",
    settings:
      `systemDatabasePoolSize ${systemDatabasePoolSize}, LISTEN/NOTIFY on (its default; its queues and results do not use it); ` +
      `queue: workerConcurrency ${workerConcurrency}, minPollingIntervalMs ${minPollingIntervalMs}; ` +
      `results of queued workflows: pollingIntervalMs ${pollingIntervalMs}; ` +
      "workflows with steps or children start directly, in the calling process, which is quicker than its queue",
    async migrate() {
      await DBOS.migrate(url);
      await (await getClient()).registerQueue(queueName, { workerConcurrency, minPollingIntervalMs });
    },
    async startSingly(count, callers) {
      const caller = await getClient();
      const options = { queueName, workflowName: "plain", appVersion: applicationVersion };
      await callFrom(callers, count, (order) => caller.enqueue<Numbered>(options, order));
    },
    async work() {
      // Processes that share an executor's id would recover each other's workflows.
      const executorID = `bench-${process.pid}`;
      const systemDatabaseUrl = url;
      DBOS.setConfig({
        name,
        applicationVersion,
        executorID,
        systemDatabaseUrl,
        systemDatabasePoolSize,
        logLevel: "warn",
      });
      await DBOS.launch();
    },
    async hasPlainJobs() {
      const { rows } = await database.query<{ found: boolean }>(findJob);
      return rows[0]?.found ?? false;
    },
    async fiveSteps(count, inFlight) {
      await callFrom(inFlight, count, (order) => runDirectly(fiveSteps, order));
    },
    async latencies(count) {
      const { begins, ends: results } = await probe.time(count, (order) => runThroughQueue(plain, order));
      const { ends: direct } = await probe.time(count, (order) => runDirectly(plain, order));
      return { begins, results, direct };
    },
    async parallelSteps(count) {
      await runDirectly(parallelSteps, count);
    },
    async children(count) {
      await runDirectly(parent, count);
    },
    async close() {
      if (DBOS.isInitialized()) await DBOS.shutdown();
      await (await client)?.destroy();
      await database.end();
    },
  };
};

interface Workflows {
  readonly plain: Numbered;
  readonly fiveSteps: Numbered;
  readonly parallelSteps: Numbered;
  readonly parent: Numbered;
}

function registerWorkflows(onBegin: () => void): Workflows {
  const register = (name: string, workflow: Numbered): Numbered => DBOS.registerWorkflow(workflow, { name });
  const runStep = (name: string, order: number): Promise<unknown> =>
    DBOS.runStep(async () => ({ order, ok: true }), { name });
  const child = register("child", async (order) => order);

  return {
    plain: register("plain", async (order) => {
      onBegin();
      return order;
    }),
    fiveSteps: register("five-steps", async (order) => {
      for (const name of stepNames) await runStep(name, order);
    }),
    parallelSteps: register("parallel-steps", async (count) => {
      await Promise.all(Array.from({ length: count }, (_, order) => runStep("one", order)));
    }),
    parent: register("parent", async (count) => {
      const orders = Array.from({ length: count }, (_, order) => order);
      const handles = await Promise.all(orders.map((order) => DBOS.startWorkflow(child)(order)));
      await Promise.all(handles.map((handle) => handle.getResult()));
    }),
  };
}
