import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WireProxy } from "../../../../verify/chaos/wire-proxy.ts";
import { completionTableSql, installCompletionTable } from "../../src/adapters/index.ts";
import { createPawl, workflow, type Pawl, type TransactionOptions, type Workflow } from "../../src/index.ts";
import { drizzleWithPg, drizzleWithPostgresJs } from "../adapters/libraries/drizzle.ts";
import { knex } from "../adapters/libraries/knex.ts";
import { kysely } from "../adapters/libraries/kysely.ts";
import { plainPg } from "../adapters/libraries/pg.ts";
import { postgresJs } from "../adapters/libraries/postgres-js.ts";
import { prisma } from "../adapters/libraries/prisma.ts";
import { typeOrm } from "../adapters/libraries/type-orm.ts";
import type { Library, OpenLibrary } from "../adapters/library.ts";
import { fromAny } from "./from-any.ts";

const libraries: readonly Library[] = [
  plainPg,
  drizzleWithPg,
  drizzleWithPostgresJs,
  kysely,
  knex,
  prisma,
  typeOrm,
  postgresJs,
];
const named = libraries.map((library) => [library.name, library] as const);

/** A database with the user's table. */
interface Place {
  readonly database: TestDatabase;
  readonly pool: pg.Pool;
}

async function openPlace(): Promise<Place> {
  const database = await createDatabase("empty");
  const pool = new pg.Pool({ connectionString: database.url, max: 4 });
  pool.on("error", () => {});
  await pool.query("create table purchase (id integer primary key)");
  return { database, pool };
}

let own: Place;
let other: Place;
let pawl: Pawl;
let lastId = 0;
let lastWorkflow = 0;

beforeAll(async () => {
  [own, other] = await Promise.all([openPlace(), openPlace()]);
  await other.pool.query(completionTableSql());
  pawl = createPawl({ url: own.database.url });
  await pawl.migrate();
});

afterAll(async () => {
  await pawl.close({ timeout: 0 });
  for (const { pool, database } of [own, other]) {
    await pool.end();
    await dropDatabase(database);
  }
});

const isBought = async ({ pool }: Place, id: number): Promise<boolean> =>
  (await pool.query("select from purchase where id = $1", [id])).rowCount === 1;

const buyName = (): string => `buy-${++lastWorkflow}`;

/** One transaction, in a workflow of its own. */
function buying(
  act: (tx: unknown, id: number) => Promise<unknown>,
  options: TransactionOptions<unknown>,
): Workflow<number> {
  return workflow({ name: buyName(), version: 1, retry: { attempts: 1 } }, async (ctx, id: number) =>
    ctx.transaction("buy", (tx) => act(tx, id), options),
  );
}

/** Runs it to its end, in a worker of its own. */
async function run(buy: Workflow<number>, id: number): Promise<unknown> {
  const worker = pawl.worker({ workflows: [buy] });
  await worker.start();
  try {
    return await (await pawl.start(buy, id)).result();
  } finally {
    await worker.stop();
  }
}

function useLibrary(library: Library, place: () => Place): () => OpenLibrary {
  let open: OpenLibrary;
  beforeAll(async () => {
    open = await library.open(place().database.url);
  });
  afterAll(() => open.close());
  return () => open;
}

