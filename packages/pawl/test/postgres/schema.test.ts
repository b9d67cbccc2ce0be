import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { migrate } from "../../src/postgres/migrate.ts";
import { migrations } from "../../src/postgres/migrations.generated.ts";
import { databaseClock, schemaName } from "../../src/postgres/schema-name.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { dumpSchema } from "./dump-schema.ts";

/** `npm run generate:schema` writes it. */
const dumpFile = "../../migrations/schema.sql";
const schema = schemaName("pawl");

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createDatabase("empty");
  pool = new pg.Pool({ connectionString: database.url, max: 2 });
});

beforeEach(async () => {
  await pool.query("drop schema if exists pawl cascade");
});

afterAll(async () => {
  await pool.end();
  await dropDatabase(database);
});

const upTo = (count: number) =>
  migrate({
    pool,
    schema,
    clock: databaseClock,
    timers: systemTimers,
    pause: async () => {},
    migrations: migrations.slice(0, count),
  });

describe("schema.sql", () => {
  test("is what a fresh install gives", async () => {
    await upTo(migrations.length);
    await expect(await dumpSchema(pool, schema)).toMatchFileSnapshot(dumpFile);
  });

  test.for(migrations.slice(0, -1).map(({ version, name }) => [version, name] as const))(
    "is what an upgrade from version %i (%s) gives",
    async ([version]) => {
      await upTo(migrations.length);
      const fresh = await dumpSchema(pool, schema);
      await pool.query("drop schema pawl cascade");
      expect((await upTo(version)).applied).toHaveLength(version);
      await upTo(migrations.length);
      expect(await dumpSchema(pool, schema)).toBe(fresh);
    },
  );

  test("makes the same schema when it is run", async () => {
    await upTo(migrations.length);
    const dump = await dumpSchema(pool, schema);
    await pool.query("drop schema pawl cascade");
    await pool.query(dump);
    expect(await dumpSchema(pool, schema)).toBe(dump);
  });
});
