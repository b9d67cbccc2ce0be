import type { RunEvent } from "../../core/event.ts";
import type { ClaimedRun, DueAnswer, Waker } from "../../store/lease.ts";
import { column } from "../columns.ts";
import { transition } from "../transition.ts";
import { decodeClaim, type ClaimedRow } from "./claim-runs.ts";

/** See migrations/0005_tell.sql. */
export const wakeDue = transition(
  "wake_due",
  `select run_id, lane, ready_ms, input, notes, epoch, last_seq, told, created_ms, more, fired, woken, has_more, renewed,
          next_due_ms
     from {schema}.wake_due_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
);

/** The last one says what was woken, and is about no run. */
interface WokenRow extends ClaimedRow {
  readonly fired: string | null;
  readonly woken: number | null;
  readonly has_more: boolean | null;
  readonly renewed: boolean | null;
  readonly next_due_ms: number | null;
}

export function wakeDueValues(shard: number, limit: number, waker?: Waker): readonly unknown[] {
  if (waker === undefined) return [shard, limit, null, null, null, null, null, null, null, null];
  const { workerId, leaseMs, lanes, most = limit, sparesMs = 0 } = waker;
  return [
    shard,
    limit,
    workerId,
    leaseMs ?? null,
    most,
    sparesMs,
    column(lanes, (lane) => lane.queue),
    column(lanes, (lane) => lane.workflow),
    column(lanes, (lane) => lane.version),
    column(lanes, (lane) => lane.crashLimit),
  ];
}

export function decodeWoken(waker: Waker | undefined, rows: readonly WokenRow[]): DueAnswer {
  const about = rows.at(-1);
  const { runs, now } = decodeClaim({ lanes: waker?.lanes ?? [] }, rows);
  const fired = new Map(rows.flatMap((row) => (row.fired === null ? [] : [[row.run_id, row.fired]])));
  const held =
    fired.size === 0
      ? runs
      : runs.map((run): ClaimedRun => {
          const name = fired.get(run.runId);
          return name === undefined ? run : { ...run, fired: timerFired(run, name) };
        });
  return {
    woken: about?.woken ?? 0,
    held,
    hasMore: about?.has_more === true,
    isRenewed: about?.renewed === true,
    nextDueAt: about?.next_due_ms ?? null,
    now,
  };
}

/** As `loadHistory` reads it back. */
function timerFired({ lastSeq, claimedAt }: ClaimedRun, name: string): RunEvent {
  return {
    seq: lastSeq,
    kind: "timer_fired",
    at: claimedAt,
    name,
    attempt: null,
    beganAt: null,
    dueAt: null,
    workerId: null,
    data: null,
  };
}
