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

export function createLedger(pool: pg.Pool): Ledger {
  return {
    async begin(runId, step) {
      const calledAt = new Date();
      const { rows } = await pool.query<{ nonce: string }>({
        name: "ledger_begin",
        text: "insert into public.ledger (run_id, step, pid, called_at) values ($1, $2, $3, $4) returning nonce",
        values: [runId, step, process.pid, calledAt],
      });
      const counted = await pool.query<{ calls: number }>({
        name: "ledger_count",
        text: "select count(*)::int as calls from public.ledger where run_id = $1 and step = $2",
        values: [runId, step],
      });
      return {
        call: counted.rows[0]!.calls,
        async end() {
          const text = "update public.ledger set ended_at = clock_timestamp() where nonce = $1";
          await pool.query({ name: "ledger_end", text, values: [rows[0]!.nonce] });
        },
      };
    },
  };
}
