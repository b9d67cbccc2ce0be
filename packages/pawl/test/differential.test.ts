import { randomInt } from "node:crypto";
import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createMemoryStore } from "../src/memory/memory-store.ts";
import { createManualClock } from "../src/testing/manual-clock.ts";
import type { StoreHarness } from "./conformance/harness.ts";
import { createDice } from "./differential/dice.ts";
import { generateOperation } from "./differential/generate.ts";
import { createKnowledge } from "./differential/knowledge.ts";
import { apply, type Operation } from "./differential/operation.ts";
import { createTally, type Tally } from "./differential/tally.ts";
import { createPostgresHarness, type PostgresHarness } from "./postgres/harness.ts";

const leastOperations = 3_000;
const mostOperations = 30_000;
/** Few enough that a failing sequence can be read. */
const operationsPerEpisode = 150;

const seed = process.env["PAWL_SEED"] ?? String(randomInt(1_000_000));

describe("the Postgres store", () => {
  let database: TestDatabase;
  let postgres: PostgresHarness;
  beforeAll(async () => {
    database = await createDatabase("empty");
    postgres = await createPostgresHarness(database.url, "pawl", { listen: false });
  });
  afterAll(async () => {
    await postgres.close();
    await dropDatabase(database);
  });

  test("answers as the memory store does, and comes to the same state", { timeout: 240_000 }, async () => {
    const tally = createTally();
    for (let episode = 1; tally.operations < leastOperations || tally.missing().length > 0; episode++) {
      expect(tally.operations, `has not happened: ${tally.missing().join(", ")}`).toBeLessThan(mostOperations);
      await playEpisode(postgres, `${seed}/${episode}`, tally);
    }
    console.log(`PAWL_SEED=${seed}: ${tally.operations} operations`);
  });
});

/** The same operations on both stores, from empty ones. */
async function playEpisode(postgres: PostgresHarness, episodeSeed: string, tally: Tally): Promise<void> {
  await postgres.clear();
  const memory = createMemoryHarness(await postgres.store.now());
  const read = async () => ({ now: await memory.store.now(), snapshot: await memory.snapshot() });
  const known = createKnowledge(createDice(episodeSeed), await read());
  const done: Operation[] = [];
  for (let count = 0; count < operationsPerEpisode; count++) {
    const operation = generateOperation(known);
    done.push(operation);
    const [answers, others] = await Promise.all([apply(memory, operation), apply(postgres, operation)]);
    const state = await read();
    const title = `after PAWL_SEED=${seed}, episode ${episodeSeed}, operation ${count + 1}:\n${show(done)}\n`;
    expect(others, title).toEqual(answers);
    expect(await postgres.snapshot(), title).toEqual(state.snapshot);
    known.learn(operation, state);
    tally.add(operation, answers);
  }
}

function createMemoryHarness(now: number): StoreHarness {
  const clock = createManualClock(now);
  const store = createMemoryStore({ clock });
  return {
    store,
    clock: { advance: async (duration) => clock.advance(duration) },
    snapshot: async () => store.snapshot(),
    insertMessage: (message) => store.insertMessage(message),
    setQueuePaused: (queue, paused) => store.setQueuePaused(queue, paused),
    close: async () => {},
  };
}

function show(operations: readonly Operation[]): string {
  return operations.slice(-3).map((operation) => JSON.stringify(operation)).join("\n");
}
