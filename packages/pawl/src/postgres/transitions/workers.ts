import type { Heartbeat, HeartbeatAnswer, NewWorker, SweepAnswer } from "../../store/worker-record.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0006_workers.sql, as for all below. */
export const registerWorker = transition(
  "register_worker",
  "select {schema}.register_worker_v1($1, $2, $3, $4, $5, $6)",
);

export const heartbeat = transition(
  "heartbeat",
  "select run_id, news, now_ms from {schema}.heartbeat_v1($1, $2, $3, $4, $5)",
);

export const retireWorker = transition("retire_worker", "select {schema}.retire_worker_v1($1, $2)");

export const sweep = transition(
  "sweep",
  `select expired_workers, recovered, failed, expired_runs, rescued, after_id, more
     from {schema}.sweep_v1($1, $2, $3)`,
);

interface NewsRow extends Row {
  readonly run_id: string | null;
  readonly news: "returned" | "lost" | "told" | "alive" | "expired";
  readonly now_ms: number | null;
}

export interface SweptRow extends Row {
  readonly expired_workers: number;
  readonly recovered: number;
  readonly failed: number;
  readonly expired_runs: number;
  readonly rescued: number;
  readonly after_id: string | null;
  readonly more: boolean;
}

export function registerValues(worker: NewWorker): readonly unknown[] {
  return [worker.id, worker.leaseMs, worker.host, worker.pid, worker.queues, worker.concurrency];
}

export function heartbeatValues(
  shard: number,
  { workerId, held, claimsKnownTo }: Heartbeat,
): readonly unknown[] {
  return [shard, workerId, held.map((lease) => lease.runId), held.map((lease) => lease.epoch), claimsKnownTo];
}

export function decodeHeartbeat(rows: readonly NewsRow[]): HeartbeatAnswer {
  const runsWith = (news: NewsRow["news"]): readonly string[] =>
    rows.flatMap((row) => (row.news === news && row.run_id !== null ? [row.run_id] : []));
  const last = rows.at(-1);
  return {
    alive: last?.news === "alive",
    told: runsWith("told"),
    lost: runsWith("lost"),
    returned: runsWith("returned").length,
    now: last?.now_ms ?? 0,
  };
}

export function decodeSwept(row: SweptRow): SweepAnswer {
  return {
    expiredWorkers: row.expired_workers,
    recovered: row.recovered,
    failed: row.failed,
    expiredRuns: row.expired_runs,
    rescued: row.rescued,
    after: row.after_id,
    more: row.more,
  };
}
