import type { Log } from "../core/log.ts";

/** What a step's function is given. */
export interface StepContext {
  /**
   * Aborts when the attempt takes longer than its `timeout`, when the run is cancelled, times out or fails, or when it is
   * no longer held by this worker. Pass it on. What a function that ignores it does later is not recorded, and changes
   * nothing: past its `timeout` it is given up at once, else 30 s after the abort.
   */
  readonly signal: AbortSignal;
  /**
   * The same for every attempt at this step, by whatever worker, and for no other step: pass it to whom you call. A step that
   * was undone, and is done again since the run was redriven, has another.
   */
  readonly idempotencyKey: string;
  /**
   * Number of this attempt at the step, from 1. It goes on when the step is tried again in a new attempt of the run, and
   * begins anew when an operator retries the run. An attempt that ended with its worker is made again under its number.
   */
  readonly attempt: number;
  /**
   * What an earlier attempt at this step last told `heartbeat`, also one that ended with its worker; `undefined` where none
   * has. Of details told within 5 s only the newest is sure to be kept, and the last before a crash may be lost.
   */
  readonly progress: unknown;
  /**
   * Says how far the step has come. Returns at once and never throws: the details (any value that a step may return) are
   * recorded at most every 5 s, the newest of them, and are dropped if they cannot be.
   */
  readonly heartbeat: (details?: unknown) => void;
  /** The log of `createPawl`, which says with each line which run it is about. */
  readonly log: Log;
  /**
   * A stream of the run, to write to while the step runs. What is written stays, also if this attempt fails: each item says
   * which step and attempt wrote it. @throws {PawlError} `INVALID_NAME`
   */
  readonly stream: <Value = unknown>(name: string) => StepStreamWriter<Value>;
}

/** What a step's `undo` is given beside the step's result. */
export interface UndoContext {
  /** The one that the step was given: it tells what was done under it. For calls of its own, an undo adds to it. */
  readonly idempotencyKey: string;
  /**
   * Nobody knows whether the step has happened, or how much of it: its worker died in it, it exceeded its timeout, or it
   * ended otherwise than by returning after it was told to stop. The result is `undefined` then.
   */
  readonly inDoubt: boolean;
  /** Aborts when the run is no longer held by this worker. */
  readonly signal: AbortSignal;
  /** Number of this attempt at the undo, from 1. One that ended with its worker is made again under its number. */
  readonly attempt: number;
  readonly log: Log;
}

/** Writes to a stream from inside of a step. */
export interface StepStreamWriter<Value = unknown> {
  /**
   * Resolves when it is stored; what is written meanwhile is stored together with the next. Await the last write, or all of
   * them where the source may be faster than the database.
   * @throws {PawlError} `INVALID_PAYLOAD`; `STREAM_CLOSED`; `STEP_ENDED` after this attempt has returned, exceeded its timeout
   * or was given up; `LEASE_LOST` or `RUN_ENDED` when the run is no longer held
   */
  write(value: Value): Promise<void>;
}
