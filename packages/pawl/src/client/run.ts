import { idOfChild, readChildEnd } from "../core/child-end.ts";
import type { EventKind, RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import {
  placeOfError,
  placeOfEvent,
  placeOfInput,
  placeOfOutput,
  type PayloadPlace,
} from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { RunStatus } from "../core/run-status.ts";
import { readAnswer, readReceived } from "../core/update.ts";
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
  /** As given to `start`, each once. */
  readonly tags: readonly string[];
  readonly parentId: RunId | null;
  readonly rootId: RunId;
  /** The run that it was forked from. */
  readonly forkedFrom: RunId | null;
  /** The first run of the chain it is in: its own id unless it goes on from another. */
  readonly firstId: RunId;
  /** The run that goes on from this one, which has ended by that. */
  readonly continuedAs: RunId | null;
  /** Number of the execution it is in, or was in last, from 1. */
  readonly attempt: number;
  /** Who executes it now. */
  readonly workerId: string | null;
  /** When it wakes at the latest, if it waits for a time. */
  readonly dueAt: Date | null;
  /** Which messages wake it, if it waits: `signal:shipped`, `child`, … */
  readonly wants: readonly string[] | null;
  readonly createdAt: Date;
  /** Not before: what `at` or `delay` said. */
  readonly startAt: Date | null;
  /** Ends as `expired` unless it has begun by then. */
  readonly expiresAt: Date | null;
  /** Ends as `timed_out` unless it has ended by then. */
  readonly deadlineAt: Date | null;
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
  /** Who finished the attempt that it speaks of; null for other facts. */
  readonly workerId: string | null;
  readonly data: unknown;
}

/** @throws {PawlError} `CODEC_MISSING`, `CODEC_FAILED` */
export function readRun(record: RunRecord, payloads: Payloads): Run {
  const { id, error } = record;
  const { epoch: _, depth: __, parkReason: ___, retry: ____, ...seen } = record;
  return {
    ...seen,
    dueAt: dateOf(record.dueAt),
    createdAt: new Date(record.createdAt),
    startAt: dateOf(record.startAt),
    expiresAt: dateOf(record.expiresAt),
    deadlineAt: dateOf(record.deadlineAt),
    endedAt: dateOf(record.endedAt),
    input: payloads.decode(record.input, placeOfInput(id)),
    output: payloads.decode(record.output, placeOfOutput(id)),
    error: error === null ? null : payloads.decodeError(error, placeOfError(id)),
  };
}

/** @throws {PawlError} `CODEC_MISSING`, `CODEC_FAILED` */
export function readHistory(
  runId: RunId,
  events: readonly RunEvent[],
  payloads: Payloads,
): readonly HistoryEvent[] {
  const children = new Map<string | null, string | null>();
  return events.map((event) => {
    const { kind, name, data } = event;
    if (kind === "child_started") children.set(name, idOfChild(data));
    return {
      ...event,
      at: new Date(event.at),
      beganAt: dateOf(event.beganAt),
      dueAt: dateOf(event.dueAt),
      data:
        kind === "child_ended" && data !== null
          ? readChildEnd(data, children.get(name) ?? null, payloads)
          : readData(event, placeOfEvent(runId, event), payloads),
    };
  });
}

function readData({ kind, data }: RunEvent, place: PayloadPlace, payloads: Payloads): unknown {
  if (kind === "update_received" && data !== null) return readReceived(data, place, payloads);
  if (kind === "update_answered" && data !== null) return readAnswer(data, place, payloads);
  return payloads.decode(data, place);
}

function dateOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
