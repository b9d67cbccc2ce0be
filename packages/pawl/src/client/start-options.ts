import type { Duration } from "../core/duration.ts";
import { isDate } from "../core/instant.ts";
import {
  checkDuration,
  checkInteger,
  checkName,
  checkOneOf,
  checkOptions,
  exclude,
  type Check,
} from "../core/options.ts";
import { checkRetry, type RetryOptions } from "../core/retry.ts";

export interface StartOptions {
  /** Makes the start idempotent: one run per key, for ever. Default: none, every start is a run of its own. */
  readonly key?: string;
  /**
   * What a second start with the key gets: the run that is there (`"return"`, the default), or `KEY_CONFLICT`
   * (`"reject"`). With another workflow, version or input it is `KEY_CONFLICT` in any case.
   */
  readonly onConflict?: "return" | "reject";
  /** Default: the workflow's queue. */
  readonly queue?: string;
  /** Lower goes first. Default 0. */
  readonly priority?: number;
  /** Not before this instant. Default: at once; so does an instant that has passed. */
  readonly at?: Date;
  /** Not before this long from now. Default 0: at once. */
  readonly delay?: Duration;
  /**
   * Ends as `timed_out` when it takes longer than this, any delay included. A step that ignores its `AbortSignal` is
   * given up 30 s after that. Default: the workflow's timeout.
   */
  readonly timeout?: Duration;
  /** Ends as `expired` unless a worker has begun it by then, any delay included. Default: never. */
  readonly expiresIn?: Duration;
  /**
   * When to try again after a failed attempt, for this run alone: replaces the workflow's policy as a whole, all but its
   * `retryIf`. Default: the workflow's.
   */
  readonly retry?: RetryOptions;
}

const checkInstant: Check = (value) => (isDate(value) ? null : "must be a valid Date");

/** @throws {PawlError} `INVALID_OPTION` */
export function readStartOptions(options: StartOptions): StartOptions {
  return checkOptions(
    "start",
    options,
    {
      key: checkName,
      onConflict: checkOneOf("return", "reject"),
      queue: checkName,
      priority: checkInteger(-(2 ** 31), 2 ** 31 - 1),
      at: checkInstant,
      delay: checkDuration,
      timeout: checkDuration,
      expiresIn: checkDuration,
      retry: checkRetry,
    },
    { rules: [exclude("delay", "at")] },
  );
}
