import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll } from "vitest";
import { createPawl, workflow, type Pawl } from "../../src/index.ts";

export const confirm = workflow({ name: "confirm", version: 1 }, async (ctx, input: unknown) =>
  ctx.step("echo", () => input ?? null),
);
export const deliver = workflow({ name: "deliver", version: 1 }, async (ctx) =>
  ctx.waitForSignal<string>("shipped"),
);

export interface Shop {
  readonly database: TestDatabase;
  readonly pool: pg.Pool;
  readonly pawl: Pawl;
}

/** A database with Pawl and a table of the shop's own, for all tests of a file. No worker runs. */
export function useShop(): Shop {
  let shop: Shop;
  beforeAll(async () => {
    const database = await createDatabase("empty");
    const pool = new pg.Pool({ connectionString: database.url, max: 8 });
    pool.on("error", () => {});
    await pool.query("create table purchase (id integer primary key)");
    const pawl = createPawl({ url: database.url });
    await pawl.migrate();
    shop = { database, pool, pawl };
  });
  afterAll(async () => {
    await shop.pawl.close();
    await shop.pool.end();
    await dropDatabase(shop.database);
  });
  return {
    get database() {
      return shop.database;
    },
    get pool() {
      return shop.pool;
    },
    get pawl() {
      return shop.pawl;
    },
  };
}

/** Begins a transaction, acts, and rolls back whatever has not been committed. */
export async function inTransaction(
  pool: pg.Pool,
  act: (client: pg.PoolClient) => Promise<void>,
  begin = "begin",
): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query(begin);
    await act(client);
  } finally {
    await client.query("rollback");
    client.release();
  }
}
