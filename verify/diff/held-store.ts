import pg from "pg";
import { createPostgresStore } from "../../packages/pawl/src/postgres/postgres-store.ts";
import { bindSchema, schemaName } from "../../packages/pawl/src/postgres/schema-name.ts";
import { systemRandom } from "../../packages/pawl/src/system/system-random.ts";
import { systemTimers } from "../../packages/pawl/src/system/system-timers.ts";
import type { StoreHarness } from "../../packages/pawl/test/conformance/harness.ts";
import { createPostgresHarness, type PostgresHarness } from "../../packages/pawl/test/postgres/harness.ts";
import { storeTables } from "../../packages/pawl/test/postgres/store-tables.ts";
import { testClockSql } from "../../packages/pawl/test/postgres/test-clock.ts";
import { apply, type Operation } from "./operation.ts";

type Answers = readonly unknown[];

/** What two operations at once have answered. */
interface AnswersOfBoth {
  readonly first: Answers;
  readonly second: Answers;
  /** The second had to wait until the first was over. */
  readonly hasWaited: boolean;
}

/** A Postgres store, and a way to have two things happen to it at once. */
export interface HeldStore {
  readonly harness: PostgresHarness;
  /** The first is done and held before its commit; the second starts, and ends or waits; the first commits. */
  applyBoth(first: Operation, second: Operation): Promise<AnswersOfBoth>;
  close(): Promise<void>;
}

/** Several may share a database: each has a number, and a schema of its own. */
export async function createHeldStore(databaseUrl: string, number: number): Promise<HeldStore> {
  const schema = `pawl_${number}`;
  const url = `${databaseUrl}?application_name=${schema}`;
  const harness = await createPostgresHarness(url, schema, { listen: false });
  await harness.pool.query(bindSchema(holdSql(number), schemaName(schema), ""));
  const options = "-c verify.hold=on";
  const pool = new pg.Pool({ connectionString: url, max: 4, options });
  const seams = { clock: testClockSql, timers: systemTimers, random: systemRandom, listen: false };
  const held: StoreHarness = { ...harness, store: createPostgresStore({ pool, schema, ...seams }) };
  const observer = new pg.Client({ connectionString: url });
  await observer.connect();

  const countWaiting = async (): Promise<number> => {
    const text = `select count(*)::integer as waiting from pg_stat_activity
                   where wait_event in ('transactionid', 'tuple', 'advisory') and application_name = '${schema}'`;
    const { rows } = await observer.query<{ waiting: number }>({ name: "waiting", text });
    return rows[0]?.waiting ?? 0;
  };
  /** Waits until this call is over, or so many wait for a lock. */
  const untilOverOrWaiting = async (call: Promise<unknown>, most: number): Promise<"over" | "waiting"> => {
    const over = call.then(
      () => "over" as const,
      () => "over" as const,
    );
    for (;;) {
      const counting = countWaiting();
      const state = await Promise.race([over, counting]);
      const waiting = await counting;
      if (state === "over") return state;
      if (waiting >= most) return "waiting";
    }
  };

  return {
    harness,
    async applyBoth(first, second) {
      await observer.query(`select pg_advisory_lock(${number})`);
      const one = apply(held, first);
      const isHeld = (await untilOverOrWaiting(one, 1)) === "waiting";
      const other = apply(harness, second);
      const hasWaited = (await untilOverOrWaiting(other, isHeld ? 2 : 1)) === "waiting";
      await observer.query(`select pg_advisory_unlock(${number})`);
      const answers = { first: await one, second: await other, hasWaited };
      // Who waits for too long is told so, and calls again.
      if (!hasWaited || !answers.second.includes("STORE_UNAVAILABLE")) return answers;
      return { ...answers, second: await apply(harness, second) };
    },
    async close() {
      await observer.end();
      await (held.store as PostgresHarness["store"]).close();
      await pool.end();
      await harness.close();
    },
  };
}

/** A commit that has changed anything waits at the gate, if its session is one to be held. */
function holdSql(number: number): string {
  const triggers = storeTables.map(
    (table) => `create constraint trigger hold after insert or update or delete on {schema}.${table}
                deferrable initially deferred for each row
                when (current_setting('verify.hold', true) = 'on') execute function {schema}.hold();`,
  );
  return `create function {schema}.hold() returns trigger language plpgsql
          as $$ begin perform pg_advisory_xact_lock_shared(${number}); return null; end $$;
          ${triggers.join("\n")}`;
}
