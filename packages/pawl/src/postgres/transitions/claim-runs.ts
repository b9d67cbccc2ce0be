import type { RetryPolicy } from "../../core/retry.ts";
import { firstEpoch, type Claim, type ClaimedRun, type ClaimRequest, type Lane } from "../../store/lease.ts";
import { payloadOf } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0002_start_and_claim.sql. */
export const claimRuns = transition(
  "claim_runs",
  `select run_id, lane, epoch, last_seq, attempt, failures, suspicion, told, priority, ready_ms, key, parent_id, root_id,
          depth, input, notes, created_ms, deadline_ms, retry, raw, tags, left_out
     from {schema}.claim_runs_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
);

/** Null is what most runs have: see claim_runs. */
interface ClaimedRow extends Row {
  readonly run_id: string | null;
  readonly lane: number;
  readonly epoch: number | null;
  readonly last_seq: number | null;
  readonly attempt: number | null;
  readonly failures: number | null;
  readonly suspicion: number | null;
  readonly told: boolean | null;
  readonly priority: number | null;
  readonly ready_ms: number;
  readonly key: string | null;
  readonly parent_id: string | null;
  readonly root_id: string | null;
  readonly depth: number | null;
  readonly input: string | null;
  readonly notes: string | null;
  readonly created_ms: number | null;
  readonly deadline_ms: number | null;
  readonly retry: string | null;
  readonly raw: boolean | null;
  readonly tags: readonly string[] | null;
  readonly left_out: boolean | null;
}

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
    if (row.run_id !== null && lane !== undefined) runs.push(decodeRun(row.run_id, row, lane, now));
  }
  return { runs: runs.sort(byPlace), suspectsWaiting: about?.told ?? false, now };
}

function decodeRun(
  runId: string,
  row: ClaimedRow,
  { workflow, version, queue }: Lane,
  claimedAt: number,
): ClaimedRun {
  return {
    runId,
    epoch: row.epoch ?? firstEpoch,
    workflow,
    version,
    queue,
    key: row.key,
    parentId: row.parent_id,
    rootId: row.root_id ?? runId,
    depth: row.depth ?? 0,
    input: payloadOf(row.input, row.notes),
    isInputLeftOut: row.left_out === true,
    isRaw: row.raw === true,
    tags: row.tags ?? noTags,
    retry: row.retry === null ? null : (JSON.parse(row.retry) as RetryPolicy),
    lastSeq: row.last_seq ?? 0,
    attempt: row.attempt ?? 1,
    failures: row.failures ?? 0,
    suspicion: row.suspicion ?? 0,
    told: row.told === true,
    createdAt: row.created_ms ?? row.ready_ms,
    deadlineAt: row.deadline_ms,
    claimedAt,
    mark: { priority: row.priority ?? 0, readyAt: row.ready_ms, runId },
  };
}

const noTags: readonly string[] = [];

/** The database answers lane by lane; the sort it would need for this would spoil its plan. */
function byPlace({ mark: a }: ClaimedRun, { mark: b }: ClaimedRun): number {
  return a.priority - b.priority || a.readyAt - b.readyAt || (a.runId < b.runId ? -1 : 1);
}
