import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { classifyFailure } from "../../src/postgres/sql-error.ts";

/** Tests read it in SQL: a line for every time a step's function was called, by whichever process. */
export const createLedgerSql = `
  create table if not exists public.ledger (
    nonce     uuid        primary key,
    run_id    uuid        not null,
    step      text        not null,
    pid       integer     not null,
    called_at timestamptz not null,                            -- by the process's clock
    began_at  timestamptz not null default clock_timestamp(),  -- when the process got round to saying so
    ended_at  timestamptz
  );
  create index if not exists ledger_step on public.ledger (run_id, step);`;

/** What the steps did to the world outside Pawl, each line committed at once, over connections of its own. */
export interface Ledger {
  /** A step begins. Answers which call of this step it is, over all processes, from 1. */
  begin(runId: string, step: string): Promise<Line>;
}

interface Line {
  readonly call: number;
  end(): Promise<void>;
}

const begin = {
  name: "ledger_begin",
  text: `with line as (
           insert into public.ledger (nonce, run_id, step, pid, called_at) values ($1, $2, $3, $4, $5)
           on conflict do nothing
         )
         select (select count(*) from public.ledger where run_id = $2 and step = $3 and nonce <> $1)::int + 1 as call`,
};
const end = {
  name: "ledger_end",
  text: "update public.ledger set ended_at = clock_timestamp() where nonce = $1",
};

export function createLedger(pool: pg.Pool): Ledger {
  /** A step that the ledger refuses would fail: it waits for the database, as long as that is away. */
  const write = async <Row extends pg.QueryResultRow>(
    query: pg.QueryConfig,
  ): Promise<pg.QueryResult<Row>> => {
    for (;;) {
      try {
        return await pool.query<Row>(query);
      } catch (error) {
        if (classifyFailure(error) !== "unavailable") throw error;
        await pause(50);
      }
    }
  };
  return {
    async begin(runId, step) {
      const nonce = randomUUID();
      const values = [nonce, runId, step, process.pid, new Date()];
      const { rows } = await write<{ call: number }>({ ...begin, values });
      return { call: rows[0]!.call, end: async () => void (await write({ ...end, values: [nonce] })) };
    },
  };
}
