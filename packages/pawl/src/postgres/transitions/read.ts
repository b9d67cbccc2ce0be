import type { EventKind, RunEvent } from "../../core/event.ts";
import type { RunId } from "../../core/ids.ts";
import type { RetryPolicy } from "../../core/retry.ts";
import {
  endStatuses,
  liveStatuses,
  type EndStatus,
  type ParkReason,
  type RunStatus,
} from "../../core/run-status.ts";
import type {
  AttemptRecord,
  Backlog,
  ChildRecord,
  FoundEnd,
  PatchUse,
  RunCount,
  RunFilter,
  RunPage,
  RunRecord,
} from "../../store/run-record.ts";
import { column, payloadOf } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

export const readClock = transition(
  "read_clock",
  "select floor(extract(epoch from {clock}) * 1000)::float8 as now_ms",
);

/** Since the server started: its own clock tells, whatever clock the store goes by. */
export const readUptime = transition(
  "read_uptime",
  "select floor(extract(epoch from clock_timestamp() - pg_postmaster_start_time()) * 1000)::float8 as up_ms",
);

/** See migrations/0008_read.sql, as for all below. */
export const loadHistory = transition(
  "load_history",
  `select seq, kind, name, attempt, data, notes, at_ms, began_ms, due_ms, worker_id, format
     from {schema}.load_history_v1($1, $2, $3)`,
);

export const loadShortHistories = transition(
  "load_short_histories",
  `select place, seq, kind, name, attempt, data, notes, at_ms, began_ms, due_ms, worker_id, format
     from {schema}.load_short_histories_v1($1, $2, $3)`,
);

export const readEnds = transition(
  "read_ends",
  `select id, status, output, output_notes, error, error_notes, chain_end
     from {schema}.read_ends_v1($1, $2)`,
);

const msColumn = (column: string): string =>
  `floor(extract(epoch from ${column}_at) * 1000)::float8 as ${column}_ms`;

const recordColumns = `id, workflow, version, queue, priority, status, key, tags, parent_id, root_id, depth, forked_from, first_id,
          continued_as, epoch, attempt, worker_id, park_reason, wants, retry::text as retry,
          ${["due", "created", "start", "expires", "deadline", "ended"].map(msColumn).join(", ")},
          input::text as input, input_notes::text as input_notes, output::text as output,
          output_notes::text as output_notes, error::text as error, error_notes::text as error_notes`;

export const readRun = transition(
  "read_run",
  `select ${recordColumns}
     from {schema}.read_run_v1($1, $2)`,
);

export const listRuns = transition(
  "list_runs",
  `select next_id, ${recordColumns}
     from (select next_id, (run).*
             from {schema}.list_runs_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)) page`,
);

/** See migrations/0016_nodes.sql. */
export const readChildren = transition(
  "read_children",
  `select id, request, status, epoch, ${["created", "ended"].map(msColumn).join(", ")}, error::text as error,
          error_notes::text as error_notes
     from {schema}.read_children_v1($1, $2, $3, $4)`,
);

export const findKey = transition("find_key", "select {schema}.find_key_v1($1, $2) as id");

export const countRuns = transition(
  "count_runs",
  "select status, n::float8 as count, is_exact from {schema}.count_runs_v1($1, $2)",
);

export const readBacklog = transition(
  "read_backlog",
  `select queue, workflow, version, n::float8 as count, is_exact, oldest_ms
     from {schema}.backlog_v1($1, $2)`,
);

/** See migrations/0011_continue.sql. */
export const readPatches = transition(
  "read_patches",
  "select patch, since_ms, runs, older_runs, newer_runs from {schema}.read_patches_v1($1, $2, $3)",
);

export const readAttempts = transition(
  "read_attempts",
  `select seq, attempt, outcome, will_retry, ${["began", "ended"].map(msColumn).join(", ")}, worker_id, host, pid,
          data::text as data, notes::text as notes
     from {schema}.read_attempts_v1($1, $2)`,
);

