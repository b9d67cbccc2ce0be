import { firstEpoch, type Ending, type Lease } from "../../store/lease.ts";
import { bareColumn, sizeOfPayload, sparseColumn } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";
import {
  childrenValue,
  factColumns,
  inOrder,
  knownValues,
  leaseValues,
  sizeOfRecording,
  unknownServer,
  writtenValue,
  type FactOfRun,
} from "./holder-calls.ts";

/** See migrations/0004_hold.sql. */
export const endRuns = transition(
  "end_runs",
  `select run_id
     from {schema}.end_runs_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
                               $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28)`,
);

/** See migrations/0017_one_run.sql. */
export const completeRun = transition(
  "complete_run",
  "select {schema}.complete_run_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) as is_ended",
);

/** See migrations/0017_one_run.sql. */
export const announceEnds = transition(
  "announce_ends",
  "select {schema}.announce_ends_v1($1) as is_announced",
);

/** See migrations/0004_hold.sql. */
export const releaseRuns = transition(
  "release_runs",
  "select run_id from {schema}.release_runs_v1($1, $2, $3, $4, $5)",
);

/** See migrations/0002_start_and_claim.sql. */
export const beginRuns = transition(
  "begin_runs",
  "select run_id from {schema}.begin_runs_v1($1, $2, $3, $4)",
);

export interface Release {
  readonly lease: Lease;
  /** Undefined: its code has been called. */
  readonly readyAt: number | undefined;
}

export function releaseValues(shard: number, given: readonly Release[]): readonly unknown[] {
  const releases = inOrder(given);
  const leases = releases.map(({ lease }) => lease);
  return [...leaseValues(shard, leases), sparseColumn(releases, ({ readyAt }) => readyAt)];
}

interface FactOfEnded extends FactOfRun {
  readonly epoch: number;
}

interface LostRow extends Row {
  readonly run_id: string;
}

export function endValues(shard: number, given: readonly Ending[]): readonly unknown[] {
  const endings = inOrder(given);
  const facts = endings.flatMap(factsOf);
  return [
    ...leaseValues(
      shard,
      endings.map(({ lease }) => lease),
    ),
    ...knownValues(endings),
    ...packValues(endings),
    endings.every(isCompleted) ? null : bareColumn(endings, (ending) => ending.status),
    sparseColumn(endings, (ending) => ending.error?.json),
    sparseColumn(endings, (ending) => ending.error?.notes),
    childrenValue(endings),
    writtenValue(endings),
    nextValue(endings),
    parentsValue(endings),
    ...factColumns(endings, facts),
    sparseColumn(facts, ({ event, epoch }) =>
      event.kind === "completed" && epoch !== firstEpoch ? epoch : null,
    ),
  ];
}

/** The packs in which they were claimed, and where in the order of their ids those of each begin and end, from 1; null where there are none. */
function packValues(endings: readonly Ending[]): readonly unknown[] {
  const packs: string[] = [];
  const firsts: number[] = [];
  const lasts: number[] = [];
  let before: string | undefined;
  for (const [index, { lease }] of endings.entries()) {
    const pack = lease.pack?.id;
    if (pack !== undefined && pack !== before) {
      packs.push(pack);
      firsts.push(index + 1);
      lasts.push(index + 1);
    } else if (pack !== undefined) lasts[lasts.length - 1] = index + 1;
    before = pack;
  }
  return packs.length === 0
    ? [null, null, null]
    : [packs, firsts, lasts].map((list) => `{${list.join(",")}}`);
}

/** Leaves nothing but the fact that it has completed. */
export function isPlainEnding(ending: Ending): boolean {
  const { events, children, written, next, parentId } = ending;
  const [event] = events;
  return (
    isCompleted(ending) &&
    parentId === null &&
    next === undefined &&
    written === undefined &&
    children.length === 0 &&
    events.length === 1 &&
    event?.kind === "completed" &&
    event.name === null &&
    event.takes === undefined
  );
}

/** Of a plain ending. */
export function completeRunValues(shard: number, ending: Ending): readonly unknown[] {
  const { runId, workerId, epoch, server = unknownServer } = ending.lease;
  const [fact] = factsOf(ending);
  const { seq, attempt = null, beganAt = null } = fact?.event ?? {};
  const data = [fact?.data?.json ?? null, fact?.data?.notes ?? null];
  const epochOfFact = epoch === firstEpoch ? null : epoch;
  return [shard, workerId, runId, epoch, server, seq, attempt, epochOfFact, beganAt, ...data];
}

interface EndedRow extends Row {
  readonly is_ended: boolean;
}

/** Whether it was ended so; if not, `end_runs` has to say what became of it. */
export function decodeEnded(row: EndedRow): boolean {
  return row.is_ended;
}

function isCompleted({ status }: Ending): boolean {
  return status === "completed";
}

/** A run's last fact is the one that says how it ended; where it has completed, that carries the output. */
function factsOf({ lease, events, output }: Ending): readonly FactOfEnded[] {
  const { runId, epoch } = lease;
  return events.map((event, index) => ({
    runId,
    event,
    data: index === events.length - 1 ? (output ?? event.data) : event.data,
    epoch,
  }));
}

/** The parents of these runs; null where none has one. */
function parentsValue(endings: readonly Ending[]): string | null {
  if (endings.every(({ parentId }) => parentId === null)) return null;
  const parents = endings.flatMap(({ parentId }) => parentId ?? []);
  return `{${parents.join(",")}}`;
}

/** The runs that go on from these, as JSON; null where none does. */
function nextValue(endings: readonly Ending[]): string | null {
  if (endings.every(({ next }) => next === undefined)) return null;
  const next = endings.flatMap(({ lease, next }) =>
    next === undefined
      ? []
      : {
          id: next.id,
          run_id: lease.runId,
          version: next.version,
          input: next.input?.json,
          notes: next.input?.notes ?? undefined,
          raw: next.isRaw ? true : undefined,
        },
  );
  return JSON.stringify(next);
}

export function sizeOfEnding(ending: Ending): number {
  const sizeOfNext = ending.next === undefined ? 0 : 100 + sizeOfPayload(ending.next.input);
  return sizeOfRecording(ending) + sizeOfPayload(ending.output) + sizeOfPayload(ending.error) + sizeOfNext;
}

/** Which of these leases were still held. */
export function decodeHeld(leases: readonly Lease[], rows: readonly LostRow[]): readonly boolean[] {
  const lost = new Set(rows.map((row) => row.run_id));
  return leases.map((lease) => !lost.has(lease.runId));
}