describe.for(named)("%s, in the database that runs live in", ([, library]) => {
  const connection = useLibrary(library, () => own);

  test("commits what the function wrote together with its record", async () => {
    const id = ++lastId;
    const { transactor, insert } = connection();
    const buy = buying(async (tx, bought) => insert(tx, bought).then(() => ({ bought })), {
      on: transactor(),
    });
    expect(await run(buy, id)).toEqual({ bought: id });
    expect(await isBought(own, id)).toBe(true);
  });

  test("rolls back with a function that throws", async () => {
    const id = ++lastId;
    const { transactor, insert } = connection();
    const act = async (tx: unknown, bought: number): Promise<void> => {
      await insert(tx, bought);
      throw Object.assign(new Error("no"), { code: "MISTAKE" });
    };
    await expect(run(buying(act, { on: transactor() }), id)).rejects.toMatchObject({
      cause: { code: "MISTAKE" },
    });
    expect(await isBought(own, id)).toBe(false);
  });

  test("never takes a swallowed error for a success", async () => {
    const id = ++lastId;
    const { transactor, insert } = connection();
    const act = async (tx: unknown, bought: number): Promise<void> => {
      await insert(tx, bought);
      await insert(tx, bought).catch(() => {});
    };
    await expect(run(buying(act, { on: transactor() }), id)).rejects.toMatchObject({
      cause: { code: "TRANSACTION_ABORTED" },
    });
    expect(await isBought(own, id)).toBe(false);
  });

  test("never takes an error that nobody awaits for a success", async () => {
    const id = ++lastId;
    const { transactor, insert } = connection();
    const act = async (tx: unknown, bought: number): Promise<void> => {
      await insert(tx, bought);
      insert(tx, bought).catch(() => {});
    };
    await expect(run(buying(act, { on: transactor() }), id)).rejects.toMatchObject({ code: "RUN_FAILED" });
    expect(await isBought(own, id)).toBe(false);
  });

  test("keeps the isolation asked for, and is called again after a conflict", async () => {
    const { transactor, insert } = connection();
    const ids = [++lastId, ++lastId, ++lastId];
    let calls = 0;
    const on = transactor();
    const levels = new Set<unknown>();
    const act = async (tx: unknown, id: number): Promise<number> => {
      calls += 1;
      const { rows } = await fromAny(tx).query(
        "select count(*)::text as count, current_setting('transaction_isolation') as level from purchase",
        [],
      );
      const [row] = rows as readonly { count: string; level: string }[];
      levels.add(row!.level);
      await new Promise((resolve) => setTimeout(resolve, 60));
      await insert(tx, id);
      return Number(row!.count);
    };
    const buy = buying(act, { on, isolation: "serializable", conflictAttempts: 50 });
    const worker = pawl.worker({ workflows: [buy] });
    await worker.start();
    const runs = await Promise.all(ids.map((id) => pawl.start(buy, id)));
    const counts = (await Promise.all(runs.map((each) => each.result()))) as number[];
    await worker.stop();
    // As if one after the other.
    const [least = 0] = counts.toSorted((a, b) => a - b);
    expect(counts.toSorted((a, b) => a - b)).toEqual([least, least + 1, least + 2]);
    expect(calls).toBeGreaterThan(3);
    expect([...levels]).toEqual(["serializable"]);
  });

  test("is refused in a database without Pawl", async () => {
    const id = ++lastId;
    const elsewhere = await library.open(other.database.url);
    const on = elsewhere.transactor();
    let calls = 0;
    const act = async (): Promise<void> => void (calls += 1);
    await expect(run(buying(act, { on }), id)).rejects.toMatchObject({ cause: { code: "SCHEMA_MISSING" } });
    expect(calls).toBe(0);
    await elsewhere.close();
  });
});

describe.for(named)("%s, in another database", ([, library]) => {
  const connection = useLibrary(library, () => other);

  test("commits there, and is recorded", async () => {
    const id = ++lastId;
    const { transactor, insert } = connection();
    const buy = buying(async (tx, bought) => insert(tx, bought).then(() => new Date(bought)), {
      on: transactor({ foreign: true }),
    });
    expect(await run(buy, id)).toEqual(new Date(id));
    expect(await isBought(other, id)).toBe(true);
  });

  test("rolls back there, and fails", async () => {
    const id = ++lastId;
    const { transactor, insert } = connection();
    const act = async (tx: unknown, bought: number): Promise<void> => {
      await insert(tx, bought);
      await insert(tx, bought).catch(() => {});
    };
    await expect(run(buying(act, { on: transactor({ foreign: true }) }), id)).rejects.toMatchObject({
      cause: { code: "TRANSACTION_ABORTED" },
    });
    expect(await isBought(other, id)).toBe(false);
  });

  test("needs its completion table", async () => {
    const id = ++lastId;
    const bare = await openPlace();
    const open = await library.open(bare.database.url);
    const on = open.transactor({ foreign: true, schema: "shop" });
    const buy = buying((tx, bought) => open.insert(tx, bought).then(() => null), { on });
    await expect(run(buy, id)).rejects.toMatchObject({ cause: { code: "SCHEMA_MISSING" } });
    expect(await isBought(bare, id)).toBe(false);
    await bare.pool.query("create schema shop");
    await installCompletionTable(on, { schema: "shop" });
    await installCompletionTable(on, { schema: "shop" });
    await run(buy, id);
    expect(await isBought(bare, id)).toBe(true);
    await open.close();
    await bare.pool.end();
    await dropDatabase(bare.database);
  });
});

interface Cutting {
  readonly place: () => Place;
  readonly foreign: boolean;
}

