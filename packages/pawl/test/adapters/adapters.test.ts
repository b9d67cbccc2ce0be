import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPawl, workflow, type Pawl } from "../../src/index.ts";
import { drizzleWithPg, drizzleWithPostgresJs } from "./libraries/drizzle.ts";
import { knex } from "./libraries/knex.ts";
import { kysely, kyselyByHand } from "./libraries/kysely.ts";
import { plainPg } from "./libraries/pg.ts";
import { postgresJs } from "./libraries/postgres-js.ts";
import { prisma } from "./libraries/prisma.ts";
import { typeOrm } from "./libraries/type-orm.ts";
import type { Library, OpenLibrary } from "./library.ts";

const libraries: readonly Library[] = [
  plainPg,
  drizzleWithPg,
  drizzleWithPostgresJs,
  kysely,
  kyselyByHand,
  knex,
  prisma,
  typeOrm,
  postgresJs,
];

const confirm = workflow({ name: "confirm", version: 1 }, async (ctx, input: unknown) =>
  ctx.step("echo", () => input ?? null),
);
const deliver = workflow({ name: "deliver", version: 1 }, async (ctx) =>
  ctx.waitForSignal<string>("shipped"),
);

class Mistake extends Error {}

let database: TestDatabase;
let pool: pg.Pool;
let pawl: Pawl;
let lastId = 0;

beforeAll(async () => {
  database = await createDatabase("empty");
  pool = new pg.Pool({ connectionString: database.url, max: 4 });
  pool.on("error", () => {});
  await pool.query("create table purchase (id integer primary key)");
  pawl = createPawl({ url: database.url });
  await pawl.migrate();
  await pawl.worker({ workflows: [confirm, deliver] }).start();
});

afterAll(async () => {
  await pawl.close();
  await pool.end();
  await dropDatabase(database);
});

/** A connection for the tests of one group. */
function useLibrary(library: Library): () => OpenLibrary {
  let open: OpenLibrary;
  beforeAll(async () => {
    open = await library.open(database.url);
  });
  afterAll(() => open.close());
  return () => open;
}

const isBought = async (id: number): Promise<boolean> =>
  (await pool.query("select from purchase where id = $1", [id])).rowCount === 1;

