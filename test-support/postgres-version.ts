import { startPostgres } from "@pawl/embedded";
import { findPostgres } from "../scripts/postgres-versions.mjs";
import { postgresSettings } from "./postgres-settings.ts";

export interface PostgresServer {
  /** A superuser's connection to its maintenance database. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Whether the binaries of this major version are there: `node scripts/postgres-versions.mjs <major>` installs them. */
export function isPostgresInstalled(major: number): boolean {
  return findPostgres(major) !== undefined;
}

/** Starts a server of this major version, for the tests of one file, which must stop it. */
export async function startPostgresVersion(major: number): Promise<PostgresServer> {
  const binaries = findPostgres(major);
  if (binaries === undefined)
    throw new Error(`Install it first: node scripts/postgres-versions.mjs ${major}`);
  return startPostgres({ binaries, durable: false, settings: postgresSettings });
}
