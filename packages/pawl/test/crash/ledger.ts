import type pg from "pg";

/** Tests read it in SQL: a line for every time a step's function was called, by whichever process. */
export const createLedgerSql = `
  create table if not exists public.ledger (
    nonce     uuid        primary key default gen_random_uuid(),
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
           insert into public.ledger (run_id, step, pid, called_at) values ($1, $2, $3, $4) returning nonce
         )
         select nonce, (select count(*) from public.ledger where run_id = $1 and step = $2)::int + 1 as call from line`,
};
const end = {
  name: "ledger_end",
  text: "update public.ledger set ended_at = clock_timestamp() where nonce = $1",
};

export function createLedger(pool: pg.Pool): Ledger {
  return {
    async begin(runId, step) {
      const values = [runId, step, process.pid, new Date()];
      const { rows } = await pool.query<{ nonce: string; call: number }>({ ...begin, values });
      const { nonce, call } = rows[0]!;
      return { call, end: async () => void (await pool.query({ ...end, values: [nonce] })) };
    },
  };
}
