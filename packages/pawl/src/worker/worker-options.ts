import { parseDuration, type Duration } from "../core/duration.ts";
import {
  checkDurationFrom,
  checkInteger,
  checkList,
  checkName,
  checkOptions,
  type Check,
  type Rule,
} from "../core/options.ts";
import { isWorkflow } from "../core/workflow-ref.ts";
import type { Workflow } from "../runtime/workflow.ts";

/** What a worker executes, from where, and how much at once. */
export interface WorkerOptions {
  /** What it can execute. It never takes runs of other workflows, or of other versions of these. */
  readonly workflows: readonly Workflow[];
  /** Where it takes runs from. Default `["default"]`. */
  readonly queues?: readonly string[];
  /** How many runs it executes at once. Default 200. Runs that sleep or wait do not count. */
  readonly concurrency?: number;
  /**
   * How many runs that sleep or wait it keeps in memory, as far as they are not too large: one that it gets again goes on
   * without its history being read and replayed. Default 1,000; 0 keeps none.
   */
  readonly stickyRuns?: number;
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
  readonly stickyRuns: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly pollMs: number;
  readonly sampleMs: number;
}

/** @throws {PawlError} `INVALID_OPTION` */
export function readWorkerOptions(options: WorkerOptions): WorkerSettings {
  const given = checkOptions(
    "worker",
    options,
    {
      workflows: (value) =>
        checkList(checkWorkflow, 10_000)(value) ?? twinsFault(value as readonly Workflow[]),
      queues: checkList(checkName, 10_000),
      concurrency: checkInteger(1, 100_000),
      stickyRuns: checkInteger(0, 1_000_000),
      lease: checkDurationFrom("100ms", "1d"),
      heartbeat: checkDurationFrom("1ms", "12h"),
      pollInterval: checkDurationFrom("1ms", "1d"),
      sampleInterval: checkDurationFrom("0ms", "1d"),
    },
    { required: ["workflows"], rules: [heartbeatRule] },
  );
  const leaseMs = parseDuration(given.lease ?? defaultLease);
  return {
    // Copies: the caller's lists may change later.
    workflows: [...given.workflows],
    queues: [...new Set(given.queues ?? ["default"])],
    concurrency: given.concurrency ?? 200,
    stickyRuns: given.stickyRuns ?? 1_000,
    leaseMs,
    heartbeatMs: parseDuration(given.heartbeat ?? Math.floor(leaseMs / 3)),
    pollMs: parseDuration(given.pollInterval ?? "1s"),
    sampleMs: parseDuration(given.sampleInterval ?? "30s"),
  };
}

const defaultLease = "15s";

const heartbeatRule: Rule = {
  of: ["heartbeat", "lease"],
  check({ heartbeat, lease = defaultLease }) {
    if (heartbeat === undefined) return null;
    const isOften = parseDuration(heartbeat as Duration) <= parseDuration(lease as Duration) / 2;
    return isOften ? null : { kind: "wrong", option: "heartbeat", fault: "must be at most half the lease" };
  },
};

/** Unlike a `ref` it has code, and what the engine must know of it. */
const checkWorkflow: Check = (value) => {
  if (!isWorkflow(value)) return "must be a workflow; is it undefined through a circular import?";
  const { call, retry, crashLimit } = value as Partial<Workflow>;
  const isWhole = typeof call === "function" && typeof retry === "object" && Number.isInteger(crashLimit);
  return isWhole ? null : "must be made with workflow(): a ref has no code to execute";
};

function twinsFault(workflows: readonly Workflow[]): string | null {
  const seen = new Map<string, Workflow>();
  for (const workflow of workflows) {
    const label = `${workflow.name} ${workflow.version}`;
    if ((seen.get(label) ?? workflow) !== workflow)
      return `name two different workflows ${label}: give one another name or version`;
    seen.set(label, workflow);
  }
  return null;
}
