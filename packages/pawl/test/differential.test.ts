import { randomInt } from "node:crypto";
import { createDatabase, dropDatabase } from "pawl-test-support";
import { isPostgresInstalled, startPostgresVersion } from "pawl-test-support/postgres-version";
import { describe, expect, onTestFinished, test } from "vitest";
import { createDice } from "./differential/dice.ts";
import { generateOperation } from "./differential/generate.ts";
import { createKnowledge } from "./differential/knowledge.ts";
import { apply, type Operation } from "./differential/operation.ts";
import { createTally, type Tally } from "./differential/tally.ts";
import { createMemoryHarness } from "./memory-harness.ts";
import { createPostgresHarness, type PostgresHarness } from "./postgres/harness.ts";

const leastOperations = 3_000;
const mostOperations = 30_000;
/** Few enough that a failing sequence can be read. */
const operationsPerEpisode = 150;

/** The oldest Postgres that Pawl supports. */
const oldest = 14;

const seed = process.env["PAWL_SEED"] ?? String(randomInt(1_000_000));

describe("the Postgres store", () => {
  test("answers as the memory store does, and comes to the same state", { timeout: 240_000 }, async () => {
    const database = await createDatabase("empty");
    onTestFinished(() => dropDatabase(database));
    await compareStores(database.url);
  });

  test.skipIf(!isPostgresInstalled(oldest))(
    `does so on Postgres ${oldest} (installed by: node scripts/postgres-versions.mjs ${oldest})`,
    { timeout: 240_000 },
    async () => {
      const server = await startPostgresVersion(oldest);
      onTestFinished(() => server.stop());
      await compareStores(server.url);
    },
  );
});

/** Plays until enough has happened, and everything that can. */
async function compareStores(url: string): Promise<void> {
  const postgres = await createPostgresHarness(url, "pawl", { listen: false });
  onTestFinished(() => postgres.close());
  const tally = createTally();
  for (let episode = 1; tally.operations < leastOperations || tally.missing().length > 0; episode++) {
    if (tally.operations > mostOperations) expect(tally.missing()).toEqual([]);
    await playEpisode(postgres, `${seed}/${episode}`, tally);
  }
}

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
    try {
      expect(others).toEqual(answers);
      expect(await postgres.snapshot()).toEqual(state.snapshot);
    } catch (error) {
      const place = `PAWL_SEED=${seed}, episode ${episodeSeed}, operation ${count + 1}`;
      throw new Error(`The stores differ after ${place}:\n${show(done)}`, { cause: error });
    }
    known.learn(operation, state);
    tally.add(operation, answers);
  }
}

function show(operations: readonly Operation[]): string {
  return operations
    .slice(-3)
    .map((operation) => JSON.stringify(operation))
    .join("\n");
}
