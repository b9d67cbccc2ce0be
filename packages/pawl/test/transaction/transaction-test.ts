import { randomBytes } from "node:crypto";
import { createDatabase, dropDatabase, test as base } from "pawl-test-support";
import pg from "pg";
import { createPawl, type Log, type Pawl, type PawlOptions, type Workflow } from "../../src/index.ts";

/** What was said, and how often. */
interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A Pawl with a worker, beside a table of the user's. */
export interface Shop {
  readonly url: string;
  readonly pawl: Pawl;
  readonly pool: pg.Pool;
  /** The schema of Pawl's tables. */
  readonly schema: string;
  /** The user's table: `id integer primary key, note text`. */
  readonly table: string;
  readonly log: readonly LogLine[];
  /** Starts a worker for these. */
  work(workflows: readonly Workflow[], pawl?: Pawl): Promise<void>;
  /** Another Pawl on the same tables. */
  connect(options?: Partial<PawlOptions>): Pawl;
  /** The ids in the user's table. */
  ids(): Promise<readonly number[]>;
  /** The run's history in short: `kind name`. */
  facts(runId: string): Promise<readonly string[]>;
}

export const test = base.extend("shop", async ({ database, pool, schema }, { onCleanup }) => {
  const log: LogLine[] = [];
  const say =
    (level: keyof Log) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}): void =>
      void log.push({ level, message, fields });
  const pawls: Pawl[] = [];
  onCleanup(async () => {
    await Promise.all(pawls.map((each) => each.close({ timeout: 0 })));
  });
  const connect = (options: Partial<PawlOptions> = {}): Pawl => {
    const place = options.pool === undefined && options.memory !== true ? { url: database.url } : {};
    const pawl = createPawl({
      ...place,
      schema,
      log: { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") },
      ...options,
    });
    pawls.push(pawl);
    return pawl;
  };
  const pawl = connect();
  await pawl.migrate();
  const table = `public.sale_${randomBytes(6).toString("hex")}`;
  await pool.query(`create table ${table} (id integer primary key, note text)`);
  const shop: Shop = {
    url: database.url,
    pawl,
    pool,
    schema,
    table,
    log,
    connect,
    async work(workflows, by = pawl) {
      await by.worker({ workflows, lease: "2s" }).start();
    },
    async ids() {
      const { rows } = await pool.query<{ id: number }>(`select id from ${table} order by id`);
      return rows.map(({ id }) => id);
    },
    async facts(runId) {
      const { rows } = await pool.query<{ fact: string }>(
        `select concat_ws(' ', kind, name) as fact from ${schema}.event where run_id = $1 order by seq`,
        [runId],
      );
      return rows.map(({ fact }) => fact);
    },
  };
  return shop;
});

/** A database of the user's that Pawl does not live in, with the same table. */
export const foreignTest = test.extend("elsewhere", async ({ shop }, { onCleanup }) => {
  const database = await createDatabase("empty");
  const pool = new pg.Pool({ connectionString: database.url, max: 5 });
  pool.on("error", () => {});
  onCleanup(async () => {
    await pool.end();
    await dropDatabase(database);
  });
  await pool.query(`create table ${shop.table} (id integer primary key, note text)`);
  const ids = async (): Promise<readonly number[]> => {
    const { rows } = await pool.query<{ id: number }>(`select id from ${shop.table} order by id`);
    return rows.map(({ id }) => id);
  };
  return { url: database.url, pool, ids };
});