export interface ChildRow extends Row {
  readonly id: string;
  readonly request: string;
  readonly status: RunStatus;
  readonly epoch: number;
  readonly created_ms: number;
  readonly ended_ms: number | null;
  readonly error: string | null;
  readonly error_notes: string | null;
}

export function decodeChild(row: ChildRow): ChildRecord {
  const { id, request, status, epoch, created_ms: createdAt, ended_ms: endedAt } = row;
  return { id, request, status, epoch, createdAt, endedAt, error: payloadOf(row.error, row.error_notes) };
}

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
  readonly worker_id: string | null;
  readonly format: number | null;
}

/** The last row where there is more: no fact. */
interface MoreRow extends Row {
  readonly seq: null;
}

export type HistoryRow = EventRow | MoreRow;

export interface PatchRow extends Row {
  readonly patch: string;
  readonly since_ms: number;
  readonly runs: number;
  readonly older_runs: number;
  readonly newer_runs: number;
}

export interface EndRow extends Row {
  readonly id: string;
  readonly status: EndStatus | null;
  readonly output: string | null;
  readonly output_notes: string | null;
  readonly error: string | null;
  readonly error_notes: string | null;
  readonly chain_end: string | null;
}

export interface RunRow extends Row {
  readonly id: string;
  readonly workflow: string;
  readonly version: number;
  readonly queue: string;
  readonly priority: number;
  readonly status: RunStatus;
  readonly key: string | null;
  readonly tags: readonly string[] | null;
  readonly parent_id: string | null;
  readonly root_id: string;
  readonly depth: number;
  readonly forked_from: string | null;
  readonly retry: string | null;
  readonly first_id: string;
  readonly continued_as: string | null;
  readonly epoch: number;
  readonly attempt: number;
  readonly worker_id: string | null;
  readonly park_reason: ParkReason | null;
  readonly wants: readonly string[] | null;
  readonly due_ms: number | null;
  readonly created_ms: number;
  readonly start_ms: number | null;
  readonly expires_ms: number | null;
  readonly deadline_ms: number | null;
  readonly ended_ms: number | null;
  readonly input: string | null;
  readonly input_notes: string | null;
  readonly output: string | null;
  readonly output_notes: string | null;
  readonly error: string | null;
  readonly error_notes: string | null;
}

/** A page's row: of a run, or of none where the page is empty but not the last. */
export type ListedRow = { readonly next_id: string | null } & (RunRow | (Row & { readonly id: null }));

export interface CountRow extends Row {
  readonly status: RunCount["status"];
  readonly count: number;
  readonly is_exact: boolean;
}

export interface BacklogRow extends Row {
  readonly queue: string;
  readonly workflow: string;
  readonly version: number;
  readonly count: number;
  readonly is_exact: boolean;
  readonly oldest_ms: number;
}

export interface AttemptRow extends Row {
  readonly seq: number;
  readonly attempt: number;
  readonly outcome: AttemptRecord["outcome"];
  readonly will_retry: boolean;
  readonly began_ms: number | null;
  readonly ended_ms: number;
  readonly worker_id: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly data: string | null;
  readonly notes: string | null;
}

export function listValues(shard: number, filter: RunFilter): readonly unknown[] {
  const { before, after, status, workflow, queue, tags, errorCode, limit, look } = filter;
  const filters = [before, after, status, workflow, queue, tags, errorCode].map((value) => value ?? null);
  return [shard, ...filters, limit, look];
}

export function decodePage(rows: readonly ListedRow[]): RunPage {
  const runs = rows.flatMap((row) => (row.id === null ? [] : decodeRunRecord(row as RunRow)));
  return { runs, next: rows[0]?.next_id ?? null };
}

