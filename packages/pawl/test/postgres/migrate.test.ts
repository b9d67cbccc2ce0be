import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  type MigrateOptions,
  type MigrationTarget,
  migrate,
  printMigrations,
} from "../../src/postgres/migrate.ts";
import { type Migration, migrations } from "../../src/postgres/migrations.generated.ts";
import { databaseClock, schemaName } from "../../src/postgres/schema-name.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { dumpSchema } from "./dump-schema.ts";

const schema = schemaName("pawl");
const newest = migrations.length;

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createDatabase("empty");
  pool = new pg.Pool({ connectionString: database.url, max: 5 });
});

beforeEach(async () => {
  await pool.query("drop schema if exists pawl cascade");
});

afterAll(async () => {
  await pool.end();
  await dropDatabase(database);
});

function run(options?: MigrateOptions, more: Partial<MigrationTarget> = {}) {
  return migrate(
    { pool, schema, clock: databaseClock, timers: systemTimers, pause: async () => {}, ...more },
    options,
  );
}

/** Ours, and one more. */
function with1More(sql: string, transaction = true): readonly Migration[] {
  return [...migrations, { version: newest + 1, name: "one_more", transaction, breaking: false, sql }];
}

/** As many processes as this, each with connections of its own. */
async function fromMany<A>(count: number, act: (pool: pg.Pool) => Promise<A>): Promise<readonly A[]> {
  const pools = Array.from({ length: count }, () => new pg.Pool({ connectionString: database.url, max: 2 }));
  try {
    return await Promise.all(pools.map(act));
  } finally {
    await Promise.all(pools.map((own) => own.end()));
  }
}

async function versions(): Promise<readonly number[]> {
  const { rows } = await pool.query<{ version: number }>(
    "select version from pawl.migration order by version",
  );
  return rows.map(({ version }) => version);
}

async function hasSchema(): Promise<boolean> {
  return (await pool.query("select 1 from pg_namespace where nspname = 'pawl'")).rowCount === 1;
}

