import { test as base } from "pawl-test-support";
import type pg from "pg";
import { completionTableSql } from "../../src/adapters/index.ts";
import { createSeededRandom, type SeededRandom } from "../../src/core/seeded-random.ts";
import { createPawl, type Pawl } from "../../src/index.ts";
import { Crew } from "./crew.ts";
import { createLedgerSql } from "./ledger.ts";
import type { ProcessSettings } from "./messages.ts";
import { reportOn } from "./scene-report.ts";
import { createPurchasesSql } from "./workflows.ts";

/** A database with Pawl's schema and a ledger, a client in the test's own process, and room for others. */
export interface Scene {
  readonly url: string;
  readonly schema: string;
  readonly pool: pg.Pool;
  readonly pawl: Pawl;
  /** Chance that the seed decides. `PAWL_CRASH_SEED` sets it. */
  readonly random: SeededRandom;
  readonly seed: string;
  /** Another client in the test's process. */
  connect(url: string): Pawl;
  /** Processes that end with the test, however it ends. Leases of 1 s unless told otherwise. */
  crew(worker?: ProcessSettings["worker"], urls?: Partial<Pick<ProcessSettings, "url" | "ledgerUrl">>): Crew;
  /** The crews made so far. */
  readonly crews: readonly Crew[];
  /** Closes something when the test ends, however it ends. */
  own<Resource extends AsyncDisposable>(resource: Resource): Resource;
  /** The time by the database's clock, in ms. */
  now(): Promise<number>;
}

export const leaseMs = 1_000;

/** So long before its time is up, a test that still runs says where everything stands. */
const reportMs = 5_000;

export const test = base.extend("scene", async ({ database, pool, schema, task }, { onCleanup }) => {
  const owned: AsyncDisposable[] = [];
  let reporting: NodeJS.Timeout | undefined;
  onCleanup(async () => {
    clearTimeout(reporting);
    for (const resource of owned.toReversed()) await resource[Symbol.asyncDispose]();
  });
  const own = <Resource extends AsyncDisposable>(resource: Resource): Resource => {
    owned.push(resource);
    return resource;
  };
  const crews: Crew[] = [];
  const connect = (url: string): Pawl => own(createPawl({ url, schema }));
  const pawl = connect(database.url);
  await pawl.migrate();
  for (const sql of [createLedgerSql, createPurchasesSql, completionTableSql()]) await pool.query(sql);
  const seed = process.env["PAWL_CRASH_SEED"] ?? "pawl";
  const scene: Scene = {
    url: database.url,
    schema,
    pool,
    pawl,
    seed,
    random: createSeededRandom(seed),
    connect,
    crew(worker = {}, urls = {}) {
      const settings = { lease: leaseMs, concurrency: 10, ...worker };
      const crew = own(
        new Crew({ schema, url: database.url, ledgerUrl: database.url, ...urls, worker: settings }),
      );
      crews.push(crew);
      return crew;
    },
    crews,
    own,
    async now() {
      const { rows } = await pool.query<{ now: number }>(
        "select (extract(epoch from clock_timestamp()) * 1000)::float8 as now",
      );
      return rows[0]!.now;
    },
  };
  const sayWhere = async (): Promise<void> =>
    console.error(`"${task.name}" is about to run out of time.\n${await reportOn(scene)}`);
  reporting = setTimeout(() => void sayWhere(), Math.max(0, task.timeout - reportMs));
  return scene;
});
