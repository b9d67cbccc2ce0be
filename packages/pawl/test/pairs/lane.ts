import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { bindSchema, schemaName, type SchemaName } from "../../src/postgres/schema-name.ts";
import type { StoreSnapshot } from "../../src/store/snapshot.ts";
import { createPostgresHarness, type PostgresHarness } from "../postgres/harness.ts";
import { storeTables } from "../postgres/store-tables.ts";
import { testClockSql } from "../postgres/test-clock.ts";
import { createSession, type Session } from "./session.ts";

/** A schema of its own with three sessions, so that several pairs can be tried at a time. */
export interface Lane {
  readonly harness: PostgresHarness;
  readonly first: Session;
  readonly second: Session;
  readonly third: Session;
  /** Keeps the present state as the one that `restore` goes back to. */
  save(): Promise<void>;
  restore(): Promise<void>;
  snapshot(): Promise<StoreSnapshot>;
  /** Waits until this call is over, or its session waits for a lock that one of the others holds. */
  untilOverOrBlocked(
    call: Promise<unknown>,
    session: Session,
    by: readonly Session[],
  ): Promise<"over" | "blocked">;
  close(): Promise<void>;
}

/** Restoring leaves dead rows behind, which every look steps over. */
const restoresPerVacuum = 200;

export async function createLane(url: string, name: string): Promise<Lane> {
  const harness = await createPostgresHarness(url, name, { listen: false });
  const schema = schemaName(name);
  const bind = (text: string): string => bindSchema(text, schema, testClockSql);
  const clients = await Promise.all(Array.from({ length: 4 }, () => harness.pool.connect()));
  const [observer, ...others] = clients as [pg.PoolClient, ...pg.PoolClient[]];
  const [first, second, third] = await Promise.all(others.map((client) => createSession(client, bind)));
  await observer.query(bind(await savedTablesSql(observer, schema)));
  let restores = 0;

  return {
    harness,
    first: first!,
    second: second!,
    third: third!,
    async save() {
      await observer.query(bind("select {schema}.test_save()"));
    },
    async restore() {
      if (++restores % restoresPerVacuum === 0) {
        await observer.query(bind(`vacuum ${storeTables.map((table) => `{schema}.${table}`).join(", ")}`));
      }
      await observer.query({ name: "restore", text: bind("select {schema}.test_restore()") });
    },
    snapshot: () => harness.snapshot(),
    async untilOverOrBlocked(call, session, by) {
      const over = call.then(
        () => "over" as const,
        () => "over" as const,
      );
      const text = "select pg_blocking_pids($1) && $2::integer[] as blocked";
      const values = [session.pid, by.map(({ pid }) => pid)];
      for (;;) {
        // A call that nobody blocks is over in less than this.
        const state = await Promise.race([over, delay(1, "under way" as const)]);
        if (state === "over") return state;
        const { rows } = await observer.query<{ blocked: boolean }>({ name: "blocked", text, values });
        if (rows[0]!.blocked) return "blocked";
      }
    },
    async close() {
      for (const client of clients) client.release();
      await harness.close();
    },
  };
}

/** Tables that hold the saved state, and the two functions that fill them and go back to them. */
async function savedTablesSql(client: pg.PoolClient, schema: SchemaName): Promise<string> {
  const { rows } = await client.query<{ table: string; columns: string }>(
    `select c.relname as table, string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
       from pg_catalog.pg_class c
       join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and a.attgenerated = ''
      where c.relnamespace = $1::regnamespace and c.relname = any ($2)
      group by c.relname`,
    [schema.quoted, storeTables],
  );
  const copy = (table: string, columns: string, from: string, to: string): string =>
    `delete from {schema}.${to}${table}; insert into {schema}.${to}${table} (${columns}) select ${columns} from {schema}.${from}${table};`;
  const create = rows.map(({ table }) => `create table {schema}.saved_${table} as table {schema}.${table};`);
  const save = rows.map(({ table, columns }) => copy(table, columns, "", "saved_"));
  const restore = rows.map(({ table, columns }) => copy(table, columns, "saved_", ""));
  return `${create.join("\n")}
    create function {schema}.test_save() returns void language plpgsql as $$ begin ${save.join("\n")} end $$;
    create function {schema}.test_restore() returns void language plpgsql as $$ begin ${restore.join("\n")} end $$;`;
}
