import type { EventKind, RunEvent } from "../../core/event.ts";
import type { EndStatus, ParkReason, RunStatus } from "../../core/run-status.ts";
import type { RunEnd, RunRecord } from "../../store/run-record.ts";
import { payloadOf } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

export const readClock = transition("read_clock", "select floor(extract(epoch from {clock}) * 1000)::float8 as now_ms");

/** A run's history, unfenced. Index: event_pkey. */
export const loadHistory = transition(
  "load_history",
  `select seq, kind, name, attempt, data::text as data, notes::text as notes,
          floor(extract(epoch from at) * 1000)::float8 as at_ms,
          floor(extract(epoch from began_at) * 1000)::float8 as began_ms,
          floor(extract(epoch from due_at) * 1000)::float8 as due_ms
     from {schema}.event
    where shard = $1 and run_id = $2 and seq > $3
    order by seq`,
);

/** How runs ended, for those who wait. Index: run_pkey. */
export const readEnds = transition(
  "read_ends",
  `select id, status, output::text as output, output_notes::text as output_notes,
          error::text as error, error_notes::text as error_notes
     from {schema}.run
    where shard = $1 and id = any ($2::uuid[])`,
);

const recordColumns = `id, workflow, version, queue, priority, status, key, parent_id, root_id, depth, epoch, attempt,
          worker_id, park_reason, wants,
          floor(extract(epoch from due_at) * 1000)::float8 as due_ms,
          floor(extract(epoch from created_at) * 1000)::float8 as created_ms,
          floor(extract(epoch from ended_at) * 1000)::float8 as ended_ms,
          input::text as input, input_notes::text as input_notes, output::text as output,
          output_notes::text as output_notes, error::text as error, error_notes::text as error_notes`;

/** One run as people see it. Index: run_pkey and the rooms' primary keys. */
export const readRun = transition(
  "read_run",
  `select ${recordColumns}
     from {schema}.runs
    where shard = $1 and id = $2`,
);

/** Runs, newest first. Index: run_pkey, backwards from the page's mark; filters other than that are applied on the way. */
export const listRuns = transition(
  "list_runs",
  `select ${recordColumns}
     from {schema}.runs
    where shard = $1
      and id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      and ($3::text is null or status = $3)
      and ($4::text is null or workflow = $4)
      and ($5::text is null or queue = $5)
    order by shard desc, id desc
    limit $6`,
);

export interface EventRow extends Row {
  readonly seq: number;
  readonly kind: EventKind;
  readonly name: string | null;
  readonly attempt: number | null;
  readonly data: string | null;
  readonly notes: string | null;
  readonly at_ms: number;
  readonly began_ms: number | null;
  readonly due_ms: number | null;
}

export interface EndRow extends Row {
  readonly id: string;
  readonly status: EndStatus | null;
  readonly output: string | null;
  readonly output_notes: string | null;
  readonly error: string | null;
  readonly error_notes: string | null;
}

export interface RunRow extends Row {
  readonly id: string;
  readonly workflow: string;
  readonly version: number;
  readonly queue: string;
  readonly priority: number;
  readonly status: RunStatus;
  readonly key: string | null;
  readonly parent_id: string | null;
  readonly root_id: string;
  readonly depth: number;
  readonly epoch: number | null;
  readonly attempt: number | null;
  readonly worker_id: string | null;
  readonly park_reason: ParkReason | null;
  readonly wants: readonly string[] | null;
  readonly due_ms: number | null;
  readonly created_ms: number;
  readonly ended_ms: number | null;
  readonly input: string | null;
  readonly input_notes: string | null;
  readonly output: string | null;
  readonly output_notes: string | null;
  readonly error: string | null;
  readonly error_notes: string | null;
}

export function decodeEvent(row: EventRow): RunEvent {
  return {
    seq: row.seq,
    kind: row.kind,
    at: row.at_ms,
    name: row.name,
    attempt: row.attempt,
    beganAt: row.began_ms,
    dueAt: row.due_ms,
    data: payloadOf(row.data, row.notes),
  };
}

export function decodeEnd(row: EndRow): RunEnd | null {
  if (row.status === null) return null;
  return {
    status: row.status,
    output: payloadOf(row.output, row.output_notes),
    error: payloadOf(row.error, row.error_notes),
  };
}

export function decodeRunRecord(row: RunRow): RunRecord {
  return {
    id: row.id,
    workflow: row.workflow,
    version: row.version,
    queue: row.queue,
    priority: row.priority,
    status: row.status,
    key: row.key,
    parentId: row.parent_id,
    rootId: row.root_id,
    depth: row.depth,
    epoch: row.epoch,
    attempt: row.attempt,
    workerId: row.worker_id,
    parkReason: row.park_reason,
    dueAt: row.due_ms,
    wants: row.wants,
    createdAt: row.created_ms,
    endedAt: row.ended_ms,
    input: payloadOf(row.input, row.input_notes),
    output: payloadOf(row.output, row.output_notes),
    error: payloadOf(row.error, row.error_notes),
  };
}
