import pg from "pg";
import { EmbeddedPostgresError } from "./embedded-postgres-error.ts";

/** Makes a database, as a copy of another one if a template is named. */
export async function createDatabase(url: string, name: string, template?: string): Promise<void> {
  const copy = template === undefined ? "" : ` template ${pg.escapeIdentifier(template)}`;
  await runStatement(url, `create database ${pg.escapeIdentifier(name)}${copy}`, name);
}

/** Removes a database, and whoever is connected to it. One that is not there is no error. */
export async function dropDatabase(url: string, name: string): Promise<void> {
  await runStatement(url, `drop database if exists ${pg.escapeIdentifier(name)} with (force)`, name);
}

async function runStatement(url: string, statement: string, database: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  // A connection lost while idle would otherwise end the process.
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query(statement);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new EmbeddedPostgresError(
      "QUERY_FAILED",
      `The embedded Postgres refused "${statement}": ${reason}.`,
      { database, statement },
      cause,
    );
  } finally {
    await client.end();
  }
}
