import { test } from "pawl-test-support";
import pg from "pg";
import { expect } from "vitest";
import { createIds } from "../../src/core/ids.ts";
import { createPawl, workflow } from "../../src/index.ts";
import { createPostgresStore } from "../../src/postgres/postgres-store.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";

const job = workflow({ name: "job", version: 1 }, async () => {});

test("a connection that comes with an open transaction is cut, and the call made on another", async ({
  database,
  schema,
}) => {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  await using pawl = createPawl({ pool, schema });
  await pawl.migrate();
  const careless = await pool.connect();
  await careless.query("begin");
  careless.release();
  const { id } = await pawl.start(job);
  await using other = createPawl({ url: database.url, schema });
  expect(await other.get(id)).toMatchObject({ status: "pending" });
  await pawl.close();
  await pool.end();
});

test("a worker stays alive while the caller takes up the whole pool", async ({ database, schema }) => {
  const pool = new pg.Pool({ connectionString: database.url, max: 2 });
  const store = createPostgresStore({ pool, schema, timers: systemTimers, random: systemRandom });
  await store.migrate();
  const workerId = createIds(() => 1_800_000_000_000, systemRandom).next();
  await store.registerWorker({
    id: workerId,
    leaseMs: 5_000,
    host: "here",
    pid: 1,
    queues: ["default"],
    concurrency: 1,
  });
  const taken = await Promise.all([pool.connect(), pool.connect()]);
  expect(await store.heartbeat({ workerId, held: [], claimsKnownTo: null })).toMatchObject({ alive: true });
  for (const client of taken) client.release();
  await store.close();
  await pool.end();
});

test("a pool that has no connection to give is given up, not waited for", async ({ database, schema }) => {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  const store = createPostgresStore({ pool, schema, timers: systemTimers, random: systemRandom });
  await store.migrate();
  const taken = await pool.connect();
  await expect(store.now()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  taken.release();
  expect(await store.now()).toBeTypeOf("number");
  await store.close();
  await pool.end();
}, 15_000);
