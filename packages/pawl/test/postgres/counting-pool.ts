import pg from "pg";

export interface CountingPool {
  readonly pool: pg.Pool;
  /** Statements sent since the last reset. */
  readonly sent: () => readonly string[];
  reset(): void;
}

/** A pool that notes every statement it sends, whatever it is. */
export function createCountingPool(url: string, max = 10): CountingPool {
  const sent: string[] = [];
  class CountingClient extends pg.Client {
    override query(...args: unknown[]): never {
      const [query] = args;
      sent.push(typeof query === "string" ? query : (query as { readonly text: string }).text);
      return (super.query as (...args: unknown[]) => never).apply(this, args);
    }
  }
  const pool = new pg.Pool({
    connectionString: url,
    max,
    Client: CountingClient as unknown as typeof pg.Client,
  });
  return { pool, sent: () => sent, reset: () => void sent.splice(0) };
}
