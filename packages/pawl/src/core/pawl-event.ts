import type { RunId } from "./ids.ts";
import type { Log } from "./log.ts";
import type { RecordedError } from "./recorded-error.ts";
import type { ParkReason } from "./run-status.ts";

/** Which run an event is about. */
interface AboutRun {
  readonly runId: RunId;
  readonly workflow: string;
  readonly version: number;
  readonly queue: string;
}

/** A run in a worker's hands. */
interface AboutHeldRun extends AboutRun {
  readonly workerId: string;
  /** Number of this execution, from 1. */
  readonly attempt: number;
}

interface AboutWorker {
  readonly workerId: string;
}

/** A step of a run that is executed now. */
export interface StepPlace {
  readonly runId: RunId;
  /** The step's name, and which occurrence of it where there are several. */
  readonly step: string;
}

/**
 * What `onEvent` is told, for metrics and alerts. Names and fields are public: more may come, none is renamed.
 * Each is told once at most, by the process that saw it, after the store has confirmed it.
 */
export type PawlEvent = { readonly at: Date } & (
  | ({ readonly kind: "run.started"; readonly key: string | null } & AboutRun)
  /** `waitedMs`: how long it stood ready before this worker took it. */
  | ({ readonly kind: "run.claimed"; readonly waitedMs: number } & AboutHeldRun)
  /** `durationMs`: since the run was created. */
  | ({
      readonly kind: "run.completed" | "run.cancelled" | "run.timed_out";
      readonly durationMs: number;
    } & AboutHeldRun)
  | ({
      readonly kind: "run.failed";
      readonly durationMs: number;
      readonly error: RecordedError | null;
    } & AboutHeldRun)
  /** The run has let go of its worker. `dueAt`: when it wakes at the latest; null: only when it is told something. */
  | ({
      readonly kind: "run.parked";
      readonly reason: Exclude<ParkReason, "blocked">;
      readonly dueAt: Date | null;
    } & AboutHeldRun)
  /** Its code does not fit its history. It is tried again at `dueAt`. */
  | ({ readonly kind: "run.blocked"; readonly dueAt: Date | null } & AboutHeldRun)
  /** Given back to be continued elsewhere, because this worker stops. */
  | ({ readonly kind: "run.released" } & AboutHeldRun)
  /** `nextDelayMs`: when it is tried again; null where something else was ordered meanwhile, such as a cancel. */
  | ({
      readonly kind: "attempt.failed";
      readonly error: RecordedError | null;
      readonly nextDelayMs: number | null;
    } & AboutHeldRun)
  | ({ readonly kind: "step.completed"; readonly step: string; readonly durationMs: number } & AboutHeldRun)
  | ({
      readonly kind: "step.failed";
      readonly step: string;
      readonly durationMs: number;
      readonly error: RecordedError | null;
    } & AboutHeldRun)
  /** The run is no longer this worker's: peers go on with it. */
  | ({ readonly kind: "lease.lost" } & AboutHeldRun)
  | ({
      readonly kind: "worker.started";
      readonly queues: readonly string[];
      readonly concurrency: number;
    } & AboutWorker)
  | ({ readonly kind: "worker.stopped" } & AboutWorker)
  /** The store no longer counts it as alive: it lets go of its runs and goes on under a new id. */
  | ({ readonly kind: "worker.expired"; readonly held: number; readonly wasBlocked: boolean } & AboutWorker)
  /** `steps`: those that ran meanwhile; one of them is the likely cause. */
  | ({
      readonly kind: "worker.blocked_loop";
      readonly blockedMs: number;
      readonly steps: readonly StepPlace[];
    } & AboutWorker)
  /** What this worker's sweep recovered from dead workers, and ended because its time was up. */
  | ({
      readonly kind: "sweep.recovered";
      readonly expiredWorkers: number;
      readonly recovered: number;
      readonly failed: number;
      readonly expiredRuns: number;
    } & AboutWorker)
  /** Notifications no longer arrive: polling alone finds work. `isPooled`: a transaction pooler is in between. */
  | { readonly kind: "listen.lost"; readonly isPooled: boolean }
  | { readonly kind: "listen.restored" }
);

/** Tells of an event. Where nobody listens it is `undefined`: `emit?.({ … })` then makes nothing. */
export type Emit = (event: PawlEvent) => void;

/** Calls the hook, whose failures are logged and change nothing. */
export function createEmit(onEvent: (event: PawlEvent) => unknown, log: Log): Emit {
  const report = (kind: string, error: unknown): void =>
    log.warn("The hook onEvent failed.", { event: kind, error });
  return (event) => {
    try {
      const answer = onEvent(event);
      if (answer instanceof Promise) answer.catch((error: unknown) => report(event.kind, error));
    } catch (error) {
      report(event.kind, error);
    }
  };
}
