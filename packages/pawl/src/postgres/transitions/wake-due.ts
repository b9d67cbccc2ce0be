import type { RunEvent } from "../../core/event.ts";
import {
  mostBytesAlong,
  mostFactsAlong,
  type ClaimedRun,
  type DueAnswer,
  type Waker,
} from "../../store/lease.ts";
import { column } from "../columns.ts";
import { transition } from "../transition.ts";
import { decodeClaim, type ClaimedRow } from "./claim-runs.ts";
import { decodeEvent, type EventRow } from "./read.ts";

/** See migrations/0005_tell.sql. */
export const wakeDue = transition(
  "wake_due",
  `select run_id, lane, ready_ms, input, notes, epoch, last_seq, told, created_ms, more, fired, history, woken, has_more,
          renewed, next_due_ms
     from {schema}.wake_due_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
);

/** The last one says what was woken, and is about no run. */
interface WokenRow extends ClaimedRow {
  readonly fired: string | null;
  /** JSON: facts as `loadHistory` reads them. */
  readonly history: string | null;
  readonly woken: number | null;
  readonly has_more: boolean | null;
  readonly renewed: boolean | null;
  readonly next_due_ms: number | null;
}

export function wakeDueValues(shard: number, limit: number, waker?: Waker): readonly unknown[] {
  if (waker === undefined) return [shard, limit, null, null, null, null, null, null, null, null, 0, 0];
  const { workerId, leaseMs, lanes, most = limit, sparesMs = 0, histories = true } = waker;
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
    histories ? mostFactsAlong : 0,
    mostBytesAlong,
  ];
}

export function decodeWoken(waker: Waker | undefined, rows: readonly WokenRow[]): DueAnswer {
  const about = rows.at(-1);
  const { runs, now } = decodeClaim({ lanes: waker?.lanes ?? [] }, rows);
  const known = new Map(
    rows.flatMap((row) => (row.fired === null && row.history === null ? [] : [[row.run_id, row]])),
  );
  const held = known.size === 0 ? runs : runs.map((run) => withFacts(run, known.get(run.runId)));
  return {
    woken: about?.woken ?? 0,
    held,
    hasMore: about?.has_more === true,
    isRenewed: about?.renewed === true,
    nextDueAt: about?.next_due_ms ?? null,
    now,
  };
}

function withFacts(run: ClaimedRun, row: WokenRow | undefined): ClaimedRun {
  if (row === undefined) return run;
  const fired = row.fired === null ? null : timerFired(run, row.fired);
  const before = row.history === null ? null : (JSON.parse(row.history) as readonly EventRow[]);
  const history = before?.map(decodeEvent) ?? null;
  if (fired !== null) history?.push(fired);
  return { ...run, ...(fired !== null && { fired }), ...(history !== null && { history }) };
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
