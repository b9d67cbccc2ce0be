import type { EventKind, RunEvent } from "../../core/event.ts";
import type { EndStatus, ParkReason, RunStatus } from "../../core/run-status.ts";
import type { RunEnd, RunRecord } from "../../store/run-record.ts";
import { payloadOf } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

export const readClock = transition(
  "read_clock",
  "select floor(extract(epoch from {clock}) * 1000)::float8 as now_ms",
);

/** See migrations/0008_read.sql, as for all below. */
export const loadHistory = transition(
  "load_history",
  `select seq, kind, name, attempt, data, notes, at_ms, began_ms, due_ms
     from {schema}.load_history_v1($1, $2, $3)`,
);

export const readEnds = transition(
  "read_ends",
  `select id, status, output, output_notes, error, error_notes
     from {schema}.read_ends_v1($1, $2)`,
);

const recordColumns = `id, workflow, version, queue, priority, status, key, parent_id, root_id, depth, epoch, attempt,
          worker_id, park_reason, wants,
          floor(extract(epoch from due_at) * 1000)::float8 as due_ms,
          floor(extract(epoch from created_at) * 1000)::float8 as created_ms,
          floor(extract(epoch from ended_at) * 1000)::float8 as ended_ms,
          input::text as input, input_notes::text as input_notes, output::text as output,
          output_notes::text as output_notes, error::text as error, error_notes::text as error_notes`;

export const readRun = transition(
  "read_run",
  `select ${recordColumns}
     from {schema}.read_run_v1($1, $2)`,
);

export const listRuns = transition(
  "list_runs",
  `select ${recordColumns}
     from {schema}.list_runs_v1($1, $2, $3, $4, $5, $6)`,
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
