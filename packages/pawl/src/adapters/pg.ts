import { wrappedState } from "../core/sql-state.ts";
import { ConnectionLost, transact } from "../core/transact.ts";
import type { Transaction } from "../core/transaction.ts";
import type { Transactor } from "../core/transactor.ts";
import { createTransactor, type TransactorOptions } from "./create-transactor.ts";
import { assertMethod } from "./refuse-others.ts";

/** A pool of `pg`. */
export interface PgPool {
  connect(): Promise<unknown>;
  readonly totalCount: number;
}

/** What the pool's `connect` gives. */
export type PgClientOf<Pool extends PgPool> = Pool["connect"] extends {
  (): Promise<infer Client>;
  (...args: never[]): unknown;
}
  ? Client
  : Pool["connect"] extends () => Promise<infer Client>
    ? Client
    : never;

interface Client extends Transaction {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[]; readonly command?: string }>;
  release(isBroken?: boolean): void;
  on(event: "error", listener: () => void): unknown;
  off(event: "error", listener: () => void): unknown;
}

const ignore = (): void => {};

/**
 * A connection that dies while it is lent emits an error, which unheard would end the process. So it is listened for from the callback on:
 * before a promise's follower is called, the connection may have been ended with its first words.
 */
function borrow(pool: PgPool): Promise<Client> {
  return new Promise((resolve, reject) => {
    const lend = (client: Client): void => {
      client.on("error", ignore);
      resolve(client);
    };
    const connect = pool.connect.bind(pool) as (
      lent: (error: unknown, client?: Client) => void,
    ) => Promise<Client> | undefined;
    const promised = connect((error, client) => (client === undefined ? reject(error) : lend(client)));
    // Some pools like those of `pg` know promises alone.
    promised?.then(lend, reject);
  });
}

/** Whoever gets no answer at all has no connection. */
function noConnection(error: unknown): never {
  if (wrappedState(error) !== null) throw error;
  throw new ConnectionLost("no connection", { cause: error });
}

/**
 * Transactions on connections of a pool of `pg`.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * await ctx.transaction("record", async (client) => {
 *   await client.query("insert into orders (id) values ($1)", [9182]);
 * }, { on: withPg(pool) });
 */
export function withPg<Pool extends PgPool>(
  pool: Pool,
  options: TransactorOptions = {},
): Transactor<PgClientOf<Pool>> {
  assertMethod("withPg", pool, "connect");
  return createTransactor<PgClientOf<Pool>>(
    "withPg",
    options,
    async (work, beginOptions = {}) => {
      const client = await borrow(pool).catch(noConnection);
      let isBroken = false;
      const lose = (): void => {
        isBroken = true;
      };
      try {
        return await transact(client, beginOptions, () => work(client as PgClientOf<Pool>, client), lose);
      } finally {
        client.release(isBroken);
        client.off("error", ignore);
      }
    },
    true,
  );
}
