import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { borrowClient } from "../../src/postgres/borrow-client.ts";
import { createDatabase as createConnections, type Database } from "../../src/postgres/database.ts";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import { databaseClock, schemaName } from "../../src/postgres/schema-name.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { createTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

const answer = { name: "answer", text: "select 42 as answer" };
const nap = { name: "nap", text: "select pg_sleep(60)" };
const queryTimeoutMs = 500;

let server: TestDatabase;
let admin: pg.Pool;
let proxy: TcpProxy;
let pool: pg.Pool;
let database: Database;

beforeAll(async () => {
  server = await createDatabase("empty");
  admin = new pg.Pool({ connectionString: server.url, max: 1 });
});

beforeEach(async () => {
  proxy = await createTcpProxy(server.url);
  pool = new pg.Pool({ connectionString: proxy.url, max: 1, application_name: "under test" });
  pool.on("error", () => {});
  database = open(pool);
});

afterEach(async () => {
  await proxy.close();
  await pool.end();
});

afterAll(async () => {
  await admin.end();
  await dropDatabase(server);
});

function open(on: pg.Pool, timeoutMs = queryTimeoutMs): Database {
  const schema = schemaName("pawl");
  return createConnections({
    pool: on,
    schema,
    clock: databaseClock,
    queryTimeoutMs: timeoutMs,
    timers: systemTimers,
  });
}

async function terminateConnections(): Promise<void> {
  await admin.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'under test'",
  );
}

async function isNapping(): Promise<boolean> {
  const { rowCount } = await admin.query(
    "select 1 from pg_stat_activity where state = 'active' and query = $1",
    [nap.text],
  );
  return rowCount === 1;
}

describe("a query without an answer", () => {
  test("is given up after its time, and its connection is destroyed", async () => {
    await database.call(answer, []);
    proxy.stall();
    const askedAt = performance.now();
    await expect(database.call(answer, [])).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(performance.now() - askedAt).toBeGreaterThanOrEqual(queryTimeoutMs - 5);
    await expect.poll(() => proxy.openCount()).toBe(0);
  });

  test("leaves its place in the pool to the next, which gets through", async () => {
    await database.call(answer, []);
    proxy.stall();
    await expect(database.call(answer, [])).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await expect(database.call(answer, [])).resolves.toEqual([{ answer: 42 }]);
  });

  test("does not keep others waiting longer than its own time", async () => {
    await database.call(answer, []);
    proxy.stall();
    const [first, second] = await Promise.allSettled([database.call(answer, []), database.call(answer, [])]);
    expect(first).toMatchObject({ status: "rejected" });
    expect(second).toMatchObject({ value: [{ answer: 42 }] });
  });
});

describe("a connection that the server closes", () => {
  test("while idle, is replaced without anybody noticing", async () => {
    await database.call(answer, []);
    await terminateConnections();
    await expect.poll(() => pool.totalCount).toBe(0);
    await expect(database.call(answer, [])).resolves.toEqual([{ answer: 42 }]);
  });

  test("as soon as it is open, fails the query that waited for it and is replaced", async () => {
    const held = proxy.holdHandshake();
    const asked = database.call(answer, []);
    void asked.catch(() => {});
    await held;
    await terminateConnections();
    await expect(asked).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await expect(database.call(answer, [])).resolves.toEqual([{ answer: 42 }]);
  });

  test("in the middle of a query, fails that query and is replaced", async () => {
    const patient = open(pool, 60_000);
    const napping = patient.call(nap, []);
    void napping.catch(() => {});
    await expect.poll(isNapping, { timeout: 10_000 }).toBe(true);
    await terminateConnections();
    await expect(napping).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await expect(patient.call(answer, [])).resolves.toEqual([{ answer: 42 }]);
  });
});

test("a transaction that the server ends for its idleness fails, and ends nothing else", async () => {
  const { client, giveBack } = await borrowClient(pool, systemTimers);
  await client.query("set idle_in_transaction_session_timeout = '50ms'");
  await client.query("begin");
  await new Promise<void>((ended) => void client.once("end", ended));
  await expect(client.query("select 1")).rejects.toThrow("not queryable");
  giveBack(true);
  await expect(database.call(answer, [])).resolves.toEqual([{ answer: 42 }]);
});

test("a server that cannot be reached is unavailable, not wrong", async () => {
  const nowhere = new pg.Pool({ connectionString: "postgres://nobody@127.0.0.1:1/none", max: 1 });
  const unreachable = open(nowhere);
  await expect(unreachable.call(answer, [])).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  await nowhere.end();
});

describe("the store's calls", () => {
  let store: PostgresStore;

  beforeEach(() => {
    store = createPostgresStore({
      pool,
      listen: false,
      queryTimeoutMs,
      timers: systemTimers,
      random: systemRandom,
    });
  });

  test("say that the schema is missing before it is there", async () => {
    await expect(store.getRun("00000000-0000-7000-8000-000000000000")).rejects.toMatchObject({
      code: "SCHEMA_MISSING",
    });
  });

  test("that were merged all hear that there was no answer", async () => {
    await store.migrate();
    proxy.stall();
    const message = {
      runId: "00000000-0000-7000-8000-000000000000",
      topic: "cancel",
      data: null,
      idempotencyKey: null,
    } as const;
    const tells = ["1", "2", "3"].map((digit) =>
      store.tell({ id: `00000000-0000-7000-8000-00000000000${digit}`, ...message }),
    );
    for (const outcome of await Promise.allSettled(tells)) {
      expect(outcome).toMatchObject({ reason: { code: "STORE_UNAVAILABLE" } });
    }
  });
});
