import type {
  Heartbeat,
  HeartbeatAnswer,
  LongStep,
  NewWorker,
  SweepAnswer,
  WorkerRecord,
  WorkerSample,
} from "../../store/worker-record.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0006_workers.sql, as for all below. */
export const registerWorker = transition(
  "register_worker",
  "select {schema}.register_worker_v1($1, $2, $3, $4, $5, $6, $7, $8)",
);

export const heartbeat = transition(
  "heartbeat",
  "select run_id, news, now_ms, lease_ms from {schema}.heartbeat_v1($1, $2, $3, $4, $5, $6, $7, $8)",
);

export const retireWorker = transition("retire_worker", "select {schema}.retire_worker_v1($1, $2)");

export const sweep = transition(
  "sweep",
  `select expired_workers, recovered, failed, expired_runs, rescued, after_id, more
     from {schema}.sweep_v1($1, $2, $3)`,
);

export const listWorkers = transition(
  "list_workers",
  `select id, host, pid, queues, workflows, concurrency, lease_ms, settings, started_ms, heard_ms, ended_ms, is_alive,
          long_steps, sample_ms, sample_held, memory_bytes, cpu_ratio, lag_ms
     from {schema}.list_workers_v1($1, $2)`,
);

interface NewsRow extends Row {
  readonly run_id: string | null;
  readonly news: "returned" | "lost" | "told" | "alive" | "expired";
  readonly now_ms: number | null;
  readonly lease_ms: number | null;
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

export interface WorkerRow extends Row {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly queues: readonly string[];
  readonly workflows: readonly string[];
  readonly concurrency: number;
  readonly lease_ms: number;
  readonly settings: string | null;
  readonly started_ms: number;
  readonly heard_ms: number;
  readonly ended_ms: number | null;
  readonly is_alive: boolean;
  readonly long_steps: string | null;
  readonly sample_ms: number | null;
  readonly sample_held: number;
  readonly memory_bytes: number | null;
  readonly cpu_ratio: number | null;
  readonly lag_ms: number | null;
}

export function registerValues(worker: NewWorker): readonly unknown[] {
  const { id, leaseMs, host, pid, queues, concurrency, workflows = [], settings = {} } = worker;
  return [id, leaseMs, host, pid, queues, concurrency, workflows, JSON.stringify(settings)];
}

export function heartbeatValues(shard: number, beat: Heartbeat): readonly unknown[] {
  const { workerId, held, claimsKnownTo, leaseMs, longSteps = [], sample } = beat;
  return [
    shard,
    workerId,
    held.map((lease) => lease.runId),
    held.map((lease) => lease.epoch),
    claimsKnownTo,
    longSteps.length === 0 ? null : JSON.stringify(longSteps),
    sample === undefined ? null : encodeSample(sample),
    leaseMs ?? null,
  ];
}

function encodeSample({ held, memoryBytes, cpuRatio, lagMs }: WorkerSample): string {
  return JSON.stringify({ held, memory_bytes: memoryBytes, cpu_ratio: cpuRatio, lag_ms: lagMs });
}

export function decodeHeartbeat(rows: readonly NewsRow[]): HeartbeatAnswer {
  const runsWith = (news: NewsRow["news"]): readonly string[] =>
    rows.flatMap((row) => (row.news === news && row.run_id !== null ? [row.run_id] : []));
  const last = rows.at(-1);
  return {
    alive: last?.news === "alive",
    leaseMs: last?.news === "alive" ? last.lease_ms : null,
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

export function decodeWorker(row: WorkerRow): WorkerRecord {
  const { id, host, pid, queues, workflows, concurrency } = row;
  return {
    id,
    host,
    pid,
    queues,
    workflows,
    concurrency,
    leaseMs: row.lease_ms,
    settings: JSON.parse(row.settings ?? "{}") as WorkerRecord["settings"],
    startedAt: row.started_ms,
    heardAt: row.heard_ms,
    endedAt: row.ended_ms,
    isAlive: row.is_alive,
    longSteps: JSON.parse(row.long_steps ?? "[]") as readonly LongStep[],
    sample: row.sample_ms === null ? null : decodeSample(row, row.sample_ms),
  };
}

function decodeSample(row: WorkerRow, at: number): WorkerRecord["sample"] {
  const { sample_held: held, memory_bytes: memoryBytes, cpu_ratio: cpuRatio, lag_ms: lagMs } = row;
  return { at, held, memoryBytes: memoryBytes ?? 0, cpuRatio: cpuRatio ?? 0, lagMs: lagMs ?? 0 };
}
