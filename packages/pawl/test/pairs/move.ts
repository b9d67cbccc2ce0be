import type { RunId } from "../../src/core/ids.ts";
import { sqlState } from "../../src/core/sql-state.ts";
import type { Transition } from "../../src/postgres/transition.ts";
import { claimRuns, claimRunsValues, decodeClaim } from "../../src/postgres/transitions/claim-runs.ts";
import * as control from "../../src/postgres/transitions/control.ts";
import { createRuns, createRunsValues, decodeCreated } from "../../src/postgres/transitions/create-runs.ts";
import {
  beginRuns,
  decodeHeld,
  completeRun,
  completeRunValues,
  decodeEnded,
  endRuns,
  endValues,
  releaseRuns,
  releaseValues,
} from "../../src/postgres/transitions/end-runs.ts";
import { decodeForked, forkRun, forkValues } from "../../src/postgres/transitions/fork-run.ts";
import { leaseValues } from "../../src/postgres/transitions/holder-calls.ts";
import {
  createInTransaction,
  createInTransactionValues,
  tellInTransaction,
  tellInTransactionValues,
} from "../../src/postgres/transitions/in-transaction.ts";
import { decodeParked, parkRuns, parkValues } from "../../src/postgres/transitions/park-runs.ts";
import { decodeInboxes, inboxValues, readInbox } from "../../src/postgres/transitions/read-inbox.ts";
import {
  decodeRecorded,
  decodeRecordedStep,
  recordEvents,
  recordStep,
  recordStepValues,
  recordValues,
} from "../../src/postgres/transitions/record-events.ts";
import {
  decodeSignalOrStart,
  signalOrStart,
  signalOrStartInTransaction,
  signalOrStartValues,
} from "../../src/postgres/transitions/signal-or-start.ts";
import { decodeTold, tellRuns, tellValues, wakeTold } from "../../src/postgres/transitions/tell-runs.ts";
import { decodeWoken, wakeDue, wakeDueValues } from "../../src/postgres/transitions/wake-due.ts";
import * as workers from "../../src/postgres/transitions/workers.ts";
import type { ClaimRequest, Waker, Ending, Lease, Look, Parking, Recording } from "../../src/store/lease.ts";
import type { NewMessage } from "../../src/store/message.ts";
import type { ForkedEvent, NewRun, Rescheduling } from "../../src/store/run-record.ts";
import type { SignalOrStart } from "../../src/store/signal-or-start.ts";
import type { RedriveTerms } from "../../src/store/store.ts";
import type { Heartbeat, NewWorker } from "../../src/store/worker-record.ts";

/** How a caller's own transaction, which a `{ tx }` call is part of, is isolated. */
export type Isolation = "read committed" | "repeatable read";

/** One call of a transition, as the store sends it: the same statement, the same values. */
export interface Move {
  readonly name: string;
  readonly statement: Transition;
  readonly values: readonly unknown[];
  /** What the store would answer. */
  answerOf(rows: readonly unknown[]): unknown;
  /** Set: the call is made inside a caller's transaction, which may stay open for as long as the caller likes. */
  readonly isolation: Isolation | null;
  /** Whether it holds several calls of the store, merged by group commit. */
  readonly isMerged: boolean;
  /** Whether it lets a run go on as another. */
  readonly isContinuing: boolean;
  /** The idempotency keys it inserts. Whoever inserts the same one must wait to know which of the two was first. */
  readonly keys: readonly string[];
}

const shard = 0;

function move(
  name: string,
  statement: Transition,
  values: readonly unknown[],
  decode: (rows: readonly never[]) => unknown,
  more: Partial<Move> = {},
): Move {
  const answerOf = (rows: readonly unknown[]): unknown => decode(rows as readonly never[]);
  const plain = { isolation: null, isMerged: false, isContinuing: false, keys: [] };
  return { name, statement, values, answerOf, ...plain, ...more };
}

/** What a call answered that failed as the store expects it to fail. Null: it should not have failed. */
export function expectedFailure(error: unknown, { statement }: Move): string | null {
  const isOfOne = statement === completeRun || statement === recordStep;
  if (isOfOne && sqlState(error) === "23505") return notDone;
  return sqlState(error) === "PW001" ? "WORKER_EXPIRED" : null;
}

const notDone = "NOT_DONE";

function lostOr(answers: readonly unknown[]): unknown {
  return answers.map((answer) => (answer === null || answer === false ? "LEASE_LOST" : answer));
}

