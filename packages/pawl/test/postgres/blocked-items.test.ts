import { setTimeout as pause } from "node:timers/promises";
import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createIds } from "../../src/core/ids.ts";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import { bindSchema, databaseClock, schemaName } from "../../src/postgres/schema-name.ts";
import { endRuns, endValues } from "../../src/postgres/transitions/end-runs.ts";
import type { Ending, Lease, NewEvent } from "../../src/store/lease.ts";
import type { NewMessage } from "../../src/store/message.ts";
import { plainRun, type NewRun } from "../../src/store/run-record.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";

const ids = createIds(Date.now, systemRandom);
/** Two waits for a lock, and room for a busy machine; before a blocked item is given up. */
const soonMs = 4_500;

let database: TestDatabase;
let store: PostgresStore;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createDatabase("empty");
  pool = new pg.Pool({ connectionString: database.url, max: 3 });
  store = createPostgresStore({
    url: database.url,
    schema: "pawl",
    listen: false,
    timers: systemTimers,
    random: systemRandom,
  });
  await store.migrate();
});

afterAll(async () => {
  await store.close();
  await pool.end();
  await dropDatabase(database);
});

function newRun(more: Partial<NewRun> = {}): NewRun {
  return { id: ids.next(), workflow: "checkout", version: 1, queue: "default", ...plainRun, ...more };
}

async function start(count: number): Promise<readonly string[]> {
  const runs = Array.from({ length: count }, () => newRun({ workflow: "parked" }));
  await store.createRuns(runs);
  return runs.map(({ id }) => id);
}

async function hold(count: number, more: Partial<NewRun> = {}): Promise<readonly Lease[]> {
  const { workflow = ids.next() } = more;
  await store.createRuns(Array.from({ length: count }, () => newRun({ ...more, workflow })));
  const workerId = ids.next();
  await store.registerWorker({
    id: workerId,
    leaseMs: 60_000,
    host: "here",
    pid: 1,
    queues: [],
    concurrency: count,
  });
  const lane = { queue: "default", workflow, version: 1, after: null, crashLimit: 3 };
  const { runs } = await store.claimRuns({
    workerId,
    lanes: [lane],
    limit: count,
    suspects: false,
    begin: true,
  });
  return runs.map(({ runId, epoch, server }) => ({ runId, epoch, workerId, server }));
}

function signalTo(runId: string, idempotencyKey: string | null = null): NewMessage {
  return { id: ids.next(), runId, topic: "signal:shipped", data: null, idempotencyKey };
}

const step = (json: string): NewEvent => ({
  seq: 1,
  kind: "step_completed",
  name: "charge",
  data: { json, notes: null },
});

/** Holds what this statement locks for as long as the act takes. */
async function whileHeld(sql: string, values: readonly unknown[], act: () => Promise<void>): Promise<void> {
  const client = await pool.connect();
  await client.query("begin");
  await client.query(sql, [...values]);
  try {
    await act();
  } finally {
    await client.query("rollback");
    client.release();
  }
}

async function withinMs<A>(ms: number, outcome: Promise<A>): Promise<A> {
  const begunAt = performance.now();
  const answer = await outcome;
  expect(performance.now() - begunAt).toBeLessThan(ms);
  return answer;
}

describe("a run whose key somebody else is inserting", () => {
  test("does not hold the runs that are created with it, and is created once the key is free", async () => {
    let held: Promise<readonly { readonly kind: string }[]>;
    const insert =
      "insert into pawl.key (shard, key, run_id, workflow, version) values (0, 'taken', $1, 'other', 1)";
    await whileHeld(insert, [ids.next()], async () => {
      held = store.createRuns([newRun({ key: "taken" })]);
      const others = Array.from({ length: 99 }, (_, n) => store.createRuns([newRun({ key: `free ${n}` })]));
      await withinMs(soonMs, Promise.all(others));
    });
    await expect(held!).resolves.toMatchObject([{ kind: "created" }]);
  });
});

describe("a run whose end is being committed", () => {
  const completed = { seq: 1, kind: "completed", name: null, data: null } as const;
  const end = { events: [completed], children: [], status: "completed", output: null, error: null } as const;

  /** Makes the call when the end is there and not committed, and commits it when the call has had to wait. */
  async function whileEnding<A>(ending: Pick<Ending, "lease" | "next">, call: () => Promise<A>): Promise<A> {
    const client = await pool.connect();
    await client.query("begin");
    const sql = bindSchema(endRuns.text, schemaName("pawl"), databaseClock);
    await client.query(sql, [...endValues(0, [{ ...end, parentId: null, ...ending }])]);
    const answer = call();
    await pause(100);
    await client.query("commit");
    client.release();
    return answer;
  }

  test("accepts no message any more", async () => {
    const [lease] = await hold(1);
    const told = await whileEnding({ lease: lease! }, () => store.tell(signalTo(lease!.runId)));
    expect(told).toBe("ended");
  });

  test("leaves a signal for its key to the run that it goes on as", async () => {
    const run = { key: "of a chain", workflow: "chain" };
    const [lease] = await hold(1, run);
    const next = { id: ids.next(), version: 1, input: null, isRaw: false };
    const asked = { run: newRun(run), message: signalTo(lease!.runId), boundTo: null };
    const answer = await whileEnding({ lease: lease!, next }, () => store.signalOrStart(asked));
    expect(answer).toEqual({ kind: "found", id: next.id, told: "accepted" });
  });
});

