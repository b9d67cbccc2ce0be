import type { Payload } from "./json.ts";

/** Every fact a run's history can hold. Names are stored: add, never rename. */
const eventKinds = [
  "step_intended",
  "step_completed",
  "step_failed",
  "step_retried",
  "step_progressed",
  "commit_lost",
  "timer_set",
  "timer_fired",
  "signal_received",
  "child_started",
  "child_ended",
  "withdrawn",
  "patched",
  "published",
  "update_received",
  "update_answered",
  "stream_written",
  "cancel_requested",
  "paused",
  "resumed",
  "blocked",
  "attempt_failed",
  "attempt_crashed",
  "input_parsed",
  "rescheduled",
  "undo_began",
  "undo_retried",
  "undo_completed",
  "undo_failed",
  "forked",
  "redriven",
  "continued",
  "completed",
  "failed",
  "cancelled",
  "timed_out",
  "expired",
] as const;
/** What a history tells of: each kind of fact. */
export type EventKind = (typeof eventKinds)[number];

/** What this build writes. A later one that means something else by its facts says so with a higher number. */
const knownFormat = 1;

const knownKinds: ReadonlySet<string> = new Set(eventKinds);

/** The first fact that a later build has written, and this one cannot understand. */
export function findNewerEvent(events: readonly RunEvent[]): RunEvent | null {
  return events.find(({ kind, format = 1 }) => format > knownFormat || !knownKinds.has(kind)) ?? null;
}

/** One fact of one run, as read back. `seq` is dense from 1 in every run. Instants are database time in ms. */
export interface RunEvent {
  readonly seq: number;
  readonly kind: EventKind;
  readonly at: number;
  /** The request this fact answers, as `requestKey` writes it; null for facts about the run itself. */
  readonly name: string | null;
  readonly attempt: number | null;
  readonly beganAt: number | null;
  /** For timers: when it fires. */
  readonly dueAt: number | null;
  /** Who finished the attempt that this fact is about; null for other facts. */
  readonly workerId: string | null;
  readonly data: Payload | null;
  /** What its kind and data mean. Default 1, the first. */
  readonly format?: number;
  /** The start of a child that is begun anew: the place in the order which the next start of it takes. No store keeps this. */
  readonly isVacant?: true;
}
