import type { RunId } from "../../core/ids.ts";
import type { Rescheduling } from "../../store/run-record.ts";
import type { RedriveAnswer, RedriveTerms } from "../../store/store.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0009_control.sql, as for all below. */
export const terminateRun = transition(
  "terminate_run",
  "select {schema}.terminate_run_v1($1, $2, $3, $4) as outcome",
);

export const redriveRuns = transition(
  "redrive_runs",
  "select run_id, outcome from {schema}.redrive_runs_v1($1, $2, $3, $4)",
);

export const rescheduleRun = transition(
  "reschedule_run",
  "select {schema}.reschedule_run_v1($1, $2, $3, $4, $5, $6) as outcome",
);

export interface RedrivenRow extends Row {
  readonly run_id: string;
  readonly outcome: RedriveAnswer;
}

export function redriveValues(
  shard: number,
  runIds: readonly RunId[],
  { from, endedAt }: RedriveTerms = {},
): readonly unknown[] {
  const ends = endedAt === undefined ? null : runIds.map((runId) => endedAt.get(runId) ?? null);
  return [shard, runIds, ends, from === "start"];
}

export function decodeRedriven(rows: readonly RedrivenRow[]): ReadonlyMap<RunId, RedriveAnswer> {
  return new Map(rows.map((row) => [row.run_id, row.outcome]));
}

export function rescheduleValues(
  shard: number,
  { runId, priority, startAt }: Rescheduling,
): readonly unknown[] {
  const data = JSON.stringify({ priority, startAt });
  return [shard, runId, priority ?? null, startAt !== undefined, startAt ?? null, data];
}
