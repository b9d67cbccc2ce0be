import type { Log } from "../core/log.ts";

/** What a step's function is given. */
export interface StepContext {
  /** Aborts when the run is cancelled, times out, or is no longer held by this worker. */
  readonly signal: AbortSignal;
  /** The same for every attempt at this step, by whatever worker, and for no other step: pass it to whom you call. */
  readonly idempotencyKey: string;
  /** Number of this execution of the run, from 1. */
  readonly attempt: number;
  readonly log: Log;
}
