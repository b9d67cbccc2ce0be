import type pg from "pg";

/** What calls of one kind have cost since the last reset, as the server counted. */
export interface StatementStats {
  readonly calls: number;
  readonly buffers: number;
  readonly walBytes: number;
  /** Of these, copies of whole pages, which depend on when the last checkpoint was. */
  readonly walPageCopies: number;
}

/** Counts from now on. The server must have loaded `pg_stat_statements`, as the tests' own has. */
export async function resetStatementStats(pool: pg.Pool): Promise<void> {
  await pool.query("create extension if not exists pg_stat_statements");
  await pool.query(
    "select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()))",
  );
}

/** The calls from outside whose text contains this, with everything they led to inside. */
export async function readStatementStats(pool: pg.Pool, text: string): Promise<StatementStats> {
  const { rows } = await pool.query<Record<keyof StatementStats, string>>(
    `select coalesce(sum(calls), 0) as calls, coalesce(sum(shared_blks_hit + shared_blks_read), 0) as buffers,
            coalesce(sum(wal_bytes), 0) as "walBytes", coalesce(sum(wal_fpi), 0) as "walPageCopies"
       from pg_stat_statements
      where toplevel and position($1 in query) > 0 and dbid = (select oid from pg_database where datname = current_database())`,
    [text],
  );
  const [row] = rows;
  return {
    calls: Number(row!.calls),
    buffers: Number(row!.buffers),
    walBytes: Number(row!.walBytes),
    walPageCopies: Number(row!.walPageCopies),
  };
}
