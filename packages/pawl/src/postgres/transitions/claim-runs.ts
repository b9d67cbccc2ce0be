import type { RunId } from "../../core/ids.ts";
import type { Payload } from "../../core/json.ts";
import type { RetryPolicy } from "../../core/retry.ts";
import { sortedBy } from "../../core/sorted-by.ts";
import {
  firstEpoch,
  type Claim,
  type ClaimedRun,
  type ClaimRequest,
  type Lane,
  type Pack,
} from "../../store/lease.ts";
import { column, payloadOf } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0002_start_and_claim.sql. */
export const claimRuns = transition(
  "claim_runs",
  `select run_id, lane, ready_ms, input, notes, epoch, last_seq, told, created_ms, more
     from {schema}.claim_runs_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
);

/** Null is what most runs have: see claim_runs. */
export interface ClaimedRow extends Row {
  readonly run_id: string | null;
  readonly lane: number;
  readonly ready_ms: number;
  readonly input: string | null;
  readonly notes: string | null;
  readonly epoch: number | null;
  readonly last_seq: number | null;
  readonly told: boolean | null;
  readonly created_ms: number | null;
  /** `More` as JSON; without a run `Packed`, or null in the row that is about no run. */
  readonly more: string | null;
}

/** Plain runs that were started together. */
interface Packed {
  /** Null: they have leases of their own. */
  readonly pack: string | null;
  readonly priority: number;
  readonly ids: readonly RunId[];
  readonly inputs: readonly (string | null)[];
  /** Null: none has any. */
  readonly notes?: readonly (string | null)[] | null;
  /** Those whose inputs are not among them; null: none. */
  readonly leftOut?: readonly RunId[] | null;
}

/** What few runs have. */
interface More {
  readonly attempt: number;
  readonly failures: number;
  readonly suspicion: number;
  readonly priority: number;
  readonly key: string | null;
  readonly parentId: string | null;
  readonly rootId: string | null;
  readonly depth: number;
  readonly deadlineAt: number | null;
  readonly retry: RetryPolicy | null;
  readonly isRaw: boolean | null;
  readonly tags: readonly string[] | null;
  readonly isInputLeftOut: boolean;
}

const nothingMore: More = {
  attempt: 1,
  failures: 0,
  suspicion: 0,
  priority: 0,
  key: null,
  parentId: null,
  rootId: null,
  depth: 0,
  deadlineAt: null,
  retry: null,
  isRaw: null,
  tags: null,
  isInputLeftOut: false,
};

const lowestPriority = -2_147_483_648;
const lowestId = "00000000-0000-0000-0000-000000000000";

export function claimRunsValues(shard: number, request: ClaimRequest): readonly unknown[] {
  const { lanes } = request;
  return [
    shard,
    request.workerId,
    request.suspects ? Math.min(request.limit, 1) : request.limit,
    request.suspects,
    request.begin,
    column(lanes, (lane) => lane.queue),
    column(lanes, (lane) => lane.workflow),
    column(lanes, (lane) => lane.version),
    column(lanes, (lane) => lane.crashLimit),
    column(lanes, (lane) => lane.after?.priority ?? lowestPriority),
    column(lanes, (lane) => lane.after?.readyAt ?? null),
    column(lanes, (lane) => lane.after?.runId ?? lowestId),
    request.leaseMs ?? null,
  ];
}

export function decodeClaim({ lanes }: Pick<ClaimRequest, "lanes">, rows: readonly ClaimedRow[]): Claim {
  // The one row that is about no run.
  const about = rows.at(-1);
  const now = about?.created_ms ?? 0;
  const server = about?.ready_ms;
  const runs: ClaimedRun[] = [];
  for (const row of rows) {
    const lane = lanes[row.lane - 1];
    if (lane === undefined) continue;
    const stage = stageOf(row, lane, now, server);
    if (row.run_id !== null) {
      const more = row.more === null ? nothingMore : (JSON.parse(row.more) as More);
      runs.push(runOf(row.run_id, payloadOf(row.input, row.notes), more, stage));
    } else if (row.more !== null) unpack(JSON.parse(row.more) as Packed, stage, runs);
  }
  const claim = { runs: sortedBy(byPlace, runs), suspectsWaiting: about?.told ?? false, now };
  if (about?.epoch === 1) return { ...claim, isCutShort: true };
  return about?.epoch === 2 ? { ...claim, hasLeft: true } : claim;
}

/** What a row says of its run, or of all its runs, beside `More`. */
interface Stage {
  readonly lane: Lane;
  readonly epoch: number;
  readonly lastSeq: number;
  readonly told: boolean;
  readonly readyAt: number;
  readonly createdAt: number;
  readonly claimedAt: number;
  readonly server: number | undefined;
  readonly pack: Pack | undefined;
}

function stageOf(row: ClaimedRow, lane: Lane, claimedAt: number, server: number | undefined): Stage {
  return {
    lane,
    epoch: row.epoch ?? firstEpoch,
    lastSeq: row.last_seq ?? 0,
    told: row.told === true,
    readyAt: row.ready_ms,
    createdAt: row.created_ms ?? row.ready_ms,
    claimedAt,
    server,
    pack: undefined,
  };
}

function unpack(packed: Packed, shared: Stage, runs: ClaimedRun[]): void {
  const { pack, priority, ids, inputs, notes, leftOut } = packed;
  const stage = { ...shared, pack: pack === null ? undefined : { id: pack, size: ids.length } };
  const more = priority === 0 ? nothingMore : { ...nothingMore, priority };
  const without = { ...more, isInputLeftOut: true };
  ids.forEach((runId, index) => {
    const input = payloadOf(inputs[index] ?? null, notes?.[index] ?? null);
    runs.push(runOf(runId, input, leftOut?.includes(runId) === true ? without : more, stage));
  });
}

function runOf(runId: RunId, input: Payload | null, more: More, stage: Stage): ClaimedRun {
  const { workflow, version, queue } = stage.lane;
  return {
    runId,
    epoch: stage.epoch,
    workflow,
    version,
    queue,
    key: more.key,
    parentId: more.parentId,
    rootId: more.rootId ?? runId,
    depth: more.depth,
    input,
    isInputLeftOut: more.isInputLeftOut,
    isRaw: more.isRaw === true,
    tags: more.tags ?? noTags,
    retry: more.retry,
    lastSeq: stage.lastSeq,
    attempt: more.attempt,
    failures: more.failures,
    suspicion: more.suspicion,
    told: stage.told,
    createdAt: stage.createdAt,
    deadlineAt: more.deadlineAt,
    claimedAt: stage.claimedAt,
    mark: { priority: more.priority, readyAt: stage.readyAt, runId },
    server: stage.server,
    pack: stage.pack,
  };
}

const noTags: readonly string[] = [];

/** The database answers lane by lane; the sort it would need for this would spoil its plan. */
function byPlace({ mark: a }: ClaimedRun, { mark: b }: ClaimedRun): number {
  return a.priority - b.priority || a.readyAt - b.readyAt || (a.runId < b.runId ? -1 : 1);
}
