import type { Report } from "../hist/verdict.ts";
import type { Ground } from "./ground.ts";

const endKinds = "('completed', 'failed', 'cancelled', 'timed_out', 'expired', 'continued')";

/** Each finds what must not be once everything has ended. */
const rules: readonly (readonly [invariant: string, says: string, sql: string])[] = [
  [
    "I17",
    "a run has not ended",
    "select id, workflow, status from pawl.runs where status not in ('completed', 'failed')",
  ],
  [
    "I23",
    "an ended run is still in a room",
    `select run_id from pawl.ready union all select unnest(run_ids) from pawl.pack union all select run_id from pawl.lease union all select run_id from pawl.parked`,
  ],
  [
    "I4",
    "a history has gaps",
    "select run_id from pawl.event group by run_id having min(seq) <> 1 or max(seq) <> count(*)",
  ],
  [
    "I7",
    "a history does not end with its one terminal event",
    `select r.id, r.workflow from pawl.run r left join pawl.event e on e.run_id = r.id group by r.id, r.workflow
     having count(*) filter (where e.kind in ${endKinds}) <> 1
         or max(e.seq) filter (where e.kind in ${endKinds}) <> max(e.seq)`,
  ],
  [
    "I3",
    "a step's result is recorded twice",
    `select run_id, name from pawl.event where kind = 'step_completed' group by 1, 2 having count(*) > 1`,
  ],
  [
    "I3",
    "a step's result is recorded though nobody called it",
    `select e.run_id, e.name from pawl.event e
      where e.kind = 'step_completed'
        and not exists (select 1 from public.ledger l where l.run_id = e.run_id and l.step = e.name)
        and not exists (select 1 from public.purchase p where p.run_id = e.run_id and p.step = e.name)`,
  ],
  [
    "I3",
    "a step began after its result was recorded",
    `select l.run_id, l.step, l.pid, l.called_at, l.began_at, e.at
       from public.ledger l
       join pawl.event e on e.run_id = l.run_id and e.name = l.step and e.kind = 'step_completed'
      where l.began_at > e.at and l.called_at > e.at`,
  ],
  [
    "I2",
    "what a transaction bought is not there exactly once",
    `select coalesce(e.run_id, p.run_id) as run_id, coalesce(e.name, p.step) as step, p.times
       from (select run_id, name from pawl.event where kind = 'step_completed' and name ~ '^(buy|charge)') e
       full join (select run_id, step, count(*) as times from public.purchase group by 1, 2) p
         on p.run_id = e.run_id and p.step = e.name
      where e.run_id is null or p.times is distinct from 1`,
  ],
];

/** Looks at everything that is in the database, once it has come to rest. */
export async function checkGround(ground: Ground, report: Report, failing = "'poison'"): Promise<void> {
  for (const [invariant, says, sql] of rules) {
    const { rows } = await ground.pool.query(sql);
    if (rows.length > 0) report(invariant, `${says} (${rows.length} times)`, ...rows.slice(0, 5));
  }
  const failed = `select id, workflow, error_message from pawl.runs where status = 'failed' and workflow not in (${failing})`;
  const { rows } = await ground.pool.query(failed);
  if (rows.length > 0) report("I1", `a run has failed (${rows.length} times)`, ...rows.slice(0, 5));
}

/** What callers were told is started is there. */
export async function checkAcknowledged(
  ground: Ground,
  report: Report,
  started: readonly string[],
): Promise<void> {
  const { rows } = await ground.pool.query<{ id: string }>(
    `select given.id from unnest($1::uuid[]) as given (id)
      where not exists (select 1 from pawl.run r where r.id = given.id)`,
    [[...started]],
  );
  if (rows.length > 0)
    report("I1", `a start was acknowledged and is gone (${rows.length})`, ...rows.slice(0, 5));
}
