import type { CreateAnswer, ForkedEvent, NewRun } from "../../store/run-record.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";
import { runsJson } from "./create-runs.ts";

/** See migrations/0013_fork.sql. */
export const forkRun = transition(
  "fork_run",
  "select outcome, owner_id from {schema}.fork_run_v1($1, $2::json -> 0, $3)",
);

export interface ForkedRow extends Row {
  readonly outcome: CreateAnswer["kind"];
  readonly owner_id: string;
}

export function forkValues(shard: number, run: NewRun, history: readonly ForkedEvent[]): readonly unknown[] {
  const events = history.map(({ seq, at, kind, name, attempt, beganAt, dueAt, data }) => ({
    seq,
    at_ms: at,
    kind,
    name,
    attempt,
    began_ms: beganAt,
    due_ms: dueAt,
    data: data?.json,
    notes: data?.notes,
  }));
  return [shard, runsJson([run]), JSON.stringify(events)];
}

export function decodeForked(run: NewRun, [row]: readonly ForkedRow[]): CreateAnswer {
  return row === undefined ? { kind: "created", id: run.id } : { kind: row.outcome, id: row.owner_id };
}
