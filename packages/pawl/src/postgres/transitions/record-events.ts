import type { RecordAnswer, Recording } from "../../store/lease.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";
import { childrenValue, eventValues, leaseValues, writtenValue } from "./holder-calls.ts";

/** See migrations/0004_hold.sql. */
export const recordEvents = transition(
  "record_events",
  `select run_id, told, seq, due_ms, now_ms
     from {schema}.record_events_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
);

interface RecordedRow extends Row {
  readonly run_id: string;
  readonly told: boolean | null;
  readonly seq: number | null;
  readonly due_ms: number | null;
  readonly now_ms: number;
}

export function recordValues(shard: number, recordings: readonly Recording[]): readonly unknown[] {
  return [
    ...leaseValues(
      shard,
      recordings.map(({ lease }) => lease),
    ),
    childrenValue(recordings),
    writtenValue(recordings),
    ...eventValues(recordings),
  ];
}

/** Null for a run whose lease is gone. */
export function decodeRecorded(
  recordings: readonly Recording[],
  rows: readonly RecordedRow[],
): readonly (RecordAnswer | null)[] {
  const answers = new Map<string, { told: boolean; now: number; dueAt: Map<number, number> }>();
  for (const row of rows) {
    if (row.seq === null)
      answers.set(row.run_id, { told: row.told === true, now: row.now_ms, dueAt: new Map() });
    else if (row.due_ms !== null) answers.get(row.run_id)?.dueAt.set(row.seq, row.due_ms);
  }
  return recordings.map(({ lease }) => answers.get(lease.runId) ?? null);
}
