import type pg from "pg";
import { expectedFailure, type Isolation, type Move } from "./move.ts";

/** One connection that makes moves, each in a transaction of its own unless one is open. */
export interface Session {
  readonly pid: number;
  begin(isolation: Isolation | null): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  /** Makes the move and answers what the store would, or the code of the error that it would reject with. */
  make(move: Move): Promise<unknown>;
  query(text: string, values?: readonly unknown[]): Promise<readonly unknown[]>;
}

export async function createSession(client: pg.PoolClient, bind: (text: string) => string): Promise<Session> {
  // Ours give up waiting sooner than Postgres looks for deadlocks, which would hide them.
  await client.query("set deadlock_timeout = '20ms'");
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");

  return {
    pid: rows[0]!.pid,
    async begin(isolation) {
      await client.query(`begin isolation level ${isolation ?? "read committed"}`);
    },
    async commit() {
      await client.query("commit");
    },
    async rollback() {
      await client.query("rollback");
    },
    async make(move) {
      const { statement, values } = move;
      const query = { name: statement.name, text: bind(statement.text), values: [...values] };
      try {
        return move.answerOf((await client.query(query)).rows);
      } catch (error) {
        const code = expectedFailure(error, move);
        if (code === null) throw error;
        return code;
      }
    },
    async query(text, values = []) {
      return (await client.query(bind(text), [...values])).rows as readonly unknown[];
    },
  };
}
