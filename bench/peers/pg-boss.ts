import pg from "pg";
import { PgBoss } from "pg-boss";
import { createBeginProbe } from "../begin-probe.ts";
import { callFrom } from "../callers.ts";
import type { OpenDriver } from "../driver.ts";

// A queue that notifies is quick to begin a job and slow to take one, since commits that notify follow one another. An
// application chooses per queue; so does the bench, for each workload what suits it.
const polledQueue = "polled";
const notifiedQueue = "notified";

const poolSize = 10;
const localConcurrency = 4;
const batchSize = 500;
const pollingIntervalSeconds = 0.5;

const findJob = `select exists (select from pgboss.job
                                 where name in ('${polledQueue}', '${notifiedQueue}') and state < 'completed') as found`;

/** A queue: the caller of a job cannot await its result, and it has no steps. */
export const open: OpenDriver = (url) => {
  const boss = new PgBoss({ connectionString: url, max: poolSize, useListenNotify: true });
  const database = new pg.Pool({ connectionString: url, max: 1 });
  const probe = createBeginProbe();
  let starting: Promise<PgBoss> | null = null;

  boss.on("error", (error) => console.error(error));
  const getBoss = (): Promise<PgBoss> => (starting ??= boss.start());

  return {
    product: "pg-boss 12.38.0",
    settings:
      `max ${poolSize} connections, batchSize ${batchSize}, localConcurrency ${localConcurrency}, burstWhenBatchFull; ` +
      `throughput: a queue polled every ${pollingIntervalSeconds} s, the least it allows; ` +
      "latency: a queue with notify, and useListenNotify",
    async migrate() {
      const started = await getBoss();
      await started.createQueue(polledQueue);
      await started.createQueue(notifiedQueue, { notify: true });
    },
    async startSingly(count, callers) {
      const started = await getBoss();
      await callFrom(callers, count, (order) => started.send(polledQueue, { order }));
    },
    async startInBulk(count) {
      const jobs = Array.from({ length: count }, (_, order) => ({ data: { order } }));
      await (await getBoss()).insert(polledQueue, jobs);
    },
    async work() {
      const started = await getBoss();
      const options = { batchSize, localConcurrency, burstWhenBatchFull: true, pollingIntervalSeconds };
      for (const queue of [polledQueue, notifiedQueue])
        await started.work(queue, options, async () => probe.begin());
    },
    async hasPlainJobs() {
      const { rows } = await database.query<{ found: boolean }>(findJob);
      return rows[0]?.found ?? false;
    },
    async latencies(count) {
      const started = await getBoss();
      const { begins } = await probe.time(count, (order) => started.send(notifiedQueue, { order }));
      return { begins, results: [], direct: [] };
    },
    async close() {
      if (starting !== null) await (await starting).stop();
      await database.end();
    },
  };
};
