import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { classifyFailure } from "../../packages/pawl/src/postgres/sql-error.ts";

/** What steps did to the world outside, and what transactions did inside: both read in SQL. */
export const ledgerSql = `
  create table public.ledger (
    run_id    uuid        not null,
    step      text        not null,
    pid       integer     not null,
    called_at timestamptz not null,
    began_at  timestamptz not null default clock_timestamp()
  );
  create index ledger_step on public.ledger (run_id, step);
  create table public.purchase (run_id uuid not null, step text not null);`;

/** A step says that it was called: committed at once. While the database is away it waits. */
export async function writeLedger(pool: pg.Pool, runId: string, step: string): Promise<void> {
  const text = "insert into public.ledger (run_id, step, pid, called_at) values ($1, $2, $3, $4)";
  for (const calledAt = new Date(); ;) {
    try {
      await pool.query(text, [runId, step, process.pid, calledAt]);
      return;
    } catch (error) {
      if (classifyFailure(error) !== "unavailable") throw error;
      await pause(100);
    }
  }
}
