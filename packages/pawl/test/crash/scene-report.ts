import type pg from "pg";
import type { Crew } from "./crew.ts";
import { undoneAs } from "./everything.ts";

/** The parts of a scene that tell what goes on in it. */
interface Observed {
  readonly pool: pg.Pool;
  readonly schema: string;
  readonly crews: readonly Crew[];
  readonly seed: string;
}

/** Those that should have completed. */
const unfinished = `
  select id
    from {schema}.runs
   where status is distinct from coalesce('${JSON.stringify(undoneAs)}'::jsonb ->> workflow, 'completed')
   order by ended_at nulls last, id
   limit 5`;

/** What to know of a scene in which something does not go on. Each answers lines of text. */
const questions: Readonly<Record<string, string>> = {
  "rooms and who holds them": `
    select format('%s runs, %s live; ready %s (suspects %s), in packs %s, parked %s, leases %s',
                  (select count(*) from {schema}.run), (select count(*) from {schema}.live_runs),
                  (select count(*) from {schema}.ready), (select count(*) from {schema}.ready where suspicion >= 2),
                  (select sum(cardinality(run_ids)) from {schema}.pack),
                  (select count(*) from {schema}.parked),
                  (select json_agg(l) from (select worker_id, count(*) from {schema}.live_runs where worker_id is not null group by 1) l))`,
  workers: `
    select format('%s pid %s: heard %s ago, ended %s', w.id, w.pid, clock_timestamp() - w.heard_at, w.ended_at)
      from {schema}.worker w
     order by w.id desc
     limit 20`,
  "unfinished runs": `
    select format('%s %s: %s, epoch %s, attempt %s, worker %s, parked as %s for %s until %s',
                  r.workflow, r.id, r.status, r.epoch, r.attempt, r.worker_id, r.park_reason, r.wants, r.due_at)
      from {schema}.runs r
     where r.id in (${unfinished})`,
  "their histories": `
    select format('%s %s %s %s attempt %s at %s by %s %s', e.run_id, e.seq, e.kind, e.name, e.attempt, e.at, e.worker_id,
                  case when e.kind in ('attempt_crashed', 'attempt_failed', 'failed') then e.data end)
      from {schema}.event e
     where e.run_id in (${unfinished})
     order by e.run_id, e.seq`,
  "their inboxes": `
    select format('%s %s %s sent %s taken %s', m.run_id, m.topic, m.name, m.sent_at, m.taken_seq)
      from {schema}.inbox m
     where m.run_id in (${unfinished})
     order by m.run_id, m.sent_at`,
  "connections at work": `
    select format('%s %s %s %s for %s: %s', pid, state, wait_event_type, wait_event, clock_timestamp() - state_change,
                  left(query, 100))
      from pg_stat_activity
     where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`,
  "locks waited for": `
    select format('%s waits for %s of %s, blocked by %s', l.pid, l.mode, coalesce(l.relation::regclass::text, l.locktype),
                  pg_blocking_pids(l.pid))
      from pg_locks l
     where not l.granted`,
};
const mostLines = 60;
const lastWords = 30;

/** Says where everything stands: in the processes' logs, and, last, where nobody cuts it off, in the database. */
export async function reportOn({ pool, schema, crews, seed }: Observed): Promise<string> {
  const lines: string[] = [];
  for (const crew of crews) {
    lines.push("processes:", ...crew.states.map((state) => `  ${state}`));
    const logs = crew.logs.filter(({ level }) => level === "warn" || level === "error");
    lines.push("last words:", ...logs.slice(-lastWords).map((line) => `  ${JSON.stringify(line)}`));
  }
  for (const [question, sql] of Object.entries(questions)) {
    lines.push(`${question}:`);
    try {
      const { rows } = await pool.query<{ format: string }>(sql.replaceAll("{schema}", schema));
      lines.push(...rows.slice(0, mostLines).map(({ format }) => `  ${format}`));
    } catch (error) {
      lines.push(`  ${String(error)}`);
    }
  }
  lines.push(`seed ${seed}`);
  return lines.join("\n");
}
