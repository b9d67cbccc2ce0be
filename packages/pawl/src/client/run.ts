import { decode } from "../core/codec.ts";
import type { EventKind, RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import { reviveError } from "../core/recorded-error.ts";
import type { RunStatus } from "../core/run-status.ts";
import type { RunRecord } from "../store/run-record.ts";

/** A run as it was when it was read. */
export interface Run {
  readonly id: RunId;
  readonly workflow: string;
  readonly version: number;
  readonly queue: string;
  readonly priority: number;
  readonly status: RunStatus;
  readonly key: string | null;
  readonly parentId: RunId | null;
  readonly rootId: RunId;
  /** Number of the execution it is in, from 1; null once it has ended. */
  readonly attempt: number | null;
  /** Who executes it now. */
  readonly workerId: string | null;
  /** When it wakes at the latest, if it waits for a time. */
  readonly dueAt: Date | null;
  /** Which messages wake it, if it waits: `signal:shipped`, `child`, … */
  readonly wants: readonly string[] | null;
  readonly createdAt: Date;
  readonly endedAt: Date | null;
  readonly input: unknown;
  /** `undefined` until it has completed, and where it returned nothing. */
  readonly output: unknown;
  readonly error: Error | null;
}

/** One fact of a run's history. */
export interface HistoryEvent {
  /** Dense from 1. */
  readonly seq: number;
  readonly kind: EventKind;
  readonly at: Date;
  /** The step, timer, wait or child it speaks of; null for facts about the run itself. */
  readonly name: string | null;
  readonly attempt: number | null;
  readonly beganAt: Date | null;
  readonly dueAt: Date | null;
  readonly data: unknown;
}

export function readRun(record: RunRecord): Run {
  const { epoch: _, depth: __, parkReason: ___, ...seen } = record;
  return {
    ...seen,
    dueAt: dateOf(record.dueAt),
    createdAt: new Date(record.createdAt),
    endedAt: dateOf(record.endedAt),
    input: decode(record.input),
    output: decode(record.output),
    error: errorOf(record.error),
  };
}

export function readEvent(event: RunEvent): HistoryEvent {
  return {
    ...event,
    at: new Date(event.at),
    beganAt: dateOf(event.beganAt),
    dueAt: dateOf(event.dueAt),
    data: decode(event.data),
  };
}

export function errorOf(payload: Payload | null): Error | null {
  return payload === null ? null : reviveError(payload);
}

function dateOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
