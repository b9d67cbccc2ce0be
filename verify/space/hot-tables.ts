import type { Ground } from "../scenes/ground.ts";

/** Whose rows come and go all the time. */
export const hotTables = ["ready", "pack", "lease", "parked"] as const;

interface Size {
  readonly tables: number;
  readonly indexes: number;
}

/** In bytes. */
export async function sizeOf(ground: Ground): Promise<Size> {
  const { rows } = await ground.pool.query<{ tables: number; indexes: number }>(
    `select sum(pg_table_size(c.oid))::float8 as tables, sum(pg_indexes_size(c.oid))::float8 as indexes
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'pawl' and c.relname = any ($1)`,
    [hotTables],
  );
  return rows[0]!;
}

export function kilobytes(bytes: number): number {
  return Math.round(bytes / 1_024);
}

/**
 * Whether they are more than three times as large as they need be. An index keeps its pages and uses them again; the
 * least that is worth speaking of is a few hundred pages.
 */
export function isSwollen(now: Size, live: Size): boolean {
  return now.tables + now.indexes > 3 * Math.max(live.tables + live.indexes, 2 * 1024 * 1024);
}
