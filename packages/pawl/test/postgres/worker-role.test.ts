import { randomBytes } from "node:crypto";
import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import { bindSchema, schemaName } from "../../src/postgres/schema-name.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { measuredCalls } from "./measured-calls.ts";

const schema = schemaName("pawl");
const role = `worker_${randomBytes(6).toString("hex")}`;
const password = randomBytes(12).toString("hex");

let database: TestDatabase;
let admin: pg.Pool;
let own: pg.Pool;
let store: PostgresStore;

beforeAll(async () => {
  database = await createDatabase("empty");
  admin = new pg.Pool({ connectionString: database.url, max: 2 });
  await admin.query(`create role ${role} login password '${password}'`);
  const owner = createPostgresStore({
    pool: admin,
    listen: false,
    timers: systemTimers,
    random: systemRandom,
  });
  await owner.migrate({ grantTo: role });

  const url = new URL(database.url);
  url.username = role;
  url.password = password;
  own = new pg.Pool({ connectionString: url.href, max: 5 });
  store = createPostgresStore({ pool: own, timers: systemTimers, random: systemRandom });
});

afterAll(async () => {
  await store.close();
  await own.end();
  await admin.query(`drop owned by ${role}; drop role ${role}`);
  await admin.end();
  await dropDatabase(database);
});

test.for(Object.entries(measuredCalls))("the role that workers run as may %s", async ([, call]) => {
  const { transition, values } = await call(store, 2);
  await expect(own.query(bindSchema(transition.text, schema, ""), [...values])).resolves.toBeDefined();
});

test("the role that workers run as reads every view, and asks why a run does not go on", async () => {
  const { rows } = await own.query<{ name: string }>(
    "select viewname as name from pg_views where schemaname = 'pawl'",
  );
  expect(rows.length).toBeGreaterThan(0);
  for (const { name } of rows) await own.query(`select * from pawl.${name} limit 1`);
  await own.query("select pawl.why(id), pawl.id_of('k'), pawl.id_at(now()) from pawl.runs limit 1");
});

test("the role that workers run as hears notifications", async () => {
  store.subscribe(() => {});
  await expect.poll(() => store.isListening(), { timeout: 10_000 }).toBe(true);
});

test("the role that workers run as may check the schema, and finds nothing to migrate", async () => {
  await expect(store.migrate({ verifyOnly: true })).resolves.toMatchObject({ applied: [] });
  await expect(store.migrate()).resolves.toMatchObject({ applied: [] });
});

test.for([
  ["make a table", "create table pawl.mine ()"],
  ["change a table", "alter table pawl.run add column mine text"],
  [
    "replace a function",
    "create or replace function pawl.hint_ready_v1(p_queues text[]) returns void language sql as ''",
  ],
  ["pretend another version", "insert into pawl.migration (version, name) values (99, 'mine')"],
  ["drop the schema", "drop schema pawl cascade"],
])("the role that workers run as may not %s", async ([, sql]) => {
  await expect(own.query(sql!)).rejects.toMatchObject({ code: "42501" });
});

test("a role without rights is told how to get them", async () => {
  await admin.query(`revoke all on schema pawl from ${role}`);
  await expect(store.getRun("00000000-0000-7000-8000-000000000000")).rejects.toMatchObject({
    code: "DATABASE",
    message: expect.stringContaining("grantTo"),
  });
  await admin.query(`grant usage on schema pawl to ${role}`);
});
