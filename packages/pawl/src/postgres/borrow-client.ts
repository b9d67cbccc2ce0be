import type pg from "pg";

export interface BorrowedClient {
  readonly client: pg.PoolClient;
  /** A broken connection is not used again. */
  giveBack(isBroken: boolean): void;
}

const ignore = (): void => {};

/**
 * Takes a connection out of the pool. One that dies in our hands fails the query it is at and, besides, emits an
 * error, which the pool does not listen for while it is lent: unheard, it would end the process.
 */
export async function borrowClient(pool: pg.Pool): Promise<BorrowedClient> {
  const client = await pool.connect();
  client.on("error", ignore);
  return {
    client,
    giveBack(isBroken) {
      client.release(isBroken);
      client.off("error", ignore);
    },
  };
}
