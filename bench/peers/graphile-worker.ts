import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import type { Runner, WorkerUtils } from "graphile-worker";
import { createBeginProbe } from "../begin-probe.ts";
import { callFrom } from "../callers.ts";
import type { OpenDriver } from "../driver.ts";

const concurrentJobs = 24;
const maxPoolSize = 25;
// Its page on performance has 500; the option's own comment advises far more for tasks that take no time.
const localQueueSize = 2_000;
// Merges what ends within one turn of the event loop and holds no job back: good for throughput and latency alike.
const batchDelayMs = 0;

const findJob = "select exists (select from graphile_worker._private_jobs) as found";

/** A queue: it deletes a job that is done, and has neither results nor steps. */
export const open: OpenDriver = (url) => {
  const preset: GraphileConfig.Preset = {
    worker: {
      connectionString: url,
      concurrentJobs,
      maxPoolSize,
      localQueue: { size: localQueueSize },
      completeJobBatchDelay: batchDelayMs,
      failJobBatchDelay: batchDelayMs,
      logger: new Logger(() => () => {}),
    },
  };
  const probe = createBeginProbe();
  let utils: Promise<WorkerUtils> | null = null;
  let runner: Runner | null = null;

  const getUtils = (): Promise<WorkerUtils> => (utils ??= makeWorkerUtils({ preset }));
  const startOne = async (order: number): Promise<void> => {
    await (await getUtils()).addJob("plain", { order });
  };

  return {
    product: "graphile-worker 0.18.0",
    settings:
      `concurrentJobs ${concurrentJobs}, maxPoolSize ${maxPoolSize}, completeJobBatchDelay ${batchDelayMs} and ` +
      `failJobBatchDelay ${batchDelayMs}, as on its page on performance; localQueue.size ${localQueueSize}, as the option ` +
      "advises for very fast tasks; callers have a pool of their own",
    async migrate() {
      await runMigrations({ preset });
    },
    async startSingly(count, callers) {
      await callFrom(callers, count, startOne);
    },
    async startInBulk(count) {
      const jobs = Array.from({ length: count }, (_, order) => ({ identifier: "plain", payload: { order } }));
      await (await getUtils()).addJobs(jobs);
    },
    async work() {
      runner = await run({ preset, noHandleSignals: true }, { plain: () => probe.begin() });
    },
    async hasPlainJobs() {
      const { rows } = await (
        await getUtils()
      ).withPgClient((client) => client.query<{ found: boolean }>(findJob));
      return rows[0]?.found ?? false;
    },
    async latencies(count) {
      const { begins } = await probe.time(count, startOne);
      return { begins, results: [], direct: [] };
    },
    async close() {
      await runner?.stop();
      await (await utils)?.release();
    },
  };
};
