import type pg from "pg";
import { bindSchema, type SchemaName } from "../../src/postgres/schema-name.ts";
import type { StoreSnapshot } from "../../src/store/snapshot.ts";

const ms = (column: string): string => `floor(extract(epoch from ${column}) * 1000)::float8`;

/** JSON text and notes, in the snapshot's form. */
const payload = (json: string, notes: string): string =>
  `case when ${json} is not null then case when ${notes} is null then json_build_object('value', ${json})
        else json_build_object('value', ${json}, 'notes', ${notes}) end end`;

const room = `run_id as "runId", epoch, last_seq as "lastSeq", attempt, failures, crashes, suspicion`;

const queries: Record<keyof StoreSnapshot, string> = {
  runs: `select id, workflow, version, queue, priority, ${payload("input", "input_notes")} as input, key,
                coalesce(raw, false) as "isRaw", coalesce(tags, '{}') as tags, retry, ${ms("start_at")} as "startAt",
                epoch, attempt,
                ${ms("expires_at")} as "expiresAt", ${ms("deadline_at")} as "deadlineAt", parent_id as "parentId",
                parent_request as "parentRequest", coalesce(root_id, id) as "rootId", depth,
                coalesce(detached, false) as "isDetached", forked_from as "forkedFrom",
                coalesce(first_id, id) as "firstId", continued_as as "continuedAs", ${ms("created_at")} as "createdAt",
                status, ${payload("output", "output_notes")} as output, ${payload("error", "error_notes")} as error,
                ${ms("ended_at")} as "endedAt"
           from {schema}.run
           left join (select run_id, status, ended_at, epoch, attempt, output, output_notes, error, error_notes
                        from {schema}.endings) ending on run_id = id
          order by id`,
  ready: `select ${room}, told, ${ms("ready_at")} as "readyAt", ${ms("expires_at")} as "expiresAt"
            from (select run_id, epoch, last_seq, attempt, failures, crashes, suspicion, told, ready_at, expires_at from {schema}.ready
                   union all
                  select unnest(run_ids), 0, 0, 1, 0, 0, 0, false, ready_at, null from {schema}.pack where worker_id is null) ready
           order by run_id`,
  lease: `select ${room}, told, worker_id as "workerId", ${ms("claimed_at")} as "claimedAt", ${ms("began_at")} as "begunAt",
                 crash_limit as "crashLimit"
            from (select run_id, epoch, last_seq, attempt, failures, crashes, suspicion, told, worker_id, claimed_at, began_at, crash_limit
                    from {schema}.lease
                   union all
                  select unnest(run_ids), 1, 0, 1, 0, 0, 0, false, worker_id, claimed_at, began_at, crash_limit
                    from {schema}.pack where worker_id is not null) lease
           order by run_id`,
  parked: `select ${room}, reason, ${ms("due_at")} as "dueAt", array(select w from unnest(wants) w order by w collate "C") as wants,
                  fires
             from {schema}.parked order by run_id`,
  events: `select run_id as "runId", seq, kind, ${ms("at")} as at, name, attempt, ${ms("began_at")} as "beganAt",
                  ${ms("due_at")} as "dueAt", worker_id as "workerId",
                  case when kind <> 'completed' then ${payload("data", "notes")} end as data
             from {schema}.event order by run_id, seq`,
  inbox: `select run_id as "runId", id, topic, name, ${payload("data", "notes")} as data,
                 idempotency_key as "idempotencyKey", ${ms("sent_at")} as "sentAt", sent_to as "sentTo", taken_seq as "takenSeq",
                 answer_seq as "answerSeq"
            from {schema}.inbox order by run_id, id`,
  streams: `select run_id as "runId", name, position, ${ms("at")} as at, step, attempt, is_first as "isFirst",
                   is_closing as "isClosing", ${payload("data", "notes")} as data
              from {schema}.stream order by run_id, name, position`,
  keys: `select key, run_id as "runId" from {schema}.key order by key collate "C"`,
  workers: `select id, lease_ms as "leaseMs", ${ms("heard_at")} as "heardAt", ${ms("ended_at")} as "endedAt",
                   held_at_end as "heldAtEnd"
              from {schema}.worker order by id`,
  stopped: `select run_id as "runId", status, error_code as "errorCode", ${ms("ended_at")} as "endedAt"
              from {schema}.stopped order by run_id`,
  tags: `select tag, run_id as "runId" from {schema}.tag order by tag, run_id`,
};

const members = Object.entries(queries).map(
  ([name, sql]) => `'${name}', (select coalesce(json_agg(rows), '[]') from (${sql}) rows)`,
);
const query = `select json_build_object(${members.join(", ")}) as snapshot`;

/** The whole state of a schema at one moment, in the form that the memory store's snapshot has. */
export async function takeSnapshot(
  database: Pick<pg.ClientBase, "query">,
  schema: SchemaName,
): Promise<StoreSnapshot> {
  const named = { name: `snapshot_${schema.channel}`, text: bindSchema(query, schema, "") };
  const { rows } = await database.query<{ snapshot: StoreSnapshot }>(named);
  return rows[0]!.snapshot;
}
