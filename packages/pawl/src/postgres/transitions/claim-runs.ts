import type { RetryPolicy } from "../../core/retry.ts";
import { firstEpoch, type Claim, type ClaimedRun, type ClaimRequest, type Lane } from "../../store/lease.ts";
import { payloadOf } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0002_start_and_claim.sql. */
export const claimRuns = transition(
  "claim_runs",
  `select run_id, lane, ready_ms, input, notes, epoch, last_seq, told, created_ms, more
     from {schema}.claim_runs_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
);

/** Null is what most runs have: see claim_runs. */
interface ClaimedRow extends Row {
  readonly run_id: string | null;
  readonly lane: number;
  readonly ready_ms: number;
  readonly input: string | null;
  readonly notes: string | null;
  readonly epoch: number | null;
  readonly last_seq: number | null;
  readonly told: boolean | null;
  readonly created_ms: number | null;
  /** `More` as JSON. */
  readonly more: string | null;
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
    lanes.map((lane) => lane.queue),
    lanes.map((lane) => lane.workflow),
    lanes.map((lane) => lane.version),
    lanes.map((lane) => lane.crashLimit),
    lanes.map((lane) => lane.after?.priority ?? lowestPriority),
    lanes.map((lane) => lane.after?.readyAt ?? null),
    lanes.map((lane) => lane.after?.runId ?? lowestId),
    request.leaseMs ?? null,
  ];
}

export function decodeClaim({ lanes }: ClaimRequest, rows: readonly ClaimedRow[]): Claim {
  // The one row that is about no run.
  const about = rows.find(({ run_id }) => run_id === null);
  const now = about?.created_ms ?? 0;
  const runs: ClaimedRun[] = [];
  for (const row of rows) {
    const lane = lanes[row.lane - 1];
    if (row.run_id !== null && lane !== undefined)
      runs.push(decodeRun(row.run_id, row, lane, now, about?.ready_ms));
  }
  const claim = { runs: runs.sort(byPlace), suspectsWaiting: about?.told ?? false, now };
  return about?.epoch === 1 ? { ...claim, isCutShort: true } : claim;
}

function decodeRun(
  runId: string,
  row: ClaimedRow,
  { workflow, version, queue }: Lane,
  claimedAt: number,
  server: number | undefined,
): ClaimedRun {
  const more =
    row.more === null ? nothingMore : { ...nothingMore, ...(JSON.parse(row.more) as Partial<More>) };
  return {
    runId,
    epoch: row.epoch ?? firstEpoch,
    workflow,
    version,
    queue,
    key: more.key,
    parentId: more.parentId,
    rootId: more.rootId ?? runId,
    depth: more.depth,
    input: payloadOf(row.input, row.notes),
    isInputLeftOut: more.isInputLeftOut,
    isRaw: more.isRaw === true,
    tags: more.tags ?? noTags,
    retry: more.retry,
    lastSeq: row.last_seq ?? 0,
    attempt: more.attempt,
    failures: more.failures,
    suspicion: more.suspicion,
    told: row.told === true,
    createdAt: row.created_ms ?? row.ready_ms,
    deadlineAt: more.deadlineAt,
    claimedAt,
    mark: { priority: more.priority, readyAt: row.ready_ms, runId },
    server,
  };
}

const noTags: readonly string[] = [];

/** The database answers lane by lane; the sort it would need for this would spoil its plan. */
function byPlace({ mark: a }: ClaimedRun, { mark: b }: ClaimedRun): number {
  return a.priority - b.priority || a.readyAt - b.readyAt || (a.runId < b.runId ? -1 : 1);
}
