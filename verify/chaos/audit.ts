import type pg from "pg";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Database } from "../gen/program.ts";
import type { EffectEntry } from "../hist/record.ts";

/** Without it nobody knows in which order transactions committed. */
export const auditSettings = { track_commit_timestamp: "on" };

/**
 * One change of a row, as a trigger of the private database saw it, and when it was committed: that gives all of them one order.
 * `op` is the transition that made it: `claim_runs`, `sweep`, …
 */
export interface AuditLine {
  readonly n: number;
  /** By the database's clock, ms with fractions. */
  readonly at: number;
  /** The transaction. */
  readonly tx: string;
  readonly what:
    | "created"
    | "ended"
    | "revived"
    | "claimed"
    | "left"
    | "event"
    | "spoiled"
    | "told"
    | "registered"
    | "heard"
    | "retired";
  readonly op: string;
  readonly run: RunId | null;
  readonly worker: string | null;
  readonly epoch: number | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

const ms = (instant: string): string => `(extract(epoch from ${instant}) * 1000)::float8`;

/** Every function runs as its owner: Pawl's own role may not see any of this. */
function triggerSql(table: string, events: string, body: string): string {
  return `
    create function chaos.on_${table}() returns trigger language plpgsql security definer as $$
    begin
      ${body}
      return null;
    end $$;
    create trigger chaos_audit after ${events} on pawl.${table} for each row execute function chaos.on_${table}();`;
}

const note = (what: string, run: string, worker: string, epoch: string, detail: string): string =>
  `perform chaos.note('${what}', ${run}, ${worker}, ${epoch}, ${detail});`;

/** A ledger in the same database, and triggers that write down every change of a run's state. */
export const auditSql = `
  create schema chaos;
  create table chaos.log (
    n bigint generated always as identity primary key, tx xid8 not null, what text not null,
    op text not null, run uuid, worker uuid, epoch integer, detail json
  );
  create index log_run on chaos.log (run, n) where what in ('claimed', 'left');
  create index log_left on chaos.log (worker, n) where what = 'left';
  create table chaos.born (n bigint generated always as identity primary key, run uuid not null);
  grant usage on schema chaos to app;

  create function chaos.note(p_what text, p_run uuid, p_worker uuid, p_epoch integer, p_detail json) returns void
  language sql security definer as $$
    insert into chaos.log (tx, what, op, run, worker, epoch, detail)
    values (pg_current_xact_id(), p_what,
            coalesce(substring(current_query() from '\\.(\\w+)_v\\d+\\('), 'other'), p_run, p_worker, p_epoch, p_detail)
  $$;
  ${triggerSql(
    "run",
    "insert",
    `${note(
      "created",
      "new.id",
      "null",
      "null",
      `json_build_object('key', new.key, 'parent', new.parent_id, 'first', new.first_id, 'startAt', ${ms("new.start_at")},
         'expiresAt', ${ms("new.expires_at")}, 'deadlineAt', ${ms("new.deadline_at")})`,
    )}
     insert into chaos.born (run) values (new.id);`,
  )}
  ${triggerSql(
    "lease",
    "insert or delete or update of epoch, worker_id",
    `if tg_op = 'INSERT' then
       -- What was held in a pack is not claimed a second time when it gets a lease of its own.
       if new.epoch > 1 or not exists (select from chaos.log l where l.run = new.run_id and l.what = 'claimed' and l.detail ->> 'pack' is not null
                                                               and l.worker = new.worker_id) then
         ${note("claimed", "new.run_id", "new.worker_id", "new.epoch", "json_build_object('failures', new.failures)")}
       end if;
     elsif tg_op = 'DELETE' then
       ${note("left", "old.run_id", "old.worker_id", "old.epoch", "null")}
     else
       ${note("spoiled", "new.run_id", "new.worker_id", "new.epoch", "json_build_object('table', 'lease', 'before', old.epoch)")}
     end if;`,
  )}
  ${triggerSql(
    "pack",
    "update or delete",
    `if tg_op = 'UPDATE' and old.worker_id is null and new.worker_id is not null then
       perform chaos.note('claimed', u, new.worker_id, 1, json_build_object('failures', 0, 'pack', new.id)) from unnest(new.run_ids) u;
     elsif tg_op = 'UPDATE' and old.worker_id is not null then
       perform chaos.note('spoiled', u, new.worker_id, 1, json_build_object('table', 'pack', 'before', old.worker_id)) from unnest(old.run_ids) u;
     elsif tg_op = 'DELETE' and old.worker_id is not null then
       perform chaos.note('left', u, old.worker_id, 1, null) from unnest(old.run_ids) u
         where not exists (select from pawl.lease l where l.run_id = u);
     end if;`,
  )}
  ${triggerSql(
    "event",
    "insert or update or delete",
    `if tg_op = 'INSERT' then
       perform chaos.note('event', new.run_id, l.worker_id, l.epoch, json_build_object('seq', new.seq, 'kind', new.kind))
          from (select 1) one left join pawl.lease l on l.run_id = new.run_id;
       if new.kind in ('completed', 'failed', 'cancelled', 'timed_out', 'expired') then
         perform chaos.note('ended', new.run_id, null, null,
                            json_build_object('status', new.kind, 'next', (select e.data ->> 'id' from pawl.event e
                              where e.run_id = new.run_id and e.seq = new.seq - 1 and e.kind = 'continued')));
       elsif new.kind = 'redriven' then
         ${note("revived", "new.run_id", "null", "null", "null")}
         insert into chaos.born (run) values (new.run_id);
       end if;
     else
       ${note("spoiled", "old.run_id", "null", "null", "json_build_object('table', 'event', 'seq', old.seq, 'op', tg_op)")}
     end if;`,
  )}
  ${triggerSql(
    "inbox",
    "insert or delete",
    `if tg_op = 'INSERT' then
       ${note(
         "told",
         "new.run_id",
         "null",
         "null",
         "json_build_object('id', new.id, 'topic', new.topic, 'key', new.idempotency_key)",
       )}
     else
       -- Taken back by the call that stored it, for the run has ended meanwhile: it was never accepted.
       delete from chaos.log l
        where l.what = 'told' and l.run = old.run_id and l.tx = pg_current_xact_id() and l.detail ->> 'id' = old.id::text;
     end if;`,
  )}
  ${triggerSql(
    "worker",
    "insert or update of heard_at, lease_ms, ended_at",
    `if tg_op = 'INSERT' then
       ${note("registered", "null", "new.id", "null", `json_build_object('heardAt', ${ms("new.heard_at")}, 'leaseMs', new.lease_ms, 'pid', new.pid)`)}
     else
       if new.heard_at <> old.heard_at or new.lease_ms <> old.lease_ms then
         ${note("heard", "null", "new.id", "null", `json_build_object('heardAt', ${ms("new.heard_at")}, 'leaseMs', new.lease_ms)`)}
       end if;
       if old.ended_at is null and new.ended_at is not null then
         ${note("retired", "null", "new.id", "null", "null")}
       end if;
     end if;`,
  )}`;

/** Where steps write in their transactions, in whichever database. */
export const effectSql = `
  create table public.effect (run uuid not null, step text not null, key text not null, token text not null);
  grant insert on public.effect to app;`;

/** Everything that was written down, in the order of its time. */
export async function readAudit(pool: pg.Pool): Promise<readonly AuditLine[]> {
  const { rows } = await pool.query<AuditLine>(
    `select n::float8 as n, ${ms("pg_xact_commit_timestamp(tx::xid)")} as at, tx::text, what, op, run, worker, epoch, detail
       from chaos.log order by 2, n`,
  );
  return rows;
}

/** What steps wrote in transactions that were committed. */
export async function readEffects(pool: pg.Pool, database: Database): Promise<readonly EffectEntry[]> {
  const { rows } = await pool.query<Omit<EffectEntry, "by" | "database" | "process">>(
    `select ${ms("pg_xact_commit_timestamp(xmin)")} as at, run, step, key, token from public.effect`,
  );
  return rows.map((row) => ({ by: "effect", process: "", database, ...row }));
}

/** A run that came to be, or lives again. */
export interface Born {
  readonly run: RunId;
  readonly input: unknown;
  readonly parent: RunId | null;
  /** Of the run at its root. */
  readonly key: string | null;
}

/** Transactions that commit late are found this far back. */
const lookBack = 300;

/** Looks for runs that came to be or live again, and finds each once. */
export function createBornReader(pool: pg.Pool): () => Promise<readonly Born[]> {
  const seen = new Set<string>();
  let last = 0;
  return async () => {
    const { rows } = await pool.query<{ n: string; run: RunId }>(
      "select n, run from chaos.born where n > $1 order by n",
      [last - lookBack],
    );
    const fresh = rows.filter(({ n }) => !seen.has(n));
    if (fresh.length === 0) return [];
    const { rows: born } = await pool.query<Born>(
      `select r.id as run, r.input, r.parent_id as parent, o.key
         from pawl.run r join pawl.run o on o.id = coalesce(r.root_id, r.id)
        where r.id = any ($1)`,
      [fresh.map(({ run }) => run)],
    );
    for (const { n } of fresh) seen.add(n);
    last = Math.max(last, ...fresh.map(({ n }) => Number(n)));
    return born;
  };
}
