import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import { type SchemaName, schemaName } from "../../src/postgres/schema-name.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { fillTables } from "./bulk.ts";
import { type CallCost, costOfCall } from "./call-cost.ts";
import { forgetStatistics } from "./forget-statistics.ts";
import { type MeasuredCall, measuredCalls } from "./measured-calls.ts";
import { untilNoOlderSnapshot } from "./older-snapshots.ts";
import { storeTables } from "./store-tables.ts";

/** A million rows that no measured call has anything to do with. Leases are held in both, so that only the rest differs. */
const full = { finished: 400_000, parked: 300_000, unclaimable: 300_000, held: 2_000 };
const empty = { finished: 0, parked: 0, unclaimable: 0, held: 2_000 };

const calls = Object.entries(measuredCalls);
const claims = calls.filter(([name]) => name.startsWith("claim"));
const fewItems = 1;
const manyItems = 200;

interface Site {
  readonly schema: SchemaName;
  readonly store: PostgresStore;
}

type Costs = ReadonlyMap<string, CallCost>;

let database: TestDatabase;
let pool: pg.Pool;
let site: Site;
let emptySite: Site;
/** Its plans were made when the tables were nearly empty, and had been analysed as empty. */
let oldConnection: pg.Client;
let staleConnection: pg.Client;
let emptyCosts: { readonly few: Costs; readonly many: Costs };
const connections: pg.Client[] = [];

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  connections.push(client);
  return client;
}

async function createSite(name: string): Promise<Site> {
  const store = createPostgresStore({
    pool,
    schema: name,
    listen: false,
    timers: systemTimers,
    random: systemRandom,
  });
  await store.migrate();
  for (const table of storeTables) {
    await pool.query(`alter table ${name}.${table} set (autovacuum_enabled = off)`);
  }
  return { schema: schemaName(name), store };
}

/** The least of some tries: the first ones make the plans, and nothing makes a call cheaper than it is. */
async function measure(
  client: pg.Client,
  { schema, store }: Site,
  call: MeasuredCall,
  items: number,
  tries: number,
): Promise<CallCost> {
  const costs: CallCost[] = [];
  for (let n = 0; n < tries; n++) {
    const { transition, values, rows } = await call(store, items);
    // Tests of other files hold transactions open on the same server.
    await untilNoOlderSnapshot(client);
    const cost = await costOfCall(client, schema, transition, values);
    if (rows !== undefined) expect(cost).toMatchObject({ rows });
    costs.push(cost);
  }
  return {
    rows: costs[0]?.rows ?? 0,
    buffers: Math.min(...costs.map(({ buffers }) => buffers)),
    ms: Math.min(...costs.map(({ ms }) => ms)),
  };
}

async function measureAll(
  client: pg.Client,
  at: Site,
): Promise<{ readonly few: Costs; readonly many: Costs }> {
  const few = new Map<string, CallCost>();
  const many = new Map<string, CallCost>();
  for (const [name, call] of calls) {
    few.set(name, await measure(client, at, call, fewItems, 3));
    many.set(name, await measure(client, at, call, manyItems, 2));
  }
  return { few, many };
}

/**
 * Deeper indexes cost a page or two for each lookup, of which a list and a redrive make several for a run; reading a table costs
 * thousands.
 */
function expectAsOnEmptyTables(costs: Costs, baseline: Costs, items: number): void {
  for (const [name, cost] of costs) {
    const deeper = /^(list|redrive)/.test(name) ? 18 : 1;
    const bound =
      1.5 * baseline.get(name)!.buffers +
      30 +
      deeper * items +
      (name.startsWith("sweep") ? messagesPerSweep : 0);
    expect.soft(cost.buffers, `buffers of "${name}" with ${items} items`).toBeLessThanOrEqual(bound);
  }
}

/** While anybody's snapshot is old, a look steps over the index entries of dead rows, and cannot mark them as dead. */
const perhapsUnlucky = { retry: 3 };

