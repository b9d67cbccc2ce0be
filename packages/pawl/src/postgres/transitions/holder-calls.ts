import type { Payload } from "../../core/json.ts";
import { sortedBy } from "../../core/sorted-by.ts";
import { knownSeq, type Lease, type NewEvent, type Recording } from "../../store/lease.ts";
import { bareColumn, commonColumn, sizeOfPayload, sparseColumn } from "../columns.ts";
import { runsJson, sizeOfRun } from "./create-runs.ts";

/** By the ids of the runs, as `lock_leases` locks them. */
export function inOrder<Item extends { readonly lease: Lease }>(items: readonly Item[]): readonly Item[] {
  return sortedBy((a, b) => (a.lease.runId < b.lease.runId ? -1 : 1), items);
}

/** The parameters that every call of holders begins with: shard, worker, runs, epochs. All leases are of one worker. */
export function leaseValues(shard: number, leases: readonly Lease[]): readonly unknown[] {
  return [
    shard,
    leases[0]?.workerId,
    bareColumn(leases, (lease) => lease.runId),
    bareColumn(leases, (lease) => lease.epoch),
  ];
}

/** The newest fact of each run that its holder knows of, and from which server it has the run. */
export function knownValues(recordings: readonly Recording[]): readonly unknown[] {
  return [
    commonColumn(recordings, knownSeq),
    commonColumn(recordings, ({ lease }) => lease.server ?? unknownServer),
  ];
}

/** One that no server is. */
export const unknownServer = 0;

/** The children of all these recordings, or null. */
export function childrenValue(recordings: readonly Recording[]): string | null {
  if (recordings.every(({ children }) => children.length === 0)) return null;
  return runsJson(recordings.flatMap(({ children }) => children));
}

/** What all these recordings write to streams, or null. */
export function writtenValue(recordings: readonly Recording[]): string | null {
  if (recordings.every(({ written }) => written === undefined)) return null;
  const items = recordings.flatMap(({ lease, written = [] }) =>
    written.map((item) => ({
      run_id: lease.runId,
      name: item.name,
      position: item.position,
      step: item.step ?? undefined,
      attempt: item.attempt ?? undefined,
      is_first: item.isFirst ? true : undefined,
      is_closing: item.isClosing ? true : undefined,
      data: item.data?.json,
      notes: item.data?.notes ?? undefined,
    })),
  );
  return items.length === 0 ? null : JSON.stringify(items);
}

export interface FactOfRun {
  readonly runId: string;
  readonly event: NewEvent;
  readonly data: Payload | null | undefined;
}

/**
 * The columns that `append_events` reads beside the runs and those which may be null. As lists: calls one after the other become
 * one function, with which the compiler is busy for half a second before a worker is warm.
 */
const commonColumns: readonly ((fact: FactOfRun) => string | number)[] = [
  ({ event }) => event.seq,
  ({ event }) => event.kind,
];
const oftenCommonColumns: readonly ((fact: FactOfRun) => string | number | null | undefined)[] = [
  ({ event }) => event.name,
  ({ event }) => event.attempt,
];
const sparseColumns: readonly ((fact: FactOfRun) => string | number | null | undefined)[] = [
  ({ event }) => event.beganAt,
  ({ event }) => event.delayMs,
  ({ event }) => event.dueAt,
  ({ data }) => data?.json,
  ({ data }) => data?.notes,
  ({ event }) => event.takes,
];

/** The facts of all these recordings, as columns. */
export function eventValues(recordings: readonly Recording[]): readonly unknown[] {
  const facts: FactOfRun[] = [];
  for (const { lease, events } of recordings)
    for (const event of events) facts.push({ runId: lease.runId, event, data: event.data });
  return factColumns(recordings, facts);
}

/**
 * The eleven event columns that `append_events` reads; null where no item has a value. No runs, but facts: each of the runs that the
 * call names has one of them.
 */
export function factColumns(
  recordings: readonly Recording[],
  facts: readonly FactOfRun[],
): readonly unknown[] {
  if (facts.length === 0)
    return Array<null>(1 + commonColumns.length + oftenCommonColumns.length + sparseColumns.length).fill(
      null,
    );
  const isOneEach = recordings.every(({ events }) => events.length === 1);
  return [
    isOneEach ? null : bareColumn(facts, ({ runId }) => runId),
    ...commonColumns.map((pick) => commonColumn(facts, pick)),
    ...oftenCommonColumns.map((pick) => sparseColumn(facts, pick, true)),
    ...sparseColumns.map((pick) => sparseColumn(facts, pick)),
  ];
}

export function sizeOfRecording({ events, children, written = [] }: Recording): number {
  let bytes = 50;
  for (const event of events) bytes += 120 + sizeOfPayload(event.data);
  for (const child of children) bytes += sizeOfRun(child);
  for (const item of written) bytes += 150 + sizeOfPayload(item.data);
  return bytes;
}
