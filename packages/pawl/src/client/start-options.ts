import type { Duration } from "../core/duration.ts";
import { isDate } from "../core/instant.ts";
import {
  checkDuration,
  checkInteger,
  checkName,
  checkOneOf,
  checkOptions,
  checkTags,
  exclude,
  type Check,
  type Rule,
} from "../core/options.ts";
import { checkRetry, type RetryOptions } from "../core/retry.ts";
import { assertTransaction, type Transaction } from "../core/transaction.ts";

/** What runs that are started together may have in common. */
interface SharedStartOptions {
  /** Default: the workflow's queue. */
  readonly queue?: string;
  /** Lower goes first. Default 0. */
  readonly priority?: number;
  /** Not before this instant. Default: at once; so does an instant that has passed. */
  readonly at?: Date;
  /** Not before this long from now. Default 0: at once. */
  readonly delay?: Duration;
  /** Ends as `timed_out` if it has not ended by then. A step that ignores its `AbortSignal` is given up 30 s after that. */
  readonly deadline?: Date;
  /** The same, this long after it may begin: any delay comes first. Default: the workflow's timeout. */
  readonly timeout?: Duration;
  /** Ends as `expired` unless a worker has begun it by then. Default: never. */
  readonly expiresAt?: Date;
  /** The same, this long after it may begin: any delay comes first. */
  readonly expiresIn?: Duration;
  /** Words to find it by, at most 100: see `list`. Not secret: no codec hides them. Default: none. */
  readonly tags?: readonly string[];
  /**
   * When to try again after a failed attempt, for this run alone: replaces the workflow's policy as a whole, all but its
   * `retryIf`. Default: the workflow's.
   */
  readonly retry?: RetryOptions;
  /**
   * What a second start with the key gets: the run that is there (`"return"`, the default), or `KEY_CONFLICT`
   * (`"reject"`). With another workflow, version or input it is `KEY_CONFLICT` in any case.
   */
  readonly onConflict?: "return" | "reject";
}

interface OwnStartOptions extends SharedStartOptions {
  /** Makes the start idempotent: one run per key, for ever. Default: none, every start is a run of its own. */
  readonly key?: string;
}

interface TransactionOption {
  /**
   * A transaction of yours: what is started exists only once it commits, and until then there is no result to wait for.
   * Default: it is started at once, by itself.
   */
  readonly tx?: Transaction;
}

/** What `start` takes after the input. */
export interface StartOptions extends OwnStartOptions, TransactionOption {}

/** For all runs of a `startMany`, unless one of them says otherwise. */
export interface StartManyOptions extends SharedStartOptions, TransactionOption {}

/** One run of a `startMany`. */
export type StartItem<Input> = OwnStartOptions &
  (undefined extends Input ? { readonly input?: Input } : { readonly input: Input });

/** Of a `signalOrStart`, whatever its workflow. */
export interface SignalOrStartOptions extends Omit<OwnStartOptions, "onConflict">, TransactionOption {
  /** The run that has it is signalled, or started with it: one run per key, for ever. */
  readonly key: string;
  /** The name of the signal. */
  readonly signal: string;
  /** What the signal carries. */
  readonly payload?: unknown;
  /** The sender's retries with one key are one signal. Default: none, every call sends one. */
  readonly idempotencyKey?: string;
  /** What a run that is started gets. One that is there keeps its own. */
  readonly input?: unknown;
}

const checkInstant: Check = (value) => (isDate(value) ? null : "must be a valid Date");

const sharedChecks = {
  queue: checkName,
  priority: checkInteger(-(2 ** 31), 2 ** 31 - 1),
  at: checkInstant,
  delay: checkDuration,
  deadline: checkInstant,
  timeout: checkDuration,
  expiresAt: checkInstant,
  expiresIn: checkDuration,
  tags: checkTags,
  retry: checkRetry,
  onConflict: checkOneOf("return", "reject"),
};
const ownChecks = { ...sharedChecks, key: checkName };
const any: Check = () => null;
const startChecks = { ...ownChecks, tx: any };
const startManyChecks = { ...sharedChecks, tx: any };
const itemChecks = { ...ownChecks, input: any };

/** Otherwise it could never begin. */
const startsFirst: Rule = {
  of: ["at", "expiresAt"],
  check: ({ at, expiresAt }) =>
    at instanceof Date && expiresAt instanceof Date && expiresAt <= at
      ? { kind: "wrong", option: "expiresAt", fault: 'must be later than "at"' }
      : null,
};

/** Without a key there is nothing to be in conflict with. */
const conflictNeedsKey: Rule = {
  of: ["onConflict", "key"],
  check: ({ onConflict, key }) =>
    onConflict !== undefined && key === undefined
      ? { kind: "wrong", option: "onConflict", fault: 'needs a "key"' }
      : null,
};

const rules = [
  exclude("delay", "at"),
  exclude("timeout", "deadline"),
  exclude("expiresIn", "expiresAt"),
  startsFirst,
];
const ownRules = { rules: [...rules, conflictNeedsKey] };
const noOptions: StartOptions = {};

/** @throws {PawlError} `INVALID_OPTION`, `INVALID_TRANSACTION` */
export function readStartOptions(options: StartOptions | undefined): StartOptions {
  if (options === undefined) return noOptions;
  const given = checkOptions("start", options, startChecks, ownRules);
  if (given.tx !== undefined) assertTransaction("start", given.tx);
  return given;
}

/** @throws {PawlError} `INVALID_OPTION`, `INVALID_TRANSACTION` */
export function readStartManyOptions(options: StartManyOptions): StartManyOptions {
  const given = checkOptions("startMany", options, startManyChecks, { rules });
  if (given.tx !== undefined) assertTransaction("startMany", given.tx);
  return given;
}

/** @throws {PawlError} `INVALID_OPTION`, which says which item it is */
export function readStartItem(item: StartItem<unknown>, index: number): StartItem<unknown> {
  return checkOptions(() => `startMany's item ${index}`, item, itemChecks, ownRules);
}

/**
 * What starts the run if there is none, and what is signalled in any case.
 * @throws {PawlError} `INVALID_OPTION`, `INVALID_TRANSACTION`
 */
export function readSignalOrStart(options: SignalOrStartOptions): SignalOrStartOptions {
  const { onConflict: _, ...checks } = ownChecks;
  const given = checkOptions(
    "signalOrStart",
    options,
    { ...checks, tx: any, input: any, payload: any, signal: checkName, idempotencyKey: checkName },
    { rules, required: ["key", "signal"] },
  );
  if (given.tx !== undefined) assertTransaction("signalOrStart", given.tx);
  return given;
}