/** What reading the processor's time costs, and how exact it is. */
const clockGrainMs = 0.1;

/** A sweep looks at up to a thousand unread messages, each a page or three. */
const messagesPerSweep = 3_000;

async function expectCheap(client: pg.Client): Promise<void> {
  const costs = await measureAll(client, site);
  expectAsOnEmptyTables(costs.few, emptyCosts.few, fewItems);
  expectAsOnEmptyTables(costs.many, emptyCosts.many, manyItems);
}

beforeAll(async () => {
  database = await createDatabase("empty");
  pool = new pg.Pool({ connectionString: database.url, max: 10 });
  emptySite = await createSite("bare");
  await fillTables(pool, emptySite.schema, empty);
  emptyCosts = await measureAll(await connect(), emptySite);

  site = await createSite("laden");
  staleConnection = await connect();
  await measureAll(staleConnection, site);
  // Pages without a row: the statistics then say that there never is one, however many pages there are.
  for (const table of storeTables) await pool.query(`delete from ${site.schema.quoted}.${table}`);
  await pool.query("analyze");
  oldConnection = await connect();
  await measureAll(oldConnection, site);
  await fillTables(pool, site.schema, full);
}, 180_000);

afterAll(async () => {
  await Promise.all(connections.map((client) => client.end()));
  await pool.end();
  await dropDatabase(database);
});

describe("with a million rows in the tables", { timeout: 60_000 }, () => {
  test(
    "a connection whose plans were made on nearly empty tables works as cheaply as it did",
    perhapsUnlucky,
    async () => {
      await expectCheap(oldConnection);
    },
  );

  test("no call reads a table when the statistics are those of empty tables", perhapsUnlucky, async () => {
    await expectCheap(staleConnection);
  });

  test("no call reads a table when there are no statistics", perhapsUnlucky, async () => {
    await forgetStatistics(pool, site.schema);
    await expectCheap(await connect());
  });

  test("no call reads a table when the statistics are right", perhapsUnlucky, async () => {
    await pool.query("analyze");
    await expectCheap(await connect());
  });

  test.for(claims)(
    "to %s costs at most 1.2 times what it costs on empty tables",
    perhapsUnlucky,
    async ([, call]) => {
      await forgetStatistics(pool, site.schema);
      const [here, there] = [await connect(), await connect()];
      const costs: CallCost[] = [];
      const emptyCosts: CallCost[] = [];
      // In turns, so that whatever else the machine does falls on both.
      for (let round = 0; round < 8; round++) {
        emptyCosts.push(await measure(there, emptySite, call, manyItems, 2));
        costs.push(await measure(here, site, call, manyItems, 2));
      }
      const least = (all: readonly CallCost[], what: keyof CallCost): number =>
        Math.min(...all.map((cost) => cost[what]));
      expect(least(costs, "buffers")).toBeLessThanOrEqual(1.2 * least(emptyCosts, "buffers"));
      expect(least(costs, "ms")).toBeLessThanOrEqual(1.2 * least(emptyCosts, "ms") + clockGrainMs);
    },
  );

  test.for(calls)(
    "to %s costs no more for each of 400 items than for each of 100",
    perhapsUnlucky,
    async ([, call]) => {
      const client = await connect();
      const few = await measure(client, site, call, 100, 4);
      const many = await measure(client, site, call, 400, 3);
      // Were it the product of two lists, it would be four times as much for each.
      expect(many.buffers).toBeLessThanOrEqual(2 * 4 * few.buffers);
      expect(many.ms).toBeLessThanOrEqual(2 * 4 * few.ms);
    },
  );

  test(
    "no call reads a table when the statistics are of full tables and the tables are empty",
    perhapsUnlucky,
    async () => {
      await pool.query("analyze");
      await pool.query(`truncate ${storeTables.map((table) => `${site.schema.quoted}.${table}`).join(", ")}`);
      await fillTables(pool, site.schema, empty);
      await expectCheap(await connect());
    },
  );
});
