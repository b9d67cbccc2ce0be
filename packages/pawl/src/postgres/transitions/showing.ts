import type { PublishedRecord } from "../../store/showing.ts";
import { payloadOf } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0012_showing.sql, as for all below. */
export const readPublished = transition(
  "read_published",
  `select key, name, data::text as data, notes::text as notes, floor(extract(epoch from at) * 1000)::float8 as at_ms
     from {schema}.read_published_v1($1, $2, $3)`,
);

export interface PublishedRow extends Row {
  readonly key: string;
  readonly name: string;
  readonly data: string | null;
  readonly notes: string | null;
  readonly at_ms: number;
}

export function decodePublished(row: PublishedRow): PublishedRecord {
  return { key: row.key, name: row.name, data: payloadOf(row.data, row.notes), at: row.at_ms };
}
