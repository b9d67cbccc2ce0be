import { randomUUID } from "node:crypto";
import { test } from "pawl-test-support";
import { expect } from "vitest";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";

const sample = { held: 0, memoryBytes: 1, cpuRatio: 0, lagMs: 0 };

async function register(store: PostgresStore): Promise<string> {
  await store.migrate();
  const id = randomUUID();
  await store.registerWorker({ id, leaseMs: 60_000, host: "h", pid: 1, queues: [], concurrency: 1 });
  return id;
}

test("a sample that cannot be stored is dropped, and the heartbeat counts", async ({
  database,
  pool,
  schema,
}) => {
  const store = createPostgresStore({
    url: database.url,
    schema,
    listen: false,
    timers: systemTimers,
    random: systemRandom,
  });
  const workerId = await register(store);
  const beat = () => store.heartbeat({ workerId, held: [], claimsKnownTo: null, sample });

  // Somebody rewrites the table, and holds it for long.
  const holder = await pool.connect();
  await holder.query(`begin; lock table ${schema}.worker_sample in access exclusive mode`);
  expect(await beat()).toMatchObject({ alive: true });
  await holder.query("rollback");
  holder.release();

  const tooLarge = { ...sample, held: 2 ** 40 };
  expect(await store.heartbeat({ workerId, held: [], claimsKnownTo: null, sample: tooLarge })).toMatchObject({
    alive: true,
  });
  await pool.query(`drop table ${schema}.worker_sample cascade`);
  expect(await beat()).toMatchObject({ alive: true });
  await store.close();
});
