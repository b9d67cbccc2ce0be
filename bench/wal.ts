import pg from "pg";

/** WAL of the whole server, commits and vacuum included. */
interface Wal {
  /** Without full-page images, which depend on when the last checkpoint was. */
  readonly bytes: number;
  readonly imageBytes: number;
}

export interface WalMeter {
  measure<Answer>(work: () => Promise<Answer>): Promise<Wal & { readonly answer: Answer }>;
  close(): Promise<void>;
}

/** Reads the WAL itself: what statements are told of theirs lacks the commits. The server must have nothing else to do. */
export async function createWalMeter(url: string): Promise<WalMeter> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  await client.query("create extension if not exists pg_walinspect");
  const read = async (): Promise<string> => {
    const { rows } = await client.query<{ at: string }>("select pg_current_wal_flush_lsn()::text as at");
    return rows[0]?.at ?? "";
  };

  return {
    async measure(work) {
      const from = await read();
      const answer = await work();
      const { rows } = await client.query<Wal>(
        `select pg_wal_lsn_diff($2::pg_lsn, $1::pg_lsn)::float8 - sum(fpi_size)::float8 as bytes,
                sum(fpi_size)::float8 as "imageBytes"
           from pg_get_wal_stats($1::pg_lsn, $2::pg_lsn)`,
        [from, await read()],
      );
      const [wal] = rows;
      if (wal === undefined) throw new Error("pg_walinspect answered nothing.");
      return { ...wal, answer };
    },
    close: () => client.end(),
  };
}
