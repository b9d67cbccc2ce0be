import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { silentLog } from "../../src/core/log.ts";
import { createListener, type Listener, parseHints } from "../../src/postgres/listener.ts";
import { createPostgresStore } from "../../src/postgres/postgres-store.ts";
import { schemaName } from "../../src/postgres/schema-name.ts";
import type { Hint } from "../../src/store/hint.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { createTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

const schema = schemaName("pawl");
const soon = { timeout: 15_000 };
/** How long the listener waits for an answer when it asks whether its connection is still there. */
const answerMs = 5_000;

let database: TestDatabase;
let pool: pg.Pool;
let proxy: TcpProxy;
let hints: Hint[];
let changes: string[];
let listener: Listener;

beforeAll(async () => {
  database = await createDatabase("empty");
  pool = new pg.Pool({ connectionString: database.url, max: 1 });
});

afterAll(async () => {
  await pool.end();
  await dropDatabase(database);
});

beforeEach(async () => {
  proxy = await createTcpProxy(database.url);
  hints = [];
  changes = [];
  listener = createListener({
    client: { connectionString: proxy.url, application_name: "listener under test" },
    schema,
    timers: systemTimers,
    random: systemRandom,
    log: silentLog,
    checkMs: 100,
    onHint: (hint) => hints.push(hint),
    onChange: (state) => changes.push(state),
  });
  listener.start();
  await expect.poll(() => listener.isListening(), soon).toBe(true);
});

afterEach(async () => {
  await listener.stop();
  await proxy.close();
});

const say = (payload: string) => pool.query("select pg_notify($1, $2)", [schema.channel, payload]);
const reconnections = (): number => hints.filter(({ kind }) => kind === "reconnected").length;

describe("the listener", () => {
  test("says that hints may have been lost, as soon as it listens", () => {
    expect(hints).toEqual([{ kind: "reconnected" }]);
  });

  test("passes on what it hears", async () => {
    await say("rdefault");
    await expect.poll(() => hints, soon).toContainEqual({ kind: "ready", queue: "default" });
  });

  test("tells once that its connection is lost, and that it is back", async () => {
    expect(changes).toEqual([]);
    await pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'listener under test'",
    );
    await expect.poll(reconnections, soon).toBe(2);
    expect(changes).toEqual(["dead", "live"]);
  });

  test("comes back when the server closes its connection, and says so", async () => {
    await pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'listener under test'",
    );
    await expect.poll(reconnections, soon).toBe(2);
    await say("rdefault");
    await expect.poll(() => hints, soon).toContainEqual({ kind: "ready", queue: "default" });
  });

  test(
    "finds out that its connection is dead although nothing says so, and comes back",
    { timeout: 20_000 },
    async () => {
      proxy.stall();
      const stalledAt = performance.now();
      await expect.poll(reconnections, soon).toBe(2);
      expect(performance.now() - stalledAt).toBeLessThan(answerMs + 2_000);
      await expect.poll(() => proxy.openCount()).toBe(1);
    },
  );

  test("of a store finds that out within 15 seconds", { timeout: 30_000 }, async () => {
    const store = createPostgresStore({ url: proxy.url, timers: systemTimers, random: systemRandom });
    const heard: Hint[] = [];
    store.subscribe((hint) => heard.push(hint));
    await expect.poll(() => heard, soon).toHaveLength(1);
    proxy.stall();
    const stalledAt = performance.now();
    await expect.poll(() => heard, { timeout: 20_000 }).toHaveLength(2);
    expect(performance.now() - stalledAt).toBeLessThan(15_000);
    await store.close();
  });

  test("keeps trying while the server cannot be reached, and says that it does not listen", async () => {
    await proxy.close();
    await expect.poll(() => listener.isListening(), soon).toBe(false);
  });

  test("leaves no connection behind when it stops, and may be stopped twice", async () => {
    await Promise.all([listener.stop(), listener.stop()]);
    expect(listener.isListening()).toBe(false);
    await expect.poll(() => proxy.openCount(), soon).toBe(0);
  });
});

describe("a hint", () => {
  const id = "01a1de8c-5662-70e8-800c-18464d374730";
  const short = id.replaceAll("-", "");

  test.for([
    ["rdefault", [{ kind: "ready", queue: "default" }]],
    ["rr,t", [{ kind: "ready", queue: "r,t" }]],
    [`t${short}`, [{ kind: "told", runId: id }]],
    [`s${short}`, [{ kind: "sent", runId: id }]],
    [
      `e${short},${short}`,
      [
        { kind: "ended", runId: id },
        { kind: "ended", runId: id },
      ],
    ],
    ["", []],
    ["xunknown", []],
  ] as const)("%j is read as %j", ([payload, expected]) => {
    expect(parseHints(payload)).toEqual(expected);
  });
});
