import type { EventKind } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { EndStatus, ParkReason } from "../core/run-status.ts";

/**
 * Everything a store holds, in one canonical form: two stores that went through the same transitions at the same
 * instants have deeply equal snapshots. Arrays are sorted as noted; instants are ms.
 */
export interface StoreSnapshot {
  /** By id. */
  readonly runs: readonly SnapshotRun[];
  /** By run. */
  readonly ready: readonly SnapshotReady[];
  /** By run. */
  readonly lease: readonly SnapshotLease[];
  /** By run. */
  readonly parked: readonly SnapshotParked[];
  /** By run, then seq. */
  readonly events: readonly SnapshotEvent[];
  /** By run, then id. */
  readonly inbox: readonly SnapshotMessage[];
  /** By run, then name, then position. */
  readonly streams: readonly SnapshotStreamItem[];
  /** By key. */
  readonly keys: readonly SnapshotKey[];
  /** By id. */
  readonly workers: readonly SnapshotWorker[];
  /** By run. */
  readonly stopped: readonly SnapshotStopped[];
  /** By tag, then run. */
  readonly tags: readonly SnapshotTag[];
}

/** Parsed, so that the spelling of JSON does not matter; without `notes` where there are none. */
export interface SnapshotPayload {
  readonly value: unknown;
  readonly notes?: unknown;
}

export interface SnapshotRun {
  readonly id: RunId;
  readonly workflow: string;
  readonly version: number;
  readonly queue: string;
  readonly priority: number;
  readonly input: SnapshotPayload | null;
  readonly isRaw: boolean;
  readonly key: string | null;
  readonly tags: readonly string[];
  readonly retry: unknown;
  readonly startAt: number | null;
  readonly expiresAt: number | null;
  readonly deadlineAt: number | null;
  readonly parentId: RunId | null;
  readonly parentRequest: string | null;
  readonly rootId: RunId;
  readonly depth: number;
  readonly isDetached: boolean;
  readonly forkedFrom: RunId | null;
  readonly firstId: RunId;
  readonly continuedAs: RunId | null;
  readonly createdAt: number;
  /** Null while it lives. */
  readonly status: EndStatus | null;
  readonly output: SnapshotPayload | null;
  readonly error: SnapshotPayload | null;
  readonly endedAt: number | null;
  /** Of its last holder; null while it lives. */
  readonly epoch: number | null;
  /** Its last; null while it lives. */
  readonly attempt: number | null;
}

interface SnapshotRoom {
  readonly runId: RunId;
  readonly epoch: number;
  readonly lastSeq: number;
  readonly attempt: number;
  readonly failures: number;
  readonly crashes: number;
  readonly suspicion: number;
}

export interface SnapshotReady extends SnapshotRoom {
  readonly told: boolean;
  readonly readyAt: number;
  readonly expiresAt: number | null;
}

export interface SnapshotLease extends SnapshotRoom {
  readonly told: boolean;
  readonly workerId: string;
  readonly claimedAt: number;
  readonly begunAt: number | null;
  readonly crashLimit: number;
}

export interface SnapshotParked extends SnapshotRoom {
  readonly reason: ParkReason;
  readonly dueAt: number | null;
  /** Sorted. */
  readonly wants: readonly string[];
  readonly fires: string | null;
}

export interface SnapshotEvent {
  readonly runId: RunId;
  readonly seq: number;
  readonly kind: EventKind;
  readonly at: number;
  readonly name: string | null;
  readonly attempt: number | null;
  readonly beganAt: number | null;
  readonly dueAt: number | null;
  readonly workerId: string | null;
  readonly data: SnapshotPayload | null;
}

export interface SnapshotMessage {
  readonly runId: RunId;
  readonly id: string;
  readonly topic: string;
  readonly name: string | null;
  readonly data: SnapshotPayload | null;
  readonly idempotencyKey: string | null;
  readonly sentAt: number;
  /** The run it was written for, where that is another. */
  readonly sentTo: RunId | null;
  /** The event that took it, 0 for none in particular; null while unread. */
  readonly takenSeq: number | null;
  /** For updates: the event that answered it. */
  readonly answerSeq: number | null;
}

interface SnapshotStreamItem {
  readonly runId: RunId;
  readonly name: string;
  readonly position: number;
  readonly at: number;
  readonly step: string | null;
  readonly attempt: number | null;
  readonly isFirst: boolean;
  readonly isClosing: boolean;
  readonly data: SnapshotPayload | null;
}

interface SnapshotKey {
  readonly key: string;
  readonly runId: RunId;
}

interface SnapshotStopped {
  readonly runId: RunId;
  readonly status: EndStatus;
  readonly errorCode: string | null;
  readonly endedAt: number;
}

interface SnapshotTag {
  readonly tag: string;
  readonly runId: RunId;
}

interface SnapshotWorker {
  readonly id: string;
  readonly leaseMs: number;
  readonly heardAt: number;
  readonly endedAt: number | null;
  /** Begun leases it held when it was found dead; null if it was not. */
  readonly heldAtEnd: number | null;
}

export function snapshotPayload(payload: Payload | null): SnapshotPayload | null {
  if (payload === null) return null;
  const value: unknown = JSON.parse(payload.json);
  if (payload.notes === null) return { value };
  return { value, notes: JSON.parse(payload.notes) as unknown };
}
