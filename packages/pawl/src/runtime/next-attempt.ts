import type { Log } from "../core/log.ts";
import type { Random } from "../core/random.ts";
import { describeError, revive } from "../core/recorded-error.ts";
import { retryMarksOf } from "../core/retry-error.ts";
import { longestPauseMs, retryDelayMs } from "../core/retry.ts";
import type { Retrying } from "./step-options.ts";

/** When something is tried again: after a pause, or at an instant of the database's clock. */
export type NextAttempt =
  | { readonly delayMs: number; readonly dueAt: null }
  | { readonly delayMs: null; readonly dueAt: number };

interface RetryParts {
  readonly retrying: Retrying;
  readonly random: Random;
  readonly log: Log;
  /** The database's time, as far as it is known here. */
  readonly now: number;
}

/** Null: it is not tried again. What the error says goes before the policy's pauses, but not before its attempts. */
export function planNextAttempt(thrown: unknown, failures: number, parts: RetryParts): NextAttempt | null {
  const { policy } = parts.retrying;
  const { retryable, retryAfterMs, retryAt } = retryMarksOf(thrown);
  if (retryable === false || failures >= policy.attempts || !isWanted(thrown, parts)) return null;
  if (retryAfterMs !== undefined) return { delayMs: retryAfterMs, dueAt: null };
  if (retryAt !== undefined)
    return { delayMs: null, dueAt: Math.min(retryAt, Math.ceil(parts.now) + longestPauseMs) };
  return { delayMs: retryDelayMs(policy, failures, parts.random), dueAt: null };
}

/** A `retryIf` that cannot decide has not said that trying again helps. */
function isWanted(thrown: unknown, { retrying: { retryIf }, log }: RetryParts): boolean {
  if (retryIf === null) return true;
  try {
    const answer: unknown = retryIf(thrown);
    if (typeof answer === "boolean") return answer;
    // A promise's rejection would be nobody's.
    if (answer instanceof Promise) answer.catch(() => {});
    log.error("retryIf must return true or false: the error is not retried.", { returned: typeof answer });
  } catch (error) {
    log.error("retryIf threw: the error is not retried.", { error: revive(describeError(error)) });
  }
  return false;
}
