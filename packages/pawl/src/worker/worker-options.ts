import { parseDuration, type Duration } from "../core/duration.ts";
import { assertName } from "../core/name.ts";
import {
  checkDuration,
  checkInteger,
  checkOptions,
  invalidOption,
  requireOptions,
  type Check,
} from "../core/options.ts";
import { assertWorkflow } from "../core/workflow-ref.ts";
import type { Workflow } from "../runtime/workflow.ts";

export interface WorkerOptions {
  /** What it can execute. It never takes runs of other workflows, or of other versions of these. */
  readonly workflows: readonly Workflow[];
  /** Where it takes runs from. Default `["default"]`. */
  readonly queues?: readonly string[];
  /** How many runs it executes at once. Default 100. Runs that sleep or wait do not count. */
  readonly concurrency?: number;
  /** How long after its last sign of life peers take over its runs. Default `"15s"`; at least 100 ms. */
  readonly lease?: Duration;
  /** How often it gives a sign of life. Default: a third of the lease; at most half. */
  readonly heartbeat?: Duration;
  /** How often it looks for work that no notification announced. Default `"1s"`; up to 5 times rarer while idle. */
  readonly pollInterval?: Duration;
  /** How often it stores its load, with a heartbeat. Default `"30s"`; 0 with every heartbeat. */
  readonly sampleInterval?: Duration;
}

export interface WorkerSettings {
  readonly workflows: readonly Workflow[];
  readonly queues: readonly string[];
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly pollMs: number;
  readonly sampleMs: number;
}

const shortestLeaseMs = 100;

const checkList: Check = (value) =>
  Array.isArray(value) && value.length > 0 ? null : "must be a list that is not empty";

/** @throws {PawlError} `INVALID_OPTION`, `INVALID_NAME` */
export function readWorkerOptions(options: WorkerOptions): WorkerSettings {
  checkOptions("worker", options, {
    workflows: checkList,
    queues: checkList,
    concurrency: checkInteger(1, 100_000),
    lease: checkDuration,
    heartbeat: checkDuration,
    pollInterval: checkDuration,
    sampleInterval: checkDuration,
  });
  requireOptions("worker", options, ["workflows"]);
  const queues = [...new Set(options.queues ?? ["default"])];
  for (const queue of queues) assertName("queue", queue);
  for (const workflow of options.workflows) assertWorkflow("worker", workflow);
  refuseTwins(options.workflows);

  const leaseMs = parseDuration(options.lease ?? "15s", "lease");
  const heartbeatMs = parseDuration(options.heartbeat ?? Math.floor(leaseMs / 3), "heartbeat");
  const pollMs = parseDuration(options.pollInterval ?? "1s", "pollInterval");
  if (leaseMs < shortestLeaseMs)
    throw invalidOption("worker", "lease", `must be at least ${shortestLeaseMs} ms`);
  if (heartbeatMs < 1 || heartbeatMs > leaseMs / 2) {
    throw invalidOption("worker", "heartbeat", "must be more than zero and at most half the lease");
  }
  if (pollMs < 1) throw invalidOption("worker", "pollInterval", "must be more than zero");
  return {
    workflows: options.workflows,
    queues,
    concurrency: options.concurrency ?? 100,
    leaseMs,
    heartbeatMs,
    pollMs,
    sampleMs: parseDuration(options.sampleInterval ?? "30s", "sampleInterval"),
  };
}

function refuseTwins(workflows: readonly Workflow[]): void {
  const seen = new Map<string, Workflow>();
  for (const workflow of workflows) {
    const label = `${workflow.name} ${workflow.version}`;
    if ((seen.get(label) ?? workflow) !== workflow) {
      throw invalidOption(
        "worker",
        "workflows",
        `name two different workflows ${label}: give one another name or version`,
      );
    }
    seen.set(label, workflow);
  }
}
