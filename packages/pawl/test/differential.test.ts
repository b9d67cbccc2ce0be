import { createDatabase, dropDatabase } from "pawl-test-support";
import { isPostgresInstalled, startPostgresVersion } from "pawl-test-support/postgres-version";
import { seedBase } from "pawl-test-support/seed";
import { describe, expect, onTestFinished, test } from "vitest";
import { playEpisode } from "../../../verify/diff/episode.ts";
import { createHeldStore } from "../../../verify/diff/held-store.ts";
import { Match } from "../../../verify/diff/match.ts";
import { createTally } from "../../../verify/diff/tally.ts";

const leastOperations = 3_000;
const mostOperations = 30_000;

/** The oldest Postgres that Pawl supports. */
const oldest = 14;

const seed = process.env["PAWL_SEED"] ?? seedBase();

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
  const held = await createHeldStore(url, 1);
  onTestFinished(() => held.close());
  const match = new Match(held);
  const tally = createTally();
  for (let episode = 1; tally.operations < leastOperations || tally.missing().length > 0; episode++) {
    if (tally.operations > mostOperations) expect(tally.missing()).toEqual([]);
    const { turns, difference } = await playEpisode(match, `${seed}.${episode}`, tally);
    const place = `PAWL_SEED=${seed}, episode ${episode}, turn ${turns.length}`;
    expect(
      difference,
      `${place}:\n${turns
        .slice(-3)
        .map((turn) => JSON.stringify(turn))
        .join("\n")}`,
    ).toBe(null);
  }
}