export const moves = {
  createRuns: (name: string, runs: readonly NewRun[]): Move =>
    move(
      name,
      createRuns,
      createRunsValues(shard, runs, runs.length > 1, null),
      (rows) => decodeCreated(runs, rows),
      { keys: runKeysOf(runs) },
    ),
  createInTransaction: (name: string, runs: readonly NewRun[], isolation: Isolation): Move =>
    move(
      name,
      createInTransaction,
      createInTransactionValues(runs),
      ([row]: readonly { readonly answer: string }[]) => decodeCreated(runs, JSON.parse(row!.answer)),
      { isolation, keys: runKeysOf(runs) },
    ),
  claimRuns: (name: string, request: ClaimRequest): Move =>
    move(name, claimRuns, claimRunsValues(shard, request), (rows) => decodeClaim(request, rows)),

  begin: (name: string, leases: readonly Lease[]): Move =>
    move(
      name,
      beginRuns,
      leaseValues(shard, leases),
      (rows) => lostOr(decodeHeld(leases, rows)),
      merged(leases),
    ),
  record: (name: string, recordings: readonly Recording[]): Move =>
    move(
      name,
      recordEvents,
      recordValues(shard, recordings),
      (rows) => lostOr(decodeRecorded(recordings, rows)),
      merged(recordings),
    ),
  readInbox: (name: string, looks: readonly Look[]): Move =>
    move(
      name,
      readInbox,
      inboxValues(shard, looks),
      (rows) => lostOr(decodeInboxes(looks, rows)),
      merged(looks),
    ),
  park: (name: string, parkings: readonly Parking[]): Move =>
    move(
      name,
      parkRuns,
      parkValues(shard, parkings),
      (rows) => lostOr(decodeParked(parkings, rows)),
      merged(parkings),
    ),
  end: (name: string, endings: readonly Ending[]): Move =>
    move(name, endRuns, endValues(shard, endings), (rows) => lostOr(decodeHeld(leasesOf(endings), rows)), {
      ...merged(endings),
      isContinuing: endings.some(({ next }) => next !== undefined),
    }),
  /** Not done, as where its lease is lost: then `end_runs` would be asked. */
  complete: (name: string, ending: Ending): Move =>
    move(name, completeRun, completeRunValues(shard, ending), (rows) =>
      rows.some((row) => decodeEnded(row)) ? "ENDED" : notDone,
    ),
  /** Not done, as where its lease is lost: then `record_events` would be asked. */
  recordStep: (name: string, recording: Recording): Move =>
    move(
      name,
      recordStep,
      recordStepValues(shard, recording),
      (rows) => rows.map((row) => decodeRecordedStep(row))[0] ?? notDone,
    ),
  release: (name: string, leases: readonly Lease[]): Move =>
    move(
      name,
      releaseRuns,
      releaseValues(
        shard,
        leases.map((lease) => ({ lease, readyAt: undefined })),
      ),
      (rows) => lostOr(decodeHeld(leases, rows)),
      merged(leases),
    ),

  tell: (name: string, messages: readonly NewMessage[]): Move =>
    move(name, tellRuns, tellValues(shard, messages), (rows) => decodeTold(messages, rows), {
      ...merged(messages),
      keys: messages.flatMap(keysOf),
    }),
  tellInTransaction: (name: string, message: NewMessage, isolation: Isolation): Move => {
    const values = tellInTransactionValues(message);
    return move(name, tellInTransaction, values, (rows) => rows[0], { isolation, keys: keysOf(message) });
  },
  terminate: (name: string, runId: RunId): Move =>
    move(name, control.terminateRun, [shard, runId, null, null], (rows) => rows[0]),
  redrive: (name: string, runIds: readonly RunId[], terms: RedriveTerms = {}): Move =>
    move(name, control.redriveRuns, control.redriveValues(shard, runIds, terms), (rows) =>
      Object.fromEntries(control.decodeRedriven(rows)),
    ),
  fork: (name: string, run: NewRun, history: readonly ForkedEvent[]): Move =>
    move(name, forkRun, forkValues(shard, run, history), (rows) => decodeForked(run, rows), {
      keys: runKeysOf([run]),
    }),
  signalOrStart: (name: string, call: SignalOrStart): Move =>
    move(name, signalOrStart, signalOrStartValues(call), ([row]) => decodeSignalOrStart(row!), {
      keys: runKeysOf([call.run]),
    }),
  signalOrStartInTransaction: (name: string, call: SignalOrStart, isolation: Isolation): Move =>
    move(
      name,
      signalOrStartInTransaction,
      signalOrStartValues(call),
      ([row]: readonly { readonly answer: string }[]) => decodeSignalOrStart(JSON.parse(row!.answer)),
      { isolation, keys: runKeysOf([call.run]) },
    ),
  reschedule: (name: string, rescheduling: Rescheduling): Move =>
    move(name, control.rescheduleRun, control.rescheduleValues(shard, rescheduling), (rows) => rows[0]),
  wakeTold: (name: string, runIds: readonly RunId[]): Move =>
    move(name, wakeTold, [shard, runIds], () => null),
  wakeDue: (name: string, holder?: Waker): Move =>
    move(name, wakeDue, wakeDueValues(shard, 10, holder), (rows) => decodeWoken(holder, rows)),

  registerWorker: (name: string, worker: NewWorker): Move =>
    move(name, workers.registerWorker, workers.registerValues(worker), () => null),
  heartbeat: (name: string, beat: Heartbeat): Move =>
    move(name, workers.heartbeat, workers.heartbeatValues(shard, beat), workers.decodeHeartbeat),
  retireWorker: (name: string, workerId: string): Move =>
    move(name, workers.retireWorker, [shard, workerId], () => null),
  sweep: (name: string): Move => move(name, workers.sweep, [shard, 100, null], (rows) => rows[0]),
};

function merged(items: readonly unknown[]): Pick<Move, "isMerged"> {
  return { isMerged: items.length > 1 };
}

function leasesOf(endings: readonly Ending[]): readonly Lease[] {
  return endings.map(({ lease }) => lease);
}

function runKeysOf(runs: readonly NewRun[]): readonly string[] {
  return runs.flatMap(({ id, key }) => (key === null ? [id] : [id, key]));
}

function keysOf({ id, runId, idempotencyKey }: NewMessage): readonly string[] {
  return idempotencyKey === null ? [id] : [id, `${runId}/${idempotencyKey}`];
}
