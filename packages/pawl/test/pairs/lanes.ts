import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import { afterAll, beforeAll, expect } from "vitest";
import { createWorld } from "../conformance/world.ts";
import { createLane, type Lane } from "./lane.ts";
import type { Move } from "./move.ts";
import type { Scenario } from "./scenarios.ts";

/** Several lanes of one file: while one waits for a lock, another can go on. */
export interface Lanes {
  /** Brings every lane into the scenario's state. */
  prepare(scenario: Scenario): Promise<readonly Move[]>;
  /** Works on all items, each on the lane that is free next, and answers what was said about them. */
  share<Item, Answer>(
    items: readonly Item[],
    work: (lane: Lane, item: Item) => Promise<Answer>,
  ): Promise<Answer[]>;
  /** Expects that Postgres has never had to end a deadlock here. */
  expectNoDeadlock(): Promise<void>;
}

/** Made before this file's tests, removed after them. */
export function useLanes(count: number): Lanes {
  let database: TestDatabase;
  let lanes: readonly Lane[];
  beforeAll(async () => {
    database = await createDatabase("empty");
    const names = Array.from({ length: count }, (_, index) => `lane_${index}`);
    lanes = await Promise.all(names.map((name) => createLane(database.url, name)));
  });
  afterAll(async () => {
    await Promise.all(lanes.map((lane) => lane.close()));
    await dropDatabase(database);
  });

  return {
    async prepare(scenario) {
      const moves = await Promise.all(
        lanes.map(async (lane) => {
          await lane.harness.clear();
          const moves = await scenario.build(createWorld(lane.harness));
          await lane.save();
          return moves;
        }),
      );
      // Ids are made alike in every lane, so that one lane's moves are good for all.
      return moves[0]!;
    },
    async share(items, work) {
      const queue = items.values();
      const answers = lanes.map(async (lane) => {
        const said = [];
        for (const item of queue) said.push(await work(lane, item));
        return said;
      });
      return (await Promise.all(answers)).flat();
    },
    async expectNoDeadlock() {
      const { rows } = await lanes[0]!.harness.pool.query<{ deadlocks: number }>(
        "select deadlocks::integer from pg_stat_database where datname = current_database()",
      );
      expect(rows).toEqual([{ deadlocks: 0 }]);
    },
  };
}
