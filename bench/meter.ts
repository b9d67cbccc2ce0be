import pg from "pg";

/** What a workload cost, by the clock and by what Postgres counted. */
export interface Measured {
  readonly name: string;
  readonly runs: number;
  readonly runsPerSecond: number;
  readonly callsPerRun: number;
  readonly callsPerStep: number | null;
  /** Full-page images left out: they depend on checkpoints, not on us. */
  readonly walBytesPerRun: number;
}

export interface Meter {
  measure(
    name: string,
    size: { readonly runs: number; readonly stepsPerRun: number },
    work: () => Promise<void>,
  ): Promise<Measured>;
  close(): Promise<void>;
}

interface Counters {
  readonly calls: number;
  readonly walBytes: number;
}

/** Counts the statements of the library, and the WAL of the whole server, around a piece of work. */
export async function createMeter(url: string): Promise<Meter> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  await client.query("create extension if not exists pg_stat_statements");

  const count = async (): Promise<Counters> => {
    const { rows } = await client.query<Counters>(`
      select coalesce(sum(calls), 0)::float8 as calls, coalesce(sum(wal_bytes - wal_fpi * 8192.0), 0)::float8 as "walBytes"
        from pg_stat_statements
       where toplevel and query like '%"pawl".%'`);
    const [counters] = rows;
    if (counters === undefined) throw new Error("pg_stat_statements answered nothing.");
    return counters;
  };

  return {
    async measure(name, { runs, stepsPerRun }, work) {
      await client.query("checkpoint");
      const before = await count();
      const startedAt = performance.now();
      await work();
      const seconds = (performance.now() - startedAt) / 1000;
      const after = await count();
      const callsPerRun = (after.calls - before.calls) / runs;
      return {
        name,
        runs,
        runsPerSecond: runs / seconds,
        callsPerRun,
        callsPerStep: stepsPerRun === 0 ? null : callsPerRun / stepsPerRun,
        walBytesPerRun: (after.walBytes - before.walBytes) / runs,
      };
    },
    close: () => client.end(),
  };
}
