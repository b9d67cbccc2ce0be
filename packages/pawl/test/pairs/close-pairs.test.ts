import { setImmediate as turn } from "node:timers/promises";
import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDice } from "../../../../verify/diff/dice.ts";
import { createPostgresStore, type PostgresStore } from "../../src/postgres/postgres-store.ts";
import type { Lease } from "../../src/store/lease.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { createWorld, leaseOf, type World } from "../conformance/world.ts";
import { createPostgresHarness, type PostgresHarness } from "../postgres/harness.ts";
import { testClockSql } from "../postgres/test-clock.ts";

/** Pairs under way at a time, so that some calls are merged. */
const pairsAtOnce = 4;
const runsPerClaim = 100;

describe("a run that parks while it is told", () => {
  let database: TestDatabase;
  let harness: PostgresHarness;
  /** Another process, as far as Postgres can see. */
  let sender: PostgresStore;
  beforeEach(async () => {
    database = await createDatabase("empty");
    harness = await createPostgresHarness(database.url, "pawl", { listen: false });
    const seams = { timers: systemTimers, random: systemRandom, clock: testClockSql };
    sender = createPostgresStore({ url: database.url, listen: false, connections: pairsAtOnce, ...seams });
  });
  afterEach(async () => {
    await sender.close();
    await harness.close();
    await dropDatabase(database);
  });

  test("hears of it, 3,000 times", { timeout: 120_000 }, async () => {
    const world = createWorld(harness);
    const outcomes = await raceParks(world, 3_000, ({ runId }) =>
      sender.tell(world.message(runId, "signal:a")),
    );
    await expectAllHeard(world, outcomes);
  });
});

/** Parks so many runs and tells each at about the same moment. Answers how often each outcome came. */
async function raceParks(
  world: World,
  count: number,
  tell: (lease: Lease) => Promise<unknown>,
): Promise<ReadonlyMap<string, number>> {
  const dice = createDice("close pairs");
  const outcomes = new Map<string, number>();
  /** How much sooner the run is told than parked; moved so that neither is always the first. */
  let leadMs = 0;
  for (let begun = 0; begun < count; begun += runsPerClaim) {
    const leases = (await holdMany(world)).values();
    const racers = Array.from({ length: pairsAtOnce }, async () => {
      for (const lease of leases) {
        const parking = await world.parking(lease, { wants: ["signal:a"] });
        const offsetMs = leadMs + dice.next() * 0.6 - 0.3;
        const telling = after(Math.max(0, -offsetMs), () => tell(lease));
        const { outcome } = await after(Math.max(0, offsetMs), () => world.store.park(parking));
        await telling;
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        leadMs += outcome === "told" ? -0.02 : 0.02;
      }
    });
    await Promise.all(racers);
  }
  return outcomes;
}

async function holdMany(world: World): Promise<readonly Lease[]> {
  await world.store.createRuns(Array.from({ length: runsPerClaim }, () => world.newRun()));
  const workerId = await world.worker();
  const { runs } = await world.claim(workerId, { limit: runsPerClaim });
  return runs.map((run) => leaseOf(workerId, run));
}

/** Waits more finely than timers do. */
async function after<A>(ms: number, act: () => Promise<A>): Promise<A> {
  const start = performance.now();
  while (performance.now() - start < ms) await turn();
  return act();
}

/** Each was either told before it parked or woken after it, and nobody had to come to the rescue. */
async function expectAllHeard(world: World, outcomes: ReadonlyMap<string, number>): Promise<void> {
  expect((await world.snapshot()).parked).toEqual([]);
  expect(await world.sweep()).toMatchObject({ rescued: 0 });
  // Close they were: neither was nearly always the first.
  const [told, parked] = [outcomes.get("told") ?? 0, outcomes.get("parked") ?? 0];
  expect(told).toBeGreaterThan(parked / 10);
  expect(parked).toBeGreaterThan(told / 10);
}
