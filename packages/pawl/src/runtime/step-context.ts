import type { Log } from "../core/log.ts";

/** What a step's function is given. */
export interface StepContext {
  /**
   * Aborts when the run is cancelled, times out, or is no longer held by this worker. Pass it on: a step that ignores it
   * is given up 30 s after the abort, and whatever it still does is not recorded.
   */
  readonly signal: AbortSignal;
  /** The same for every attempt at this step, by whatever worker, and for no other step: pass it to whom you call. */
  readonly idempotencyKey: string;
  /** Number of this execution of the run, from 1. */
  readonly attempt: number;
  readonly log: Log;
}
