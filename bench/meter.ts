import pg from "pg";

/** What Postgres counted: statements of the library, commits in its WAL, and WAL. */
export interface Counted {
  readonly calls: number;
  readonly commits: number;
  readonly walBytes: number;
}

export interface Meter {
  count(work: () => Promise<void>): Promise<Counted>;
  close(): Promise<void>;
}

/** The server must have loaded pg_stat_statements, and have nothing else to do. */
export async function createMeter(url: string): Promise<Meter> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  await client.query("create extension if not exists pg_stat_statements");
  await client.query("create extension if not exists pg_walinspect");

  const read = async (): Promise<Omit<Counted, "commits"> & { readonly at: string }> => {
    const { rows } = await client.query<Counted & { readonly at: string }>(`
      select coalesce(sum(calls), 0)::float8 as calls, coalesce(sum(wal_bytes), 0)::float8 as "walBytes",
             pg_current_wal_flush_lsn()::text as at
        from pg_stat_statements
       where toplevel and query like '%"pawl".%'`);
    const [counted] = rows;
    if (counted === undefined) throw new Error("pg_stat_statements answered nothing.");
    return counted;
  };

  const countCommits = async (from: string, to: string): Promise<number> => {
    const { rows } = await client.query<{ readonly commits: number }>(
      `select coalesce(sum(count), 0)::float8 as commits
         from pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, true)
        where "resource_manager/record_type" = 'Transaction/COMMIT'`,
      [from, to],
    );
    return rows[0]?.commits ?? 0;
  };

  return {
    async count(work) {
      await client.query("checkpoint");
      const before = await read();
      await work();
      const after = await read();
      return {
        calls: after.calls - before.calls,
        commits: await countCommits(before.at, after.at),
        walBytes: after.walBytes - before.walBytes,
      };
    },
    close: () => client.end(),
  };
}
