import { PawlError } from "../core/error.ts";
import type { Database } from "./database.ts";
import { latestVersion } from "./migrate.ts";
import { transition } from "./transition.ts";

/** Index: migration_pkey, though there are few. */
const readVersion = transition(
  "read_version",
  "select max(version) as version, max(version) filter (where is_breaking) as breaking from {schema}.migration",
);

/** What has been made of the schema so far. */
export interface AppliedSchema {
  readonly version: number;
  /** Whether this library can work on it: never on an older one; on a newer one, unless that says otherwise. */
  readonly isFit: boolean;
}

export async function readApplied(database: Database): Promise<AppliedSchema> {
  const [row] = await database.call<{ readonly version: number | null; readonly breaking: number | null }>(
    readVersion,
    [],
  );
  const version = row?.version ?? 0;
  return { version, isFit: version >= latestVersion && (row?.breaking ?? 0) <= latestVersion };
}

/**
 * Refuses a schema on which runs would come to a place that it cannot carry out. Whoever only starts and signals runs needs
 * no such check: what is missing is refused by itself, and nothing is done by halves.
 */
export async function assertFits(database: Database): Promise<void> {
  const { version, isFit } = await readApplied(database);
  if (isFit) return;
  const details = { schema: database.schema.name, version, wanted: latestVersion };
  if (version < latestVersion)
    throw new PawlError(
      "SCHEMA_TOO_OLD",
      `The schema "${database.schema.name}" is at version ${version}, this library needs ${latestVersion}: run pawl.migrate().`,
      details,
    );
  throw new PawlError(
    "SCHEMA_TOO_NEW",
    `The schema "${database.schema.name}" is at version ${version}, which workers of version ${latestVersion} cannot live with: upgrade the library.`,
    details,
  );
}
