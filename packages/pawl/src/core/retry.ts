import { parseDuration, type Duration } from "./duration.ts";
import {
  checkDurationFrom,
  checkFlag,
  checkFunction,
  checkInteger,
  checkList,
  checkNested,
  checkNumber,
  checkOneOf,
  exclude,
  type Rule,
  type Check,
} from "./options.ts";
import type { Random } from "./random.ts";

/** When to try again, and how often. Pauses grow from `initial`, or are those of `delays`. */
export interface RetryOptions {
  /** Tries in all, the first included. Default 3, or one more than there are `delays`; 1 means no second try. */
  readonly attempts?: number;
  /** `exponential`: each pause is `factor` times the one before. Default `exponential`. */
  readonly backoff?: "exponential" | "fixed";
  /** The first pause. Default `"1s"`; 0 tries again at once. */
  readonly initial?: Duration;
  /** The longest pause. Default `"5m"`, or `initial` where that is longer. */
  readonly max?: Duration;
  /** Default 2. */
  readonly factor?: number;
  /** The pauses one by one, instead of `backoff`, `initial`, `max` and `factor`. The last one repeats. Default: none. */
  readonly delays?: readonly Duration[];
  /** Takes a random length from half the pause to all of it, so that failures do not come back together. Default true. */
  readonly jitter?: boolean;
}

/** The retry options of a workflow or a step, which have code to decide with. */
export interface WorkflowRetryOptions extends RetryOptions {
  /**
   * Whether trying again may help. Gets what the code threw; an error out of a step has its name, message, code and cause,
   * but not its class. One that throws, or answers with anything but true or false, counts as false, and is logged.
   * Default: every error is retried.
   */
  readonly retryIf?: (error: unknown) => boolean;
}

/** Retry options in numbers, as they are stored with a run that has its own. */
export interface RetryPolicy {
  readonly attempts: number;
  readonly initialMs: number;
  readonly maxMs: number;
  /** 1: every pause is the same. */
  readonly factor: number;
  /** The pauses one by one, if they do not follow from the other numbers. */
  readonly delaysMs: readonly number[] | null;
  readonly jitter: boolean;
}

/** No pause is longer. */
export const longestPauseMs = parseDuration("365d");
const mostDelays = 100;
const defaultMaxMs = parseDuration("5m");

const checkPause = checkDurationFrom("0ms", "365d");
const checks = {
  attempts: checkInteger(1, 1_000),
  backoff: checkOneOf("exponential", "fixed"),
  initial: checkPause,
  max: checkPause,
  factor: checkNumber(1, 1_000),
  delays: checkList(checkPause, mostDelays),
  jitter: checkFlag,
};
const maxRule: Rule = {
  of: ["initial", "max"],
  check: ({ initial, max }) =>
    isDuration(initial) && isDuration(max) && parseDuration(max) < parseDuration(initial)
      ? { kind: "wrong", option: "max", fault: 'must not be shorter than "initial"' }
      : null,
};

const rules = [
  maxRule,
  ...["backoff", "initial", "max", "factor"].map((option) => exclude(option, "delays")),
];

/** Whether these are retry options that can be stored. */
export const checkRetry: Check = checkNested(checks, { rules });

/** Whether these are retry options of a workflow. */
export const checkWorkflowRetry: Check = checkNested({ ...checks, retryIf: checkFunction }, { rules });

export function createRetryPolicy(options: RetryOptions = {}): RetryPolicy {
  const delaysMs = options.delays?.map((delay) => parseDuration(delay)) ?? null;
  const initialMs = parseDuration(options.initial ?? "1s");
  return {
    attempts: options.attempts ?? (delaysMs === null ? 3 : delaysMs.length + 1),
    initialMs,
    // Whoever asks for a long first pause, or for fixed ones, does not ask for five minutes.
    maxMs: options.max === undefined ? Math.max(initialMs, defaultMaxMs) : parseDuration(options.max),
    factor: options.backoff === "fixed" ? 1 : (options.factor ?? 2),
    delaysMs,
    jitter: options.jitter ?? true,
  };
}

/** The pause after this many failures. */
export function retryDelayMs(policy: RetryPolicy, failures: number, random: Random): number {
  const pauseMs = policy.delaysMs === null ? grownMs(policy, failures) : listedMs(policy.delaysMs, failures);
  return Math.round(policy.jitter ? pauseMs * (0.5 + random.next() / 2) : pauseMs);
}

function isDuration(value: unknown): value is Duration {
  return typeof value === "string" || typeof value === "number";
}

function grownMs({ initialMs, factor, maxMs }: RetryPolicy, failures: number): number {
  // Nought times infinity is not a number.
  return Math.min(maxMs, initialMs === 0 ? 0 : initialMs * factor ** (failures - 1));
}

function listedMs(delaysMs: readonly number[], failures: number): number {
  return delaysMs[Math.min(failures, delaysMs.length) - 1] ?? 0;
}
