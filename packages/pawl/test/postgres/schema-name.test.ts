import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createIds } from "../../src/core/ids.ts";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import { schemaName } from "../../src/postgres/schema-name.ts";
import type { Hint } from "../../src/store/hint.ts";
import type { Lease } from "../../src/store/lease.ts";
import { plainRun } from "../../src/store/run-record.ts";
import type { Store } from "../../src/store/store.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";

const ids = createIds(Date.now, systemRandom);
const stores: PostgresStore[] = [];
let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase("empty");
});

afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await dropDatabase(database);
});

interface Listening {
  readonly store: PostgresStore;
  readonly hints: readonly Hint[];
}

async function open(schema: string): Promise<Listening> {
  const store = createPostgresStore({
    url: database.url,
    schema,
    timers: systemTimers,
    random: systemRandom,
  });
  stores.push(store);
  await store.migrate();
  const hints: Hint[] = [];
  store.subscribe((hint) => hints.push(hint));
  await expect.poll(() => store.isListening(), { timeout: 10_000 }).toBe(true);
  return { store, hints };
}

async function start(store: Store, queue: string): Promise<string> {
  const id = ids.next();
  await store.createRuns([{ id, workflow: "checkout", version: 1, queue, ...plainRun }]);
  return id;
}

async function claim(store: Store, queue: string): Promise<Lease> {
  const workerId = ids.next();
  await store.registerWorker({
    id: workerId,
    leaseMs: 60_000,
    host: "here",
    pid: 1,
    queues: [queue],
    concurrency: 1,
  });
  const lane = { queue, workflow: "checkout", version: 1, after: null, crashLimit: 3 };
  const { runs } = await store.claimRuns({ workerId, lanes: [lane], limit: 1, suspects: false, begin: true });
  return { runId: runs[0]!.runId, epoch: runs[0]!.epoch, workerId };
}

async function end(store: Store, lease: Lease, seq = 1): Promise<void> {
  const completed = { seq, kind: "completed", name: null, data: null } as const;
  await store.end({
    lease,
    parentId: null,
    events: [completed],
    children: [],
    status: "completed",
    output: null,
    error: null,
  });
}

test('a run lives its whole life in a schema named we"ird', async () => {
  const { store, hints } = await open('we"ird');
  const queue = `it's "quoted", \\ and ünicode`;
  const runId = await start(store, queue);
  await expect.poll(() => hints, { timeout: 10_000 }).toContainEqual({ kind: "ready", queue });
  const lease = await claim(store, queue);
  const signal = {
    id: ids.next(),
    runId,
    topic: "signal:shipped",
    data: null,
    idempotencyKey: null,
  } as const;
  expect(await store.tell(signal)).toBe("accepted");
  await expect.poll(() => hints, { timeout: 10_000 }).toContainEqual({ kind: "told", runId });
  await store.record({
    lease,
    events: [{ seq: 1, kind: "step_completed", name: "charge", data: null }],
    children: [],
  });
  await end(store, lease, 2);
  await expect.poll(() => hints, { timeout: 10_000 }).toContainEqual({ kind: "ended", runId });
  expect(await store.getRun(runId)).toMatchObject({ status: "completed" });
});

test("two schemas in one database do not hear each other", async () => {
  const left = await open("left");
  const right = await open("right");
  const runId = await start(left.store, "default");
  await end(left.store, await claim(left.store, "default"));
  await expect.poll(() => left.hints, { timeout: 10_000 }).toContainEqual({ kind: "ended", runId });
  await start(right.store, "last");
  await expect.poll(() => right.hints, { timeout: 10_000 }).toContainEqual({ kind: "ready", queue: "last" });
  expect(right.hints).toEqual([{ kind: "reconnected" }, { kind: "ready", queue: "last" }]);
  expect(await right.store.getRun(runId)).toBeNull();
});

test("names that are equal in their first 63 bytes have channels of their own", () => {
  expect(schemaName(`${"a".repeat(62)}b`).channel).not.toBe(schemaName(`${"a".repeat(62)}c`).channel);
});

test.for([[""], ["nul\0"], ["\ud800"], ["a".repeat(64)], ["ü".repeat(32)]])(
  "the name %j is refused",
  ([name]) => {
    expect(() => schemaName(name!)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  },
);
