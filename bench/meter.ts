import pg from "pg";

/** What Postgres counted: statements of the library, transactions that wrote, and WAL. */
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

  const read = async (): Promise<Counted> => {
    const { rows } = await client.query<Counted>(`
      select coalesce(sum(calls), 0)::float8 as calls, coalesce(sum(wal_bytes), 0)::float8 as "walBytes",
             pg_snapshot_xmax(pg_current_snapshot())::text::float8 as commits
        from pg_stat_statements
       where toplevel and query like '%"pawl".%'`);
    const [counted] = rows;
    if (counted === undefined) throw new Error("pg_stat_statements answered nothing.");
    return counted;
  };

  return {
    async count(work) {
      await client.query("checkpoint");
      const before = await read();
      await work();
      const after = await read();
      return {
        calls: after.calls - before.calls,
        commits: after.commits - before.commits,
        walBytes: after.walBytes - before.walBytes,
      };
    },
    close: () => client.end(),
  };
}
