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
  /**
   * A stream of the run, to write to while the step runs. What is written stays, also if this attempt fails: each item says
   * which step and attempt wrote it. @throws {PawlError} `INVALID_NAME`
   */
  readonly stream: <Value = unknown>(name: string) => StepStreamWriter<Value>;
}

/** Writes to a stream from inside of a step. */
export interface StepStreamWriter<Value = unknown> {
  /**
   * Resolves when it is stored; what is written meanwhile is stored together with the next. Await the last write, or all of
   * them where the source may be faster than the database.
   * @throws {PawlError} `INVALID_PAYLOAD`; `STREAM_CLOSED`; `LEASE_LOST` or `RUN_ENDED` when the run is no longer held
   */
  write(value: Value): Promise<void>;
}
