import { expect } from "vitest";
import { undoneAs } from "./everything.ts";
import type { Scene } from "./scene.ts";

const endKinds = "('completed', 'failed', 'cancelled', 'timed_out', 'expired')";

/** Each finds what must not be, once every run has completed: the runs (and names) that break it. */
const rules: Readonly<Record<string, string>> = {
  "a run has not ended as it should": `
    select id, workflow, status
      from {schema}.runs
     where status is distinct from coalesce('${JSON.stringify(undoneAs)}'::jsonb ->> workflow, 'completed')`,
  "an ended run is still in a room": `
    select run_id from {schema}.ready union all
    select unnest(run_ids) from {schema}.pack union all
    select run_id from {schema}.lease union all
    select run_id from {schema}.parked`,
  "a history has gaps": `
    select run_id from {schema}.event group by run_id having min(seq) <> 1 or max(seq) <> count(*)`,
  "a history does not end with its one terminal event": `
    select r.id
      from {schema}.run r
      join {schema}.event e on e.run_id = r.id
     group by r.id
    having count(*) filter (where e.kind in ${endKinds}) <> 1
        or max(e.seq) filter (where e.kind in ${endKinds}) <> max(e.seq)`,
  "a fact is recorded twice": `
    select run_id, kind, name
      from {schema}.event
     where name is not null
       and kind not in ('step_intended', 'step_progressed', 'step_retried', 'undo_retried')
     group by run_id, kind, name
    having count(*) > 1`,
  "a step's result is recorded though nobody called it": `
    select e.run_id, e.name
      from {schema}.event e
     where e.kind = 'step_completed'
       and not exists (select 1 from public.ledger l where l.run_id = e.run_id and l.step = e.name)`,
  // A process that is stopped in a step has begun it, even if its line in the ledger comes when it goes on.
  "a step began after its result was recorded": `
    select l.run_id, l.step, l.pid, l.called_at, l.began_at, e.at
      from public.ledger l
      join {schema}.event e
        on e.run_id = l.run_id
       and (   (e.kind in ('step_completed', 'step_failed') and l.step = e.name)
            or (e.kind in ('undo_completed', 'undo_failed') and l.step = 'undo ' || e.name))
     where l.began_at > e.at and l.called_at > e.at`,
  "what a transaction bought is not there exactly once": `
    select coalesce(e.run_id, p.run_id), coalesce(e.name, p.step), p.times
      from (select run_id, name from {schema}.event where kind = 'step_completed' and name like 'buy%') e
      full join (select run_id, step, count(*) as times from public.purchase group by 1, 2) p
        on p.run_id = e.run_id and p.step = e.name
     where e.run_id is null or p.times is distinct from 1`,
  "a stream has gaps": `
    select run_id, name from {schema}.stream group by 1, 2 having min(position) <> 1 or max(position) <> count(*)`,
  "what should be undone is not, or in another order": `
    select r.id, r.workflow, u.names
      from {schema}.run r
      left join lateral (select array_agg(e.name order by e.seq) as names
                           from {schema}.event e where e.run_id = r.id and e.kind = 'undo_completed') u on true
     where (r.workflow = 'everything-saga' and u.names is distinct from array['charge', 'reserve'])
        or (r.workflow = 'everything-reserve' and u.names is distinct from array['reserve'])`,
  // The facts left out number the step's attempt, not the run's.
  "an execution wrote to a run that was taken from it": `
    select e.run_id, e.seq, e.kind, e.name, e.attempt
      from {schema}.event e
      join {schema}.event crash on crash.run_id = e.run_id and crash.kind = 'attempt_crashed'
     where e.seq > crash.seq
       and e.attempt <= crash.attempt
       and e.kind not in ('step_intended', 'step_progressed', 'step_retried', 'undo_retried')`,
  "a message was not taken, or shares its event with another": `
    select run_id, taken_seq
      from {schema}.inbox
     group by run_id, taken_seq
    having taken_seq is null or (count(*) > 1 and taken_seq > 0)`,
  "a child is not the one its parent knows": `
    select c.id
      from {schema}.run c
     where c.parent_id is not null
       and not exists (select 1 from {schema}.event e
                        where e.run_id = c.parent_id and e.kind = 'child_started' and e.data ->> 'id' = c.id::text)`,
};

/** The rules that do not hold, each with a few of the runs that break it. */
export async function findBroken({
  pool,
  schema,
}: Scene): Promise<Readonly<Record<string, readonly unknown[]>>> {
  const broken: Record<string, unknown[]> = {};
  for (const [rule, sql] of Object.entries(rules)) {
    const { rows } = await pool.query(sql.replaceAll("{schema}", schema));
    if (rows.length > 0) broken[rule] = rows.slice(0, 10);
  }
  return broken;
}

/**
 * All runs of the scene have completed, each fact is there once, and nothing is left over. The sweep never had to wake a
 * run whose message was there, no process ended by itself, and nothing happened that the engine itself calls a bug.
 */
export async function expectOrder(scene: Scene): Promise<void> {
  expect(await findBroken(scene)).toEqual({});
  const { crews } = scene;
  const logs = crews.flatMap((crew) => crew.logs);
  const bugs = logs.filter(
    ({ level, message, fields }) =>
      (level === "error" && !String(fields["error"]).includes("no money")) ||
      message.includes("Please report"),
  );
  expect({ bugs, crashed: crews.flatMap((crew) => crew.crashed) }).toEqual({ bugs: [], crashed: [] });
}
