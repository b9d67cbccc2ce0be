import type pg from "pg";
import type { Timers } from "../core/timers.ts";

export interface BorrowedClient {
  readonly client: pg.PoolClient;
  /** A broken connection is not used again. */
  readonly giveBack: (isBroken: boolean) => void;
}

const ignore = (): void => {};

/** A pool without a free connection, or a server that does not answer, is given up after this long. */
const longestWaitMs = 5_000;

/**
 * Takes a connection out of the pool. One that dies in our hands fails the query it is at and, besides, emits an
 * error, which the pool does not listen for while it is lent: unheard, it would end the process.
 */
export async function borrowClient(pool: pg.Pool, timers: Timers): Promise<BorrowedClient> {
  const client = await connectInTime(pool, timers);
  return {
    client,
    giveBack(isBroken) {
      client.release(isBroken);
      client.off("error", ignore);
    },
  };
}

/**
 * A connection that comes too late goes back to the pool unused. Errors are listened for from the callback on: one that
 * came with the connection's first words would be emitted before a promise's follower is called.
 */
function connectInTime(pool: pg.Pool, timers: Timers): Promise<pg.PoolClient> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const cancel = timers.after(longestWaitMs, () => {
      isLate = true;
      reject(new Error(`the pool had no connection for ${longestWaitMs} ms`));
    });
    pool.connect((error, client) => {
      cancel();
      if (client === undefined) return reject(error ?? new Error("the pool gave no connection"));
      if (isLate) return client.release();
      client.on("error", ignore);
      resolve(client);
    });
  });
}
