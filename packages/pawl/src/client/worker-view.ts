import type { RunId } from "../core/ids.ts";
import type { WorkerRecord, WorkerSample } from "../store/worker-record.ts";

/** A worker as the database knows it. */
export interface WorkerView {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly queues: readonly string[];
  /** What it can execute, as `name@version`. */
  readonly workflows: readonly string[];
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Versions and settings, as it was started. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly isAlive: boolean;
  readonly startedAt: Date;
  /** Its last sign of life. */
  readonly heardAt: Date;
  /** When it stopped or was found dead. */
  readonly endedAt: Date | null;
  /** Steps that had been running for longer than a heartbeat at its last sign of life: at most 50, the oldest first. */
  readonly longSteps: readonly { readonly runId: RunId; readonly step: string; readonly beganAt: Date }[];
  /** How it fared, as stored last; null until it was. */
  readonly sample: (WorkerSample & { readonly at: Date }) | null;
}

export function readWorker(record: WorkerRecord): WorkerView {
  const { startedAt, heardAt, endedAt, longSteps, sample } = record;
  return {
    ...record,
    startedAt: new Date(startedAt),
    heardAt: new Date(heardAt),
    endedAt: endedAt === null ? null : new Date(endedAt),
    longSteps: longSteps.map((step) => ({ ...step, beganAt: new Date(step.beganAt) })),
    sample: sample === null ? null : { ...sample, at: new Date(sample.at) },
  };
}