describe("migrate", () => {
  test("brings an empty database up to date, and changes nothing the second time", async () => {
    expect(await run()).toEqual({ applied: migrations.map(({ version }) => version), version: newest });
    const dump = await dumpSchema(pool, schema);
    expect(await run()).toEqual({ applied: [], version: newest });
    expect(await dumpSchema(pool, schema)).toBe(dump);
  });

  test("works for twenty processes at once: one does it, the others wait and find it done", async () => {
    const answers = await fromMany(20, (own) => run({}, { pool: own }));
    expect(answers.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
    expect(await versions()).toEqual(migrations.map(({ version }) => version));
  });

  test("works in a schema that was made for it", async () => {
    await pool.query("create schema pawl");
    await expect(run()).resolves.toMatchObject({ version: newest });
  });

  test("refuses a schema newer than the library, and leaves it alone", async () => {
    await run({}, { migrations: with1More("create table {schema}.novelty ()") });
    await expect(run()).rejects.toMatchObject({
      code: "SCHEMA_TOO_NEW",
      details: { version: newest + 1, wanted: newest },
    });
    expect(await versions()).toHaveLength(newest + 1);
  });

  test("that is cut off midway leaves nothing half done, and can be repeated", async () => {
    const cut = with1More("create table {schema}.half (); select pg_terminate_backend(pg_backend_pid())");
    await expect(run({}, { migrations: cut })).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(await hasSchema()).toBe(false);
    await expect(run()).resolves.toMatchObject({ version: newest });
  });

  test("that fails leaves the version from before", async () => {
    await run();
    const dump = await dumpSchema(pool, schema);
    const bad = with1More("create table {schema}.half (); select no_such_function()");
    await expect(run({}, { migrations: bad })).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
    expect(await dumpSchema(pool, schema)).toBe(dump);
    expect(await versions()).toHaveLength(newest);
  });
});

describe("verifyOnly", () => {
  test("says that the schema is missing, and does not make it", async () => {
    await expect(run({ verifyOnly: true })).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
    expect(await hasSchema()).toBe(false);
  });

  test("says that the schema is too old, and does not change it", async () => {
    await run({}, { migrations: migrations.slice(0, 3) });
    await expect(run({ verifyOnly: true })).rejects.toMatchObject({
      code: "SCHEMA_TOO_OLD",
      details: { version: 3 },
    });
    expect(await versions()).toEqual([1, 2, 3]);
  });

  test("says that the schema is too new", async () => {
    await run({}, { migrations: with1More("select 1") });
    await expect(run({ verifyOnly: true })).rejects.toMatchObject({ code: "SCHEMA_TOO_NEW" });
  });

  test("is content with the schema it needs", async () => {
    await run();
    expect(await run({ verifyOnly: true })).toEqual({ applied: [], version: newest });
  });
});

describe("printMigrations", () => {
  test("gives a script that makes what migrate makes", async () => {
    await run();
    const dump = await dumpSchema(pool, schema);
    await pool.query("drop schema pawl cascade");
    await pool.query(printMigrations(schema, databaseClock));
    expect(await dumpSchema(pool, schema)).toBe(dump);
    expect(await run({ verifyOnly: true })).toEqual({ applied: [], version: newest });
  });

  test("holds no word that is still to be replaced", () => {
    expect(printMigrations(schemaName('we"ird'), databaseClock)).not.toMatch(/\{(schema|clock|channel)\}/);
  });
});

describe("a migration outside a transaction", () => {
  const index = `
    -- no transaction
    drop index concurrently if exists {schema}.run_queue;
    create index concurrently run_queue on {schema}.run (queue);`;

  const isValid = async (): Promise<boolean> => {
    const { rows } = await pool.query(
      "select indisvalid from pg_index where indexrelid = 'pawl.run_queue'::regclass",
    );
    return rows[0].indisvalid;
  };

  test("is applied once, also when twenty processes ask for it", async () => {
    const all = with1More(index, false);
    const answers = await fromMany(20, (own) => run({}, { pool: own, migrations: all }));
    expect(
      answers.flatMap(({ applied }) => applied).filter((version) => version === newest + 1),
    ).toHaveLength(1);
    expect(await isValid()).toBe(true);
  });

  test("can be repeated after it was cut off", async () => {
    await run();
    // What is left of an index whose building was interrupted.
    await pool.query("create index run_queue on pawl.run (queue)");
    await pool.query("update pg_index set indisvalid = false where indexrelid = 'pawl.run_queue'::regclass");
    await run({}, { migrations: with1More(index, false) });
    expect(await isValid()).toBe(true);
  });
});

describe("while a transaction uses a table that must be changed", () => {
  const addColumn = with1More("alter table {schema}.run add column note text");

  test("migrate steps back, so that others do not queue up behind it, and tries again", async () => {
    await run();
    const user = await pool.connect();
    await user.query("begin");
    await user.query("select count(*) from pawl.run");
    let pauses = 0;
    const pause = async (): Promise<void> => {
      pauses++;
      await pool.query("select count(*) from pawl.run");
      await user.query("commit");
    };
    await expect(run({}, { migrations: addColumn, pause })).resolves.toMatchObject({ applied: [newest + 1] });
    user.release();
    expect(pauses).toBe(1);
  });
});

test("a schema's name that needs quoting, at its longest, is no problem", async () => {
  const odd = schemaName(`"; drop schema public; -- ${"ü".repeat(18)}`);
  expect(Buffer.byteLength(odd.name)).toBeGreaterThan(60);
  await run({ grantTo: "pg_monitor" }, { schema: odd });
  await expect(run({ verifyOnly: true }, { schema: odd })).resolves.toMatchObject({ version: newest });
  await pool.query(`drop schema ${odd.quoted} cascade`);
});

test("a grant to nobody is refused", async () => {
  await expect(run({ grantTo: "no such role" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
});
