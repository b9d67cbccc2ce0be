import type { RunId } from "../core/ids.ts";
import { placeOfEvent } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
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
  readonly longSteps: readonly LongStepView[];
  /** How it fared, as stored last; null until it was. */
  readonly sample: (WorkerSample & { readonly at: Date }) | null;
}

/** A step that had been running for longer than a heartbeat. */
export interface LongStepView {
  readonly runId: RunId;
  readonly step: string;
  readonly beganAt: Date;
  /** What it last told `heartbeat`; `undefined` if that was nothing, more than 4 kB, or cannot be read here. */
  readonly progress: unknown;
}

export function readWorker(record: WorkerRecord, payloads: Payloads): WorkerView {
  const { startedAt, heardAt, endedAt, longSteps, sample } = record;
  return {
    ...record,
    startedAt: new Date(startedAt),
    heardAt: new Date(heardAt),
    endedAt: endedAt === null ? null : new Date(endedAt),
    longSteps: longSteps.map(({ runId, step, beganAt, progress, progressNotes }) => {
      const place = placeOfEvent(runId, { kind: "step_progressed", name: step });
      const read = (): unknown => payloads.decodeParsed(progress, progressNotes ?? null, place);
      return {
        runId,
        step,
        beganAt: new Date(beganAt),
        progress: progress === undefined ? progress : orNothing(read),
      };
    }),
    sample: sample === null ? null : { ...sample, at: new Date(sample.at) },
  };
}

/** A list of workers is worth having though some of it was written with another codec. */
function orNothing(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return undefined;
  }
}