/** One entry a status, whether or not there is anything to count. */
export function decodeCounts(rows: readonly CountRow[]): readonly RunCount[] {
  const byStatus = new Map(rows.map((row) => [row.status, row]));
  return [...liveStatuses, ...endStatuses].map((status) => {
    const row = byStatus.get(status);
    return { status, count: row?.count ?? 0, isExact: row?.is_exact ?? true };
  });
}

export function decodeBacklog(row: BacklogRow): Backlog {
  const { queue, workflow, version, count } = row;
  return { queue, workflow, version, count, isExact: row.is_exact, oldestAt: row.oldest_ms };
}

export function decodeAttempt(row: AttemptRow): AttemptRecord {
  return {
    seq: row.seq,
    attempt: row.attempt,
    outcome: row.outcome,
    willRetry: row.will_retry,
    beganAt: row.began_ms,
    endedAt: row.ended_ms,
    error: row.outcome === "failed" ? payloadOf(row.data, row.notes) : null,
    workerId: row.worker_id,
    host: row.host,
    pid: row.pid,
  };
}

/** A history from behind this fact on. */
export interface AskedHistory {
  readonly runId: RunId;
  readonly afterSeq: number;
  /** About how many facts it has. */
  readonly length: number;
}

export interface LoadedHistory {
  readonly events: readonly RunEvent[];
  /** Whether this is perhaps not all of it. */
  readonly hasMore: boolean;
}

export function shortHistoriesValues(shard: number, asked: readonly AskedHistory[]): readonly unknown[] {
  return [shard, column(asked, ({ runId }) => runId), column(asked, ({ afterSeq }) => afterSeq)];
}

export function decodeHistory(rows: readonly HistoryRow[]): LoadedHistory {
  const events: RunEvent[] = [];
  for (const row of rows) if (row.seq !== null) events.push(decodeEvent(row));
  return { events, hasMore: events.length < rows.length };
}

export function decodeShortHistories(
  asked: readonly AskedHistory[],
  rows: readonly (HistoryRow & { readonly place: number })[],
): readonly LoadedHistory[] {
  const byRun: RunEvent[][] = asked.map(() => []);
  let firstCutOff = asked.length;
  for (const row of rows) {
    if (row.seq === null) firstCutOff = row.place - 1;
    else byRun[row.place - 1]?.push(decodeEvent(row));
  }
  return byRun.map((events, index) => ({ events, hasMore: index >= firstCutOff }));
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
    workerId: row.worker_id,
    data: payloadOf(row.data, row.notes),
    ...(row.format !== null && { format: row.format }),
  };
}

export function decodePatch(row: PatchRow): PatchUse {
  const { patch, since_ms: since, runs, older_runs: olderRuns, newer_runs: newerRuns } = row;
  return { patch, since, runs, olderRuns, newerRuns };
}

export function decodeEnd(row: EndRow): FoundEnd | null {
  if (row.status === null) return null;
  return {
    status: row.status,
    output: payloadOf(row.output, row.output_notes),
    error: payloadOf(row.error, row.error_notes),
    ...(row.chain_end !== null && { chainEnd: row.chain_end }),
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
    tags: row.tags ?? [],
    parentId: row.parent_id,
    rootId: row.root_id,
    depth: row.depth,
    forkedFrom: row.forked_from,
    retry: row.retry === null ? null : (JSON.parse(row.retry) as RetryPolicy),
    firstId: row.first_id,
    continuedAs: row.continued_as,
    epoch: row.epoch,
    attempt: row.attempt,
    workerId: row.worker_id,
    parkReason: row.park_reason,
    dueAt: row.due_ms,
    wants: row.wants,
    createdAt: row.created_ms,
    startAt: row.start_ms,
    expiresAt: row.expires_ms,
    deadlineAt: row.deadline_ms,
    endedAt: row.ended_ms,
    input: payloadOf(row.input, row.input_notes),
    output: payloadOf(row.output, row.output_notes),
    error: payloadOf(row.error, row.error_notes),
  };
}
