import type { RecordAnswer, Recording } from "../../store/lease.ts";
import type { Row } from "../database.ts";
import { transition, unanswered } from "../transition.ts";
import {
  childrenValue,
  eventValues,
  inOrder,
  knownValues,
  leaseValues,
  unknownServer,
  writtenValue,
} from "./holder-calls.ts";

/** See migrations/0004_hold.sql. */
export const recordEvents = transition(
  "record_events",
  `select run_id, told, seq, due_ms, now_ms
     from {schema}.record_events_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
);

/** See migrations/0017_one_run.sql. */
export const recordStep = transition(
  "record_step",
  "select now_ms, told from {schema}.record_step_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
);

interface RecordedRow extends Row {
  /** Null in the one row that tells the time. */
  readonly run_id: string | null;
  /** Null for a run whose lease is gone. */
  readonly told: boolean | null;
  readonly seq: number | null;
  readonly due_ms: number | null;
  readonly now_ms: number | null;
}

export function recordValues(shard: number, given: readonly Recording[]): readonly unknown[] {
  const recordings = inOrder(given);
  return [
    ...leaseValues(
      shard,
      recordings.map(({ lease }) => lease),
    ),
    ...knownValues(recordings),
    childrenValue(recordings),
    writtenValue(recordings),
    ...eventValues(recordings),
  ];
}

/** Nothing but that one step has completed. */
export function isOneStep({ events, children, written }: Recording): boolean {
  const [event] = events;
  return (
    events.length === 1 &&
    children.length === 0 &&
    written === undefined &&
    event?.kind === "step_completed" &&
    event.takes === undefined &&
    event.delayMs === undefined &&
    event.dueAt === undefined
  );
}

/** Of a recording of one step. */
export function recordStepValues(shard: number, { lease, events }: Recording): readonly unknown[] {
  const { runId, workerId, epoch, server = unknownServer } = lease;
  const { seq, name, attempt = null, beganAt = null, data } = events[0] ?? {};
  return [
    shard,
    workerId,
    runId,
    epoch,
    server,
    seq,
    name,
    attempt,
    beganAt,
    data?.json ?? null,
    data?.notes ?? null,
  ];
}

interface RecordedStepRow extends Row {
  readonly now_ms: number;
  readonly told: boolean;
}

export function decodeRecordedStep({ now_ms, told }: RecordedStepRow): RecordAnswer {
  return { told, now: now_ms, dueAt: noTimers };
}

const noTimers: ReadonlyMap<number, number> = new Map();

/** Null for a run whose lease is gone. Most have nothing special about them, and share their answer. */
export function decodeRecorded(
  recordings: readonly Recording[],
  rows: readonly RecordedRow[],
): readonly (RecordAnswer | null)[] {
  const clock = rows.find(({ run_id }) => run_id === null);
  if (clock === undefined) throw unanswered(recordEvents);
  const common: RecordAnswer = { told: false, now: clock.now_ms ?? 0, dueAt: noTimers };
  if (rows.length === 1) return recordings.map(() => common);

  const lost = new Set<string>();
  const told = new Set<string>();
  const timers = new Map<string, Map<number, number>>();
  for (const { run_id, told: isTold, seq, due_ms } of rows) {
    if (run_id === null) continue;
    if (seq === null) (isTold === true ? told : lost).add(run_id);
    else if (due_ms !== null)
      timers.set(run_id, (timers.get(run_id) ?? new Map<number, number>()).set(seq, due_ms));
  }
  return recordings.map(({ lease: { runId } }) =>
    lost.has(runId) ? null : { told: told.has(runId), now: common.now, dueAt: timers.get(runId) ?? noTimers },
  );
}