/** One run for each library, all in a worker that is then cut off from Pawl's database; another takes over. */
describe("a worker that is cut off from Pawl's database", { timeout: 60_000 }, () => {
  /** Whoever holds the run is `first`, until it is cut off. */
  const scene = async ({ place, foreign }: Cutting, whenCut: "in the function" | "after the commit") => {
    const opened = await Promise.all(libraries.map((library) => library.open(place().database.url)));
    const ons = opened.map((open) => open.transactor({ foreign }));
    const calls = libraries.map(() => 0);
    const firstId = lastId + 1;
    lastId += 2 * libraries.length;
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    const buy = workflow({ name: buyName(), version: 1, retry: { attempts: 1 } }, async (ctx, n: number) =>
      ctx.transaction(
        "buy",
        async (tx) => {
          calls[n]! += 1;
          const id = firstId + 2 * n + calls[n]! - 1;
          await opened[n]!.insert(tx, id);
          if (calls[n] === 1) await gate;
          return id;
        },
        { on: ons[n]! },
      ),
    );
    const proxy = await WireProxy.listen(own.database.url);
    const first = createPawl({ url: proxy.url });
    await first.worker({ workflows: [buy], lease: 1_000 }).start();
    const runs = await Promise.all(libraries.map((_, n) => pawl.start(buy, n)));
    await expect.poll(() => calls, { timeout: 10_000 }).toEqual(libraries.map(() => 1));
    await proxy[Symbol.asyncDispose]();
    const ids = libraries.map((_, n) => firstId + 2 * n);
    if (whenCut === "after the commit") {
      letGo();
      await expect
        .poll(async () => (await bought(place(), firstId)).length, { timeout: 10_000 })
        .toBe(ids.length);
    }
    const second = pawl.worker({ workflows: [buy], lease: 1_000 });
    await second.start();
    const results = await Promise.all(runs.map((each) => each.result()));
    letGo();
    // What the first still does comes to nothing.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const rows = await bought(place(), firstId);
    await second.stop();
    await first.close({ timeout: 0 });
    await Promise.all(opened.map((open) => open.close()));
    return { ids, results, calls, rows };
  };

  const bought = async ({ pool }: Place, from: number): Promise<readonly number[]> => {
    const { rows } = await pool.query<{ id: number }>(
      "select id from purchase where id between $1 and $2 order by id",
      [from, from + 2 * libraries.length - 1],
    );
    return rows.map(({ id }) => id);
  };

  test("while its functions run commits nothing, in Pawl's database", async () => {
    const { ids, results, rows } = await scene({ place: () => own, foreign: false }, "in the function");
    expect(results).toEqual(ids.map((id) => id + 1));
    expect(rows).toEqual(ids.map((id) => id + 1));
  });

  test("while its functions run commits nothing, in another database", async () => {
    const { ids, results, rows } = await scene({ place: () => other, foreign: true }, "in the function");
    expect(results).toEqual(ids.map((id) => id + 1));
    expect(rows).toEqual(ids.map((id) => id + 1));
  });

  test("after it committed in another database leaves the result there", async () => {
    const { ids, results, rows, calls } = await scene(
      { place: () => other, foreign: true },
      "after the commit",
    );
    expect(results).toEqual(ids);
    expect(rows).toEqual(ids);
    expect(calls).toEqual(ids.map(() => 1));
  });
});

describe.for(named)("%s, where the answer to COMMIT is lost", { timeout: 40_000 }, ([, library]) => {
  test.for(["own", "other"] as const)("finds out what became of it: %s database", async (where) => {
    const place = where === "own" ? own : other;
    const proxy = await WireProxy.listen(place.database.url);
    const open = await library.open(proxy.url);
    const on = open.transactor({ foreign: where === "other" });
    const calls: number[] = [];
    const act = async (tx: unknown, id: number): Promise<number> => {
      calls.push(id);
      await open.insert(tx, id);
      return id;
    };
    const buy = buying(act, { on });
    const [carriedOut, cut] = [++lastId, ++lastId];

    const lost = proxy.inject({ kind: "lose", statement: "commit" });
    expect(await run(buy, carriedOut)).toBe(carriedOut);
    await lost;
    const cutOff = proxy.inject({ kind: "cut", statement: "commit" });
    expect(await run(buy, cut)).toBe(cut);
    await cutOff;
    expect(calls).toEqual([carriedOut, cut, cut]);
    expect([await isBought(place, carriedOut), await isBought(place, cut)]).toEqual([true, true]);
    await open.close();
    await proxy[Symbol.asyncDispose]();
  });
});
