import type { CreateAnswer, NewRun } from "../../store/run-record.ts";
import { sizeOfPayload } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0002_start_and_claim.sql. */
export const createRuns = transition(
  "create_runs",
  `select run_id, outcome, owner_id
     from {schema}.create_runs_v1($1, $2, $3, $4)`,
);

export interface CreatedRow extends Row {
  readonly run_id: string;
  readonly outcome: CreateAnswer["kind"];
  readonly owner_id: string;
}

/** `isWhole`: all of them or none; otherwise each is a call of its own. */
export function createRunsValues(
  shard: number,
  runs: readonly NewRun[],
  isWhole: boolean,
): readonly unknown[] {
  return [shard, runsJson(runs), runs.some((run) => run.key !== null), isWhole];
}

/** Runs as the functions of the schema read them. */
export function runsJson(runs: readonly NewRun[]): string {
  return JSON.stringify(
    runs.map((run) => ({
      id: run.id,
      workflow: run.workflow,
      version: run.version,
      queue: run.queue,
      priority: run.priority,
      input: run.input?.json,
      notes: run.input?.notes ?? undefined,
      raw: run.isRaw ? true : undefined,
      key: run.key ?? undefined,
      must_be_new: run.mustBeNew ? true : undefined,
      tags: run.tags.length === 0 ? undefined : run.tags,
      retry: run.retry ?? undefined,
      start_ms: run.startAt ?? undefined,
      expires_ms: run.expiresAt ?? undefined,
      deadline_ms: run.deadlineAt ?? undefined,
      parent_id: run.parent?.id,
      parent_request: run.parent?.request,
      detached: run.isDetached ? true : undefined,
      forked_from: run.forkedFrom ?? undefined,
    })),
  );
}

export function decodeCreated(runs: readonly NewRun[], rows: readonly CreatedRow[]): readonly CreateAnswer[] {
  const byId = new Map(rows.map((row) => [row.run_id, row]));
  return runs.map((run) => {
    const row = byId.get(run.id);
    return row === undefined ? { kind: "created", id: run.id } : { kind: row.outcome, id: row.owner_id };
  });
}

export function sizeOfRun(run: NewRun): number {
  return 200 + sizeOfPayload(run.input);
}
