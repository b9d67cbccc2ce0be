import { createHash } from "node:crypto";
import { PawlError } from "../core/error.ts";
import { hasLoneSurrogate } from "../core/name.ts";

/** How the schema's name appears in SQL, and which channel its hints use. */
export interface SchemaName {
  readonly name: string;
  /** Quoted for use as an identifier. */
  readonly quoted: string;
  /** A hash: channel names are cut at 63 bytes, and two long names must not meet. */
  readonly channel: string;
}

const longestBytes = 63;

/** What keeps this from being an identifier of Postgres, which cuts longer ones short. */
export function identifierFault(name: unknown): string | null {
  const isOne =
    typeof name === "string" &&
    name !== "" &&
    !name.includes("\0") &&
    !hasLoneSurrogate(name) &&
    Buffer.byteLength(name) <= longestBytes;
  return isOne ? null : `must have 1 to ${longestBytes} bytes of valid text without NUL`;
}

export function schemaName(name: string): SchemaName {
  const fault = identifierFault(name);
  if (fault !== null) throw new PawlError("INVALID_OPTION", `The schema's name ${fault}.`, { schema: name });
  return {
    name,
    quoted: `"${name.replaceAll('"', '""')}"`,
    channel: `pawl_${createHash("sha256").update(name).digest("hex").slice(0, 24)}`,
  };
}

/** Replaces `{schema}`, `{clock}` and `{channel}`, the only words in our SQL that are not fixed. */
export function bindSchema(sql: string, schema: SchemaName, clock: string): string {
  return sql
    .replaceAll("{clock}", () => clock)
    .replaceAll("{schema}", () => schema.quoted)
    .replaceAll("{channel}", () => schema.channel);
}

/** The database's own clock. `now()` would be the start of the transaction, which may be long ago. */
export const databaseClock = "clock_timestamp()";
