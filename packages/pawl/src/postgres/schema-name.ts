import { createHash } from "node:crypto";
import { PawlError } from "../core/error.ts";
import { identifierFault } from "../core/name.ts";

/** How the schema's name appears in SQL, and which channel its hints use. */
export interface SchemaName {
  readonly name: string;
  /** Quoted for use as an identifier. */
  readonly quoted: string;
  /** A hash: channel names are cut at 63 bytes, and two long names must not meet. */
  readonly channel: string;
}

/** What keeps this from being the name of our schema, which also stands in the bodies of functions, and in texts there. */
export function schemaFault(name: unknown): string | null {
  return identifierFault(name) ?? (/'|\$\$/.test(String(name)) ? "must not hold ' or $$" : null);
}

export function schemaName(name: string): SchemaName {
  const fault = schemaFault(name);
  if (fault !== null) throw new PawlError("INVALID_OPTION", `The schema's name ${fault}.`, { schema: name });
  return {
    name,
    quoted: `"${name.replaceAll('"', '""')}"`,
    channel: `pawl_${createHash("sha256").update(name).digest("hex").slice(0, 24)}`,
  };
}

/**
 * Replaces `{schema}`, `{clock}` and `{channel}`, the only words in our SQL that are not fixed. The clock is ours, and may
 * speak of the schema; the others at once, since a schema may be named like one of them.
 */
export function bindSchema(sql: string, { quoted, channel }: SchemaName, clock: string): string {
  return sql
    .replaceAll("{clock}", () => clock)
    .replaceAll(/\{(schema|channel)\}/g, (_, word) => (word === "schema" ? quoted : channel));
}

/** The database's own clock. `now()` would be the start of the transaction, which may be long ago. */
export const databaseClock = "clock_timestamp()";
