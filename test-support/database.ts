import { randomBytes } from "node:crypto";
import pg from "pg";
import { test as base, inject } from "vitest";
import { execute, withDatabase } from "./server-databases.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A superuser's connection to the run's cluster, in its maintenance database. */
    postgresUrl: string;
    /** Every database of this test run is named with this prefix. */
    databasePrefix: string;
    /** The migrated database that each file's own is copied from. */
    templateDatabase: string;
  }
}

export interface TestDatabase {
  readonly name: string;
  readonly url: string;
}

/** Creates a database of its own for a test: a copy of the migrated template, or an empty one. */
export async function createDatabase(from: "template" | "empty" = "template"): Promise<TestDatabase> {
  const server = inject("postgresUrl");
  const name = inject("databasePrefix") + randomBytes(6).toString("hex");
  const source = from === "template" ? inject("templateDatabase") : "template0";
  await execute(server, `create database ${name} template ${source}`);
  return { name, url: withDatabase(server, name) };
}

/** Drops it, together with the connections that are still open after a moment. */
export async function dropDatabase(database: TestDatabase): Promise<void> {
  await execute(
    inject("postgresUrl"),
    // A pool says that it has ended while its connections are still closing: cut off then, they would raise an error.
    `do $$
     begin
       for n in 1 .. 20 loop
         exit when not exists (select 1 from pg_stat_activity where datname = '${database.name}');
         perform pg_sleep(0.02), pg_stat_clear_snapshot();
       end loop;
     end $$`,
    `drop database if exists ${database.name} with (force)`,
  );
}

/**
 * Vitest's `test` with what most tests need, made when a test first asks for it:
 * - `database`: this file's own, a copy of the migrated template, dropped when the file ends;
 * - `pool`: connections to it;
 * - `schema`: the name of a schema that no other test uses. The test creates it.
 */
export const test = base
  .extend("database", { scope: "file" }, async ({}, { onCleanup }) => {
    const database = await createDatabase();
    onCleanup(() => dropDatabase(database));
    return database;
  })
  .extend("pool", { scope: "file" }, async ({ database }, { onCleanup }) => {
    const pool = new pg.Pool({ connectionString: database.url, max: 20 });
    // `end` does not wait for the server's side, which may still be there when the database is dropped.
    pool.on("error", () => {});
    onCleanup(() => pool.end());
    return pool;
  })
  .extend("schema", () => `test_${randomBytes(6).toString("hex")}`);
