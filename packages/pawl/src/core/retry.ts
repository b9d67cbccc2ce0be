import { parseDuration, type Duration } from "./duration.ts";
import {
  checkDuration,
  checkFlag,
  checkInteger,
  checkObject,
  checkOneOf,
  checkOptions,
  type Check,
} from "./options.ts";
import type { Random } from "./random.ts";

/** When to try again, and how often. */
export interface RetryOptions {
  /** Tries in all, the first included. Default 3; 1 means no second try. */
  readonly attempts?: number;
  /** `exponential`: each pause is `factor` times the one before. Default `exponential`. */
  readonly backoff?: "exponential" | "fixed";
  /** The first pause. Default `"1s"`; 0 tries again at once. */
  readonly initial?: Duration;
  /** The longest pause. Default `"5m"`. */
  readonly max?: Duration;
  /** Default 2. */
  readonly factor?: number;
  /** Takes a random length from half the pause to all of it, so that failures do not come back together. Default true. */
  readonly jitter?: boolean;
}

export interface RetryPolicy {
  readonly attempts: number;
  readonly initialMs: number;
  readonly maxMs: number;
  /** 1: every pause is the same. */
  readonly factor: number;
  readonly jitter: boolean;
}

const checkFactor: Check = (value) =>
  typeof value === "number" && value >= 1 && value <= 1_000 ? null : "must be a number from 1 to 1000";

/** Whether these are retry options; for use among the checks of other options. */
export function checkRetry(what: string): Check {
  return (value) => {
    if (checkObject(value) !== null) return checkObject(value);
    checkOptions(`${what}'s retry`, value, {
      attempts: checkInteger(1, 1_000),
      backoff: checkOneOf("exponential", "fixed"),
      initial: checkDuration,
      max: checkDuration,
      factor: checkFactor,
      jitter: checkFlag,
    });
    return null;
  };
}

export function createRetryPolicy(options: RetryOptions = {}): RetryPolicy {
  return {
    attempts: options.attempts ?? 3,
    initialMs: parseDuration(options.initial ?? "1s"),
    maxMs: parseDuration(options.max ?? "5m"),
    factor: options.backoff === "fixed" ? 1 : (options.factor ?? 2),
    jitter: options.jitter ?? true,
  };
}

/** The pause after this many failures. */
export function retryDelayMs(policy: RetryPolicy, failures: number, random: Random): number {
  // Nought times infinity is not a number.
  const grownMs = policy.initialMs === 0 ? 0 : policy.initialMs * policy.factor ** (failures - 1);
  const pauseMs = Math.min(policy.maxMs, grownMs);
  return Math.round(policy.jitter ? pauseMs * (0.5 + random.next() / 2) : pauseMs);
}

/** Throw it, from a step or a workflow, where trying again is of no use: the run fails at once. */
export class NonRetryableError extends Error {
  override readonly name: string = "NonRetryableError";
  readonly retryable = false;
}

/** Whether trying again may help. Reads the mark, not the class, so that it holds for errors read back from the history. */
export function isRetryable(error: unknown): boolean {
  try {
    return !(error instanceof Error && "retryable" in error && error.retryable === false);
  } catch {
    return true;
  }
}
