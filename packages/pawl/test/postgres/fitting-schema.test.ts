import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createPawl, workflow } from "../../src/index.ts";
import { migrate } from "../../src/postgres/migrate.ts";
import { type Migration, migrations } from "../../src/postgres/migrations.generated.ts";
import { databaseClock, schemaName } from "../../src/postgres/schema-name.ts";
import { systemTimers } from "../../src/system/system-timers.ts";

const newest = migrations.length;
const paying = workflow({ name: "paying", version: 1 }, async (ctx) =>
  ctx.transaction("pay", async () => "paid"),
);

let database: TestDatabase;
let pool: pg.Pool;

beforeEach(async () => {
  database = await createDatabase("empty");
  pool = new pg.Pool({ connectionString: database.url, max: 3 });
});

afterEach(async () => {
  await pool.end();
  await dropDatabase(database);
});

function migrateTo(all: readonly Migration[]) {
  return migrate({
    pool,
    schema: schemaName("pawl"),
    clock: databaseClock,
    timers: systemTimers,
    pause: async () => {},
    migrations: all,
  });
}

const oneMore = (breaking: boolean): readonly Migration[] => [
  ...migrations,
  { version: newest + 1, name: "one_more", transaction: true, breaking, sql: "select 1" },
];

describe("a worker", () => {
  test("does not start on an older schema, however much of it is there, and leaves runs alone", async () => {
    for (let version = 1; version < newest; version++) {
      await migrateTo(migrations.slice(0, version));
      await using pawl = createPawl({ url: database.url });
      await expect(pawl.worker({ workflows: [paying] }).start()).rejects.toMatchObject({
        code: "SCHEMA_TOO_OLD",
        details: { version, wanted: newest },
      });
      const { rows } = await pool.query("select count(*)::int as workers from pawl.worker");
      expect(rows).toEqual([{ workers: 0 }]);
    }
  }, 60_000);

  test("works on a newer schema that says it can", async () => {
    await migrateTo(oneMore(false));
    await using pawl = createPawl({ url: database.url });
    await pawl.worker({ workflows: [paying] }).start();
    const run = await pawl.start(paying);
    expect(await run.result()).toBe("paid");
    const { ok, isUpToDate, warnings } = await pawl.health();
    expect({ ok, isUpToDate }).toEqual({ ok: true, isUpToDate: false });
    expect(warnings).toContainEqual(expect.stringContaining("upgrade the library"));
  });

  test("does not start on a newer schema that it cannot live with", async () => {
    await migrateTo(oneMore(true));
    await using pawl = createPawl({ url: database.url });
    await expect(pawl.worker({ workflows: [paying] }).start()).rejects.toMatchObject({
      code: "SCHEMA_TOO_NEW",
    });
    expect(await pawl.health()).toMatchObject({ ok: false, error: { code: "SCHEMA_TOO_NEW" } });
  });

  test("does not start where there is no schema", async () => {
    await using pawl = createPawl({ url: database.url });
    await expect(pawl.worker({ workflows: [paying] }).start()).rejects.toMatchObject({
      code: "SCHEMA_MISSING",
    });
  });
});
