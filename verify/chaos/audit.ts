import type pg from "pg";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { EffectEntry } from "../hist/record.ts";

/**
 * One change of a row, as a trigger of the private database saw it, at a time that gives all of them one order.
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
    n bigint generated always as identity primary key, at timestamptz not null, tx xid8 not null, what text not null,
    op text not null, run uuid, worker uuid, epoch integer, detail json
  );
  create table chaos.born (n bigint generated always as identity primary key, run uuid not null);
  create table chaos.effect (
    at timestamptz not null default clock_timestamp(), run uuid not null, step text not null, key text not null, token text not null
  );
  grant usage on schema chaos to app;

  create function chaos.effect_v1(p_run uuid, p_step text, p_key text, p_token text) returns void
  language sql security definer as
    $$ insert into chaos.effect (run, step, key, token) values (p_run, p_step, p_key, p_token) $$;

  create function chaos.note(p_what text, p_run uuid, p_worker uuid, p_epoch integer, p_detail json) returns void
  language sql security definer as $$
    insert into chaos.log (at, tx, what, op, run, worker, epoch, detail)
    values (clock_timestamp(), pg_current_xact_id(), p_what,
            coalesce(substring(current_query() from '\\.(\\w+)_v\\d+\\('), 'other'), p_run, p_worker, p_epoch, p_detail)
  $$;
  ${triggerSql(
    "run",
    "insert or update",
    `if tg_op = 'INSERT' then
       ${note("created", "new.id", "null", "null", "json_build_object('key', new.key, 'parent', new.parent_id, 'first', new.first_id)")}
       insert into chaos.born (run) values (new.id);
     elsif old.status is null and new.status is not null then
       ${note("ended", "new.id", "null", "new.epoch", "json_build_object('status', new.status, 'next', new.continued_as)")}
     elsif old.status is not null and new.status is null then
       ${note("revived", "new.id", "null", "null", "null")}
       insert into chaos.born (run) values (new.id);
     elsif old.status is distinct from new.status or old.output::text is distinct from new.output::text
        or old.error::text is distinct from new.error::text then
       ${note("spoiled", "new.id", "null", "null", "json_build_object('table', 'run', 'before', old.status, 'after', new.status)")}
     end if;`,
  )}
  ${triggerSql(
    "lease",
    "insert or delete or update of epoch, worker_id",
    `if tg_op = 'INSERT' then
       ${note("claimed", "new.run_id", "new.worker_id", "new.epoch", "json_build_object('failures', new.failures)")}
     elsif tg_op = 'DELETE' then
       ${note("left", "old.run_id", "old.worker_id", "old.epoch", "null")}
     else
       ${note("spoiled", "new.run_id", "new.worker_id", "new.epoch", "json_build_object('table', 'lease', 'before', old.epoch)")}
     end if;`,
  )}
  ${triggerSql(
    "event",
    "insert or update or delete",
    `if tg_op = 'INSERT' then
       perform chaos.note('event', new.run_id, l.worker_id, l.epoch, json_build_object('seq', new.seq, 'kind', new.kind))
          from (select 1) one left join pawl.lease l on l.run_id = new.run_id;
     else
       ${note("spoiled", "old.run_id", "null", "null", "json_build_object('table', 'event', 'seq', old.seq, 'op', tg_op)")}
     end if;`,
  )}
  ${triggerSql(
    "inbox",
    "insert",
    note(
      "told",
      "new.run_id",
      "null",
      "null",
      "json_build_object('id', new.id, 'topic', new.topic, 'key', new.idempotency_key)",
    ),
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

/** Everything that was written down, in the order of its time. */
export async function readAudit(
  pool: pg.Pool,
): Promise<{ readonly lines: readonly AuditLine[]; readonly effects: readonly EffectEntry[] }> {
  const { rows: lines } = await pool.query<AuditLine>(
    `select n::float8 as n, ${ms("at")} as at, tx::text, what, op, run, worker, epoch, detail from chaos.log order by at, n`,
  );
  const { rows: effects } = await pool.query<EffectEntry>(
    `select 'effect' as by, 'own' as database, '' as process, ${ms("at")} as at, run, step, key, token from chaos.effect`,
  );
  return { lines, effects };
}

/** Runs that came to be or live again since, with what they do; those that commit late are found by looking back. */
export async function readBorn(
  pool: pg.Pool,
  after: number,
): Promise<
  readonly {
    readonly n: number;
    readonly run: RunId;
    readonly input: unknown;
    readonly key: string | null;
    readonly parent: RunId | null;
    readonly root: RunId;
  }[]
> {
  const { rows } = await pool.query(
    `select b.n::float8 as n, b.run, r.input, r.parent_id as parent, coalesce(r.root_id, r.id) as root, o.key
       from chaos.born b join pawl.run r on r.id = b.run join pawl.run o on o.id = coalesce(r.root_id, r.id)
      where b.n > $1 order by b.n`,
    [after],
  );
  return rows;
}
