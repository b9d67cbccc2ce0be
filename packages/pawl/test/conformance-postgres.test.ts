import { createDatabase, dropDatabase } from "pawl-test-support";
import { afterAll, beforeAll } from "vitest";
import { describeStore } from "./conformance/describe-store.ts";
import { createPostgresHarness, type PostgresHarness } from "./postgres/harness.ts";

let shared: PostgresHarness;
let database: Awaited<ReturnType<typeof createDatabase>>;

beforeAll(async () => {
  database = await createDatabase("empty");
  shared = await createPostgresHarness(database.url);
});

afterAll(async () => {
  await shared.close();
  await dropDatabase(database);
});

describeStore("the Postgres store", async () => {
  await shared.clear();
  return { ...shared, close: async () => {} };
});
