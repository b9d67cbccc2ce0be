import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createIds } from "../../src/core/ids.ts";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import type { Lease, Parking } from "../../src/store/lease.ts";
import { plainRun, type NewRun } from "../../src/store/run-record.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { type CountingPool, createCountingPool } from "./counting-pool.ts";

const ids = createIds(Date.now, systemRandom);
let database: TestDatabase;
let counting: CountingPool;
let store: PostgresStore;

beforeAll(async () => {
  database = await createDatabase("empty");
  counting = createCountingPool(database.url);
  store = createPostgresStore({
    pool: counting.pool,
    schema: "pawl",
    listen: false,
    timers: systemTimers,
    random: systemRandom,
  });
  await store.migrate();
});

afterAll(async () => {
  await store.close();
  await counting.pool.end();
  await dropDatabase(database);
});

/** Starts runs of a workflow of their own and holds all of them, by one worker. */
async function hold(count = 1, more: Partial<NewRun> = {}): Promise<readonly Lease[]> {
  const workflow = ids.next();
  const run = { workflow, version: 1, queue: "default", ...plainRun, ...more };
  await store.createRuns(Array.from({ length: count }, () => ({ id: ids.next(), ...run })));
  const workerId = ids.next();
  await store.registerWorker({
    id: workerId,
    leaseMs: 60_000,
    host: "here",
    pid: 1,
    queues: [],
    concurrency: 1,
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

async function holdOne(more: Partial<NewRun> = {}): Promise<Lease> {
  const [lease] = await hold(1, more);
  return lease!;
}

function parking(lease: Lease, more: Partial<Parking> = {}): Parking {
  const plain = {
    events: [],
    children: [],
    lastSeq: 0,
    look: 1,
    dueAt: null,
    delayMs: null,
    attemptFailed: false,
  };
  return { lease, reason: "waiting", wants: ["signal:shipped", "child"], ...plain, ...more };
}

const endingOf = (lease: Lease, parentId: string | null) => ({
  lease,
  parentId,
  events: [{ seq: 1, kind: "completed", name: null, data: null }] as const,
  children: [],
  status: "completed" as const,
  output: null,
  error: null,
});

describe("one round trip, and nothing else sent,", () => {
  test("parks a run, with the timer that it waits for", async () => {
    const lease = await holdOne();
    counting.reset();
    const timer = { seq: 1, kind: "timer_set", name: "sleep", delayMs: 60_000, data: null } as const;
    await store.park(parking(lease, { events: [timer], lastSeq: 1 }));
    expect(counting.sent()).toHaveLength(1);
  });

  test("tells a parked run, and wakes it", async () => {
    const lease = await holdOne();
    await store.park(parking(lease));
    counting.reset();
    await store.tell({
      id: ids.next(),
      runId: lease.runId,
      topic: "signal:shipped",
      data: null,
      idempotencyKey: "once",
    });
    expect(counting.sent()).toHaveLength(1);
    expect(await store.getRun(lease.runId)).toMatchObject({ status: "pending" });
  });

  test("ends a run, tells its parent, and wakes it", async () => {
    const parent = await holdOne();
    await store.park(parking(parent));
    const child = await holdOne({ parent: { id: parent.runId, request: "call:child#1" } });
    counting.reset();
    await store.end(endingOf(child, parent.runId));
    expect(counting.sent()).toHaveLength(1);
    expect(await store.getRun(parent.runId)).toMatchObject({ status: "pending" });
  });

  test("starts a run that its worker holds, and completes it", async () => {
    const { workerId } = await holdOne();
    const run = { id: ids.next(), workflow: ids.next(), version: 1, queue: "default", ...plainRun };
    counting.reset();
    const { held } = await store.createHeld(run, { workerId, crashLimit: 3, leaseMs: 60_000 });
    expect(counting.sent()).toEqual([expect.stringContaining("create_held_run_v1")]);
    counting.reset();
    await store.end(endingOf({ runId: run.id, epoch: held!.epoch, workerId, server: held!.server }, null));
    expect(counting.sent()).toEqual([expect.stringContaining("complete_run_v1")]);
    // Nobody waits for the hint.
    await vi.waitFor(() => expect(counting.sent()[1]).toContain("announce_ends_v1"));
    expect(await store.getRun(run.id)).toMatchObject({ status: "completed" });
  });

  test("records a step that completes alone", async () => {
    const lease = await holdOne();
    const step = {
      seq: 1,
      kind: "step_completed",
      name: "charge",
      attempt: 2,
      beganAt: 1_000,
      data: { json: '{"ok":true}', notes: '"notes"' },
    } as const;
    counting.reset();
    const answer = await store.record({ lease, events: [step], children: [] });
    expect(counting.sent()).toEqual([expect.stringContaining("record_step_v1")]);
    expect(answer).toEqual({ told: false, now: expect.any(Number) as number, dueAt: new Map() });
    const [event] = await store.loadHistory(lease.runId, 0);
    expect(event).toMatchObject({ ...step, at: answer.now, dueAt: null });
  });

  test("records the steps of 200 runs that end in the same moment", async () => {
    const leases = await hold(200);
    counting.reset();
    const step = { seq: 1, kind: "step_completed", name: "charge", data: null } as const;
    await Promise.all(leases.map((lease) => store.record({ lease, events: [step], children: [] })));
    expect(counting.sent()).toHaveLength(1);
  });
});

describe("the statement for many is asked, which knows what to do,", () => {
  test("where a start of one run is repeated", async () => {
    const { workerId } = await holdOne();
    const run = { id: ids.next(), workflow: ids.next(), version: 1, queue: "default", ...plainRun };
    const holder = { workerId, crashLimit: 3, leaseMs: 60_000 };
    const first = await store.createHeld(run, holder);
    counting.reset();
    expect(await store.createHeld(run, holder)).toEqual(first);
    expect(counting.sent()).toHaveLength(2);
  });

  test("where the number of the last fact is taken", async () => {
    const lease = await holdOne();
    const step = { seq: 1, kind: "step_completed", name: "charge", data: null } as const;
    await store.record({ lease, events: [step], children: [] });
    counting.reset();
    await store.end(endingOf(lease, null));
    expect(counting.sent()).toHaveLength(2);
    const events = await store.loadHistory(lease.runId, 0);
    expect(events.map(({ seq, kind }) => [seq, kind])).toEqual([
      [1, "step_completed"],
      [2, "completed"],
    ]);
  });

  test("where a step is recorded again", async () => {
    const lease = await holdOne();
    const step = { seq: 1, kind: "step_completed", name: "charge", data: null } as const;
    await store.record({ lease, events: [step], children: [] });
    counting.reset();
    await store.record({ lease, events: [{ ...step, name: "other" }], children: [] });
    expect(counting.sent()).toHaveLength(2);
    expect(await store.loadHistory(lease.runId, 0)).toMatchObject([{ seq: 1, name: "charge" }]);
  });

  test("where a step is recorded by who does not hold the run", async () => {
    const lease = await holdOne();
    const step = { seq: 1, kind: "step_completed", name: "charge", data: null } as const;
    await expect(
      store.record({ lease: { ...lease, epoch: 7 }, events: [step], children: [] }),
    ).rejects.toMatchObject({ code: "LEASE_LOST" });
    counting.reset();
    await store.record({ lease: { ...lease, server: 1 }, events: [step], children: [] });
    expect(counting.sent()).toHaveLength(2);
    expect(await store.loadHistory(lease.runId, 0)).toHaveLength(1);
  });

  test("where the lease is lost, or the server is not the one that the run was claimed from", async () => {
    const lease = await holdOne();
    await expect(store.end(endingOf({ ...lease, epoch: 7 }, null))).rejects.toMatchObject({
      code: "LEASE_LOST",
    });
    counting.reset();
    await store.end(endingOf({ ...lease, server: 1 }, null));
    expect(counting.sent()).toHaveLength(2);
    expect(await store.getRun(lease.runId)).toMatchObject({ status: "completed" });
  });
});
