import type { Duration } from "../core/duration.ts";
import {
  checkDuration,
  checkInteger,
  checkOneOf,
  checkOptions,
  invalidOption,
  type Check,
} from "../core/options.ts";
import { assertTransaction, type Transaction } from "../core/transaction.ts";

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
   * A transaction of yours: the run exists only once it commits, and until then there is no result to wait for.
   * Default: the run is started at once, by itself.
   */
  readonly tx?: Transaction;
}

const checkInstant: Check = (value) =>
  value instanceof Date && !Number.isNaN(value.getTime()) ? null : "must be a valid Date";
const checkName: Check = (value) => (typeof value === "string" ? null : "must be a string");

/** @throws {PawlError} `INVALID_OPTION`, `INVALID_TRANSACTION` */
export function checkStartOptions(options: StartOptions): void {
  checkOptions("start", options, {
    key: checkName,
    onConflict: checkOneOf("return", "reject"),
    queue: checkName,
    priority: checkInteger(-(2 ** 31), 2 ** 31 - 1),
    at: checkInstant,
    delay: checkDuration,
    timeout: checkDuration,
    expiresIn: checkDuration,
    tx: () => null,
  });
  if (options.tx !== undefined) assertTransaction("start", options.tx);
  if (options.at !== undefined && options.delay !== undefined) {
    throw invalidOption("start", "delay", 'cannot be given together with "at"');
  }
}
