import type pg from "pg";
import type { Timers } from "../core/timers.ts";
import { borrowClient } from "./borrow-client.ts";
import { bindSchema, type SchemaName } from "./schema-name.ts";
import { classifyFailure, translateError } from "./sql-error.ts";
import type { Transition } from "./transition.ts";

/** A row as the driver gives it; each transition knows its own columns. */
export type Row = Readonly<Record<string, unknown>>;

export interface Database {
  readonly schema: SchemaName;
  /** Whether a transaction pooler sits in between; false until the first connection has shown it. */
  isPooled(): boolean;
  /** Runs one statement in its own transaction, on any connection. Rejects with what the driver threw. */
  run<R extends Row>(statement: Transition, values: readonly unknown[]): Promise<readonly R[]>;
  /** The same, with errors translated: for statements that are not merged into batches. */
  call<R extends Row>(statement: Transition, values: readonly unknown[]): Promise<readonly R[]>;
}

/** A statement in this schema's words. */
interface Prepared {
  readonly text: string;
  readonly name: string;
}

interface DatabaseOptions {
  readonly pool: pg.Pool;
  readonly schema: SchemaName;
  readonly clock: string;
  /** A query without an answer for so long is given up and its connection destroyed. */
  readonly queryTimeoutMs: number;
  readonly timers: Timers;
}

export function createDatabase({ pool, schema, clock, queryTimeoutMs, timers }: DatabaseOptions): Database {
  const prepared = new Map<Transition, Prepared>();
  /** Null until the first connection has shown whether a pooler sits in between. */
  let isDirect: boolean | null = null;

  function prepare(statement: Transition): Prepared {
    let known = prepared.get(statement);
    if (known === undefined) {
      const text = bindSchema(statement.text, schema, clock);
      known = { text, name: `pawl_${schema.channel}_${statement.name}` };
      prepared.set(statement, known);
    }
    return known;
  }

  async function run<R extends Row>(
    statement: Transition,
    values: readonly unknown[],
  ): Promise<readonly R[]> {
    const { client, giveBack } = await borrowClient(pool, timers);
    let broken = true;
    try {
      isDirect ??= await hasOwnBackend(client, queryTimeoutMs);
      const { text, name } = prepare(statement);
      const query = { text, values: values as unknown[], query_timeout: queryTimeoutMs };
      // A transaction pooler hands each statement to another server, which does not know ours by name.
      const result = await client.query<R & pg.QueryResultRow>(isDirect ? { ...query, name } : query);
      assertOwnTransaction(client);
      broken = false;
      return result.rows;
    } catch (error) {
      broken = classifyFailure(error) === "unavailable";
      if (broken) destroySocket(client);
      throw error;
    } finally {
      giveBack(broken);
    }
  }

  return {
    schema,
    isPooled: () => isDirect === false,
    run,
    async call(statement, values) {
      try {
        return await run(statement, values);
      } catch (error) {
        throw translateError(error, statement.name);
      }
    },
  };
}

/** A pooler answers with a process id of its own making. */
async function hasOwnBackend(client: pg.PoolClient, timeoutMs: number): Promise<boolean> {
  const query = { text: "select pg_backend_pid() as pid", query_timeout: timeoutMs };
  const { rows } = await client.query<{ pid: number }>(query);
  const announced = (client as { readonly processID?: number | null }).processID;
  return rows[0]?.pid === announced;
}

/**
 * A connection of a caller's pool may come with a transaction that was never ended. Ours has then not committed: cutting
 * the connection undoes it, and the call is made again on another.
 */
function assertOwnTransaction(client: pg.PoolClient): void {
  const { getTransactionStatus } = client as { getTransactionStatus?: () => string | null };
  const status = getTransactionStatus?.call(client) ?? "I";
  if (status !== "I") throw new Error("the pool gave a connection with an open transaction");
}

/** A half-open connection never answers, not even to a goodbye: cut it. */
export function destroySocket(client: pg.PoolClient): void {
  const { connection } = client as { readonly connection?: { readonly stream?: { destroy(): void } } };
  connection?.stream?.destroy();
}