describe.for(libraries.map((library) => [library.name, library] as const))("%s", ([, library]) => {
  const connection = useLibrary(library);

  test("a run started in a transaction is there with the rest of it", async () => {
    const id = ++lastId;
    const runs: { readonly id: string }[] = [];
    await connection().transaction(async ({ tx, insert }) => {
      await insert(id);
      const run = await pawl.start(confirm, { id }, { tx });
      runs.push(run);
      expect(await pawl.get(run.id)).toBeNull();
      await expect(run.result()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    });
    expect(await isBought(id)).toBe(true);
    expect(await pawl.handle(runs[0]!.id).result()).toEqual({ id });
  });

  test("a run started in a transaction is gone with the rest of it", async () => {
    const id = ++lastId;
    const runIds: string[] = [];
    const failing = connection().transaction(async ({ tx, insert }) => {
      await insert(id);
      runIds.push((await pawl.start(confirm, { id }, { tx, key: `gone:${id}` })).id);
      throw new Mistake();
    });
    await expect(failing).rejects.toThrow(Mistake);
    expect(await isBought(id)).toBe(false);
    expect(await pawl.get(runIds[0]!)).toBeNull();
    // The key is free again.
    const run = await pawl.start(confirm, "another", { key: `gone:${id}` });
    expect(await run.result()).toBe("another");
  });

  test("a signal sent in a transaction arrives once it commits, and not when it rolls back", async () => {
    const run = await pawl.start(deliver);
    await expect.poll(() => run.status()).toBe("waiting");
    const failing = connection().transaction(async ({ tx }) => {
      await run.signal("shipped", "lost", { tx });
      throw new Mistake();
    });
    await expect(failing).rejects.toThrow(Mistake);
    await connection().transaction(async ({ tx }) => {
      await run.signal("shipped", "by sea", { tx, idempotencyKey: "form" });
      await run.signal("shipped", "by air", { tx, idempotencyKey: "form" });
      expect(await run.status()).toBe("waiting");
    });
    expect(await run.result()).toBe("by sea");
  });

  test("a run is cancelled once the transaction commits", async () => {
    const run = await pawl.start(deliver);
    const failing = connection().transaction(async ({ tx }) => {
      await run.cancel({ tx });
      throw new Mistake();
    });
    await expect(failing).rejects.toThrow(Mistake);
    await expect.poll(() => run.status()).toBe("waiting");
    await connection().transaction(({ tx }) => pawl.cancel(run.id, { tx, reason: "changed their mind" }));
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
  });

  test("a run can be started and signalled in one transaction", async () => {
    const runIds: string[] = [];
    await connection().transaction(async ({ tx }) => {
      const run = await pawl.start(deliver, undefined, { tx });
      await run.signal("shipped", "at once", { tx });
      runIds.push(run.id);
    });
    expect(await pawl.handle(runIds[0]!).result()).toBe("at once");
  });

  test("a key stands for one run within a transaction, and a refused start does not spoil it", async () => {
    const id = ++lastId;
    const key = `twice:${id}`;
    const runIds: string[] = [];
    await connection().transaction(async ({ tx, insert }) => {
      const first = await pawl.start(confirm, { id, at: [1, 2] }, { tx, key });
      const second = await pawl.start(confirm, { at: [1, 2], id }, { tx, key });
      runIds.push(first.id, second.id);
      await expect(pawl.start(confirm, { id, at: [] }, { tx, key })).rejects.toMatchObject({
        code: "KEY_CONFLICT",
      });
      await expect(pawl.start(confirm, "\0", { tx })).rejects.toMatchObject({ code: "INVALID_PAYLOAD" });
      await expect(pawl.signal(crypto.randomUUID(), "shipped", 1, { tx })).rejects.toMatchObject({
        code: "RUN_NOT_FOUND",
      });
      await insert(id);
    });
    expect(runIds[1]).toBe(runIds[0]);
    expect(await isBought(id)).toBe(true);
    expect(await pawl.handle(runIds[0]!).result()).toEqual({ id, at: [1, 2] });
  });

  test("values arrive exactly as they were given", async () => {
    const value = [
      "?",
      "$1",
      "\\?",
      ":name",
      "it's",
      '"quoted"',
      "back\\slash",
      "日本 🐘",
      "{a,b}",
      null,
      0.1,
      1e300,
      -5,
      true,
    ];
    const runIds: string[] = [];
    await connection().transaction(async ({ tx }) => {
      for (const input of [value, "a text", "", null, undefined, 7, {}]) {
        runIds.push((await pawl.start(confirm, input, { tx })).id);
      }
    });
    const results = await Promise.all(runIds.map((runId) => pawl.handle(runId).result()));
    expect(results).toEqual([value, "a text", "", null, null, 7, {}]);
  });

  test("a handle that is in no transaction is refused", () => {
    expect(() => connection().wrapOutside()).toThrow(
      expect.objectContaining({ code: "INVALID_TRANSACTION" }),
    );
  });

  test("a handle that was not wrapped is refused by the name of what wraps it", async () => {
    await connection().transaction(async ({ handle }) => {
      if (handle === null) return;
      await expect(pawl.start(confirm, 1, { tx: handle as never })).rejects.toMatchObject({
        code: "INVALID_TRANSACTION",
        message: expect.stringMatching(/\{ tx: from\w+\(tx\) \}/),
      });
    });
  });

  test("a database without Pawl is named as such", async () => {
    await using elsewhere = createPawl({ url: database.url, schema: "nowhere" });
    const failing = connection().transaction(async ({ tx }) => {
      await elsewhere.start(confirm, 1, { tx });
    });
    await expect(failing).rejects.toMatchObject({ code: "SCHEMA_MISSING", details: { schema: "nowhere" } });
  });
});

const withSavepoints = libraries.filter(({ hasSavepoints }) => hasSavepoints);

describe.for(withSavepoints.map((library) => [library.name, library] as const))("%s", ([, library]) => {
  const connection = useLibrary(library);

  test("what a savepoint took back was never started", async () => {
    const id = ++lastId;
    const runIds: string[] = [];
    await connection().transaction(async ({ tx, insert, nested }) => {
      await insert(id);
      const inner = nested!(async (savepoint) => {
        runIds.push((await pawl.start(confirm, "inner", { tx: savepoint.tx })).id);
        throw new Mistake();
      });
      await expect(inner).rejects.toThrow(Mistake);
      runIds.push((await pawl.start(confirm, "outer", { tx })).id);
    });
    expect(await pawl.handle(runIds[1]!).result()).toBe("outer");
    expect(await pawl.get(runIds[0]!)).toBeNull();
    expect(await isBought(id)).toBe(true);
  });
});
