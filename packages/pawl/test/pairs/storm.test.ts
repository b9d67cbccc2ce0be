import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDice } from "../../../../verify/diff/dice.ts";
import { generateOperation } from "../../../../verify/diff/generate.ts";
import { createKnowledge, type Knowledge } from "../../../../verify/diff/knowledge.ts";
import { apply } from "../../../../verify/diff/operation.ts";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import type { StoreSnapshot } from "../../src/store/snapshot.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { placeIn } from "../conformance/world.ts";
import { createPostgresHarness, type PostgresHarness } from "../postgres/harness.ts";
import { testClockSql } from "../postgres/test-clock.ts";
import { toldButParked } from "./told-but-parked.ts";

const storeCount = 3;
const actorsPerStore = 3;
const operationsPerActor = 60;
const roundCount = 10;

// What the tests of pairs cannot reach: more than two at once, and merged calls under way beside others.
describe("many transitions at once", () => {
  let database: TestDatabase;
  let harness: PostgresHarness;
  let pools: readonly pg.Pool[];
  let stores: readonly PostgresStore[];
  beforeAll(async () => {
    database = await createDatabase("empty");
    harness = await createPostgresHarness(database.url, "pawl", { listen: false });
    // Ours give up waiting sooner than Postgres looks for deadlocks, which would hide them.
    const options = "-c deadlock_timeout=20ms";
    pools = Array.from(
      { length: storeCount },
      () => new pg.Pool({ connectionString: database.url, max: 4, options }),
    );
    const seams = { clock: testClockSql, timers: systemTimers, random: systemRandom, listen: false };
    stores = pools.map((pool) => createPostgresStore({ pool, ...seams }));
  });
  afterAll(async () => {
    for (const store of stores) await store.close();
    for (const pool of pools) await pool.end();
    await harness.close();
    await dropDatabase(database);
  });

  test("never block each other for good, and overlook nothing", { timeout: 120_000 }, async () => {
    for (let round = 1; round <= roundCount; round++) {
      await harness.clear();
      const told = new Set<string>();
      const known = createKnowledge(createDice(`storm ${round}`), await readState(harness));
      const actors = stores.flatMap((store) => Array.from({ length: actorsPerStore }, () => store));
      await Promise.all(actors.map((store) => act({ ...harness, store }, known, told)));
      await harness.store.wakeTold([...told]);
      expectNothingOverlooked(await harness.snapshot());
    }
    const { rows } = await harness.pool.query<{ deadlocks: number }>(
      "select deadlocks::integer from pg_stat_database where datname = current_database()",
    );
    expect(rows).toEqual([{ deadlocks: 0 }]);
  });
});

/** Does what seems right by what is known, which others make untrue all the time. Adds the runs that are yet to be woken. */
async function act(harness: PostgresHarness, known: Knowledge, told: Set<string>): Promise<void> {
  for (let count = 0; count < operationsPerActor; count++) {
    const operation = generateOperation(known);
    if (operation.kind === "insertMessage") told.add(operation.message.runId);
    await apply(harness, operation);
    if (count % 3 === 0) known.learn(operation, await readState(harness));
  }
}

async function readState(
  harness: PostgresHarness,
): Promise<{ readonly now: number; readonly snapshot: StoreSnapshot }> {
  return { now: await harness.store.now(), snapshot: await harness.snapshot() };
}

function expectNothingOverlooked(snapshot: StoreSnapshot): void {
  for (const { id } of snapshot.runs) placeIn(snapshot, id);
  expect(toldButParked(snapshot)).toEqual([]);
  const unread = new Set(snapshot.inbox.flatMap(({ runId, takenSeq }) => (takenSeq === null ? [runId] : [])));
  expect(snapshot.ready.filter(({ runId, told }) => !told && unread.has(runId))).toEqual([]);
}