describe("a run whose row somebody else has locked", () => {
  test("does not hold messages to other runs, and is told once it is free", async () => {
    const [locked, ...others] = await start(100);
    let held: Promise<string>;
    await whileHeld("select 1 from pawl.run where id = $1 for update", [locked], async () => {
      held = store.tell(signalTo(locked!));
      await withinMs(soonMs, Promise.all(others.map((runId) => store.tell(signalTo(runId)))));
    });
    await expect(held!).resolves.toBe("accepted");
  });

  test("does not hold records of other runs of the same worker", async () => {
    const [locked, ...others] = await hold(100);
    let held: Promise<unknown>;
    await whileHeld("select 1 from pawl.lease where run_id = $1 for update", [locked!.runId], async () => {
      held = store.record({ lease: locked!, events: [step("1")], children: [] });
      const records = others.map((lease) => store.record({ lease, events: [step("1")], children: [] }));
      await withinMs(soonMs, Promise.all(records));
    });
    await expect(held!).resolves.toMatchObject({ told: false });
    expect(await store.loadHistory(locked!.runId, 0)).toHaveLength(1);
  });
});

describe("a parked run that is due, and locked", () => {
  test("is asked for again soon, since who has locked it may not take it", async () => {
    const lanes = [{ queue: "due", workflow: "due", version: 1, crashLimit: 3, after: null }];
    const waker = { workerId: null, lanes, sparesMs: 1_000 };
    const startAt = Date.now() + 200;
    const run = newRun({ queue: "due", workflow: "due", startAt });
    await store.createRuns([run]);
    await pause(250);
    await whileHeld("select 1 from pawl.parked where run_id = $1 for update", [run.id], async () => {
      const { woken, hasMore, nextDueAt, now } = await store.wakeDue(500, waker);
      expect({ woken, hasMore, nextInMs: nextDueAt! - now }).toEqual({
        woken: 0,
        hasMore: false,
        nextInMs: 50,
      });
    });
    expect(await store.wakeDue(500, waker)).toMatchObject({ woken: 1, nextDueAt: null });
  });

  test("does not keep a worker from what is behind it, nor does a peer that takes as many as it would", async () => {
    const [lease] = await hold(1);
    const lanes = [{ queue: "due", workflow: "due", version: 1, crashLimit: 3, after: null }];
    const waker = { workerId: lease!.workerId, lanes, most: 1, sparesMs: 1_000 };
    const startAt = Date.now() + 200;
    const runs = [0, 1].map((after) => newRun({ queue: "due", workflow: "due", startAt: startAt + after }));
    await store.createRuns(runs);
    await pause(250);
    await whileHeld("select 1 from pawl.parked where run_id = $1 for update", [runs[0]!.id], async () => {
      const held = { runId: runs[1]!.id };
      expect(await store.wakeDue(500, waker)).toMatchObject({ woken: 1, held: [held], isRenewed: true });
      const { woken, hasMore, nextDueAt, now } = await store.wakeDue(500, waker);
      expect({ woken, hasMore, nextInMs: nextDueAt! - now }).toEqual({
        woken: 0,
        hasMore: false,
        nextInMs: 50,
      });
    });
    expect(await store.wakeDue(500, waker)).toMatchObject({ woken: 1, held: [{ runId: runs[0]!.id }] });
  });
});

describe("an item that the database refuses", () => {
  test("fails alone: what is no JSON", async () => {
    const leases = await hold(50);
    const outcomes = await Promise.allSettled(
      leases.map((lease, n) =>
        store.record({ lease, events: [step(n === 7 ? '{"open":' : "{}")], children: [] }),
      ),
    );
    expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(1);
    expect(outcomes[7]).toMatchObject({ reason: { code: "DATABASE" } });
    expect(await store.loadHistory(leases[7]!.runId, 0)).toEqual([]);
    expect(await store.loadHistory(leases[8]!.runId, 0)).toHaveLength(1);
  });

  test("fails alone: a key with a NUL byte", async () => {
    const runs = Array.from({ length: 50 }, (_, n) => newRun({ key: n === 3 ? "nul\0" : `good ${n}` }));
    const outcomes = await Promise.allSettled(runs.map((run) => store.createRuns([run])));
    expect(outcomes.map(({ status }) => status).indexOf("rejected")).toBe(3);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(49);
    expect(await store.getRun(runs[3]!.id)).toBeNull();
  });
});
