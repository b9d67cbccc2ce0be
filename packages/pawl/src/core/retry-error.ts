import { parseDuration, type Duration } from "./duration.ts";
import { isDate } from "./instant.ts";
import { checkDuration, checkOptions, type Check } from "./options.ts";
import { longestPauseMs } from "./retry.ts";

/** Throw it, from a step or a workflow, where trying again is of no use: the run fails at once. */
export class NonRetryableError extends Error {
  override readonly name: string = "NonRetryableError";
  readonly retryable = false;
}

const finalMark = { value: false, writable: true, enumerable: true, configurable: true };

/** The same error, marked as one that trying again would only bring again. One that cannot be marked is the cause of another. */
export function asFinal(thrown: unknown): Error {
  if (!(thrown instanceof Error)) return new NonRetryableError("Something was thrown.", { cause: thrown });
  if (Reflect.defineProperty(thrown, "retryable", finalMark)) return thrown;
  return new NonRetryableError(thrown.message, { cause: thrown });
}

const checkAfter: Check = (value) =>
  isDate(value) || checkDuration(value) === null
    ? null
    : 'must be a duration, such as "30s", or a valid Date';
const checks = { after: checkAfter, cause: () => null };

/** When to try again. */
export interface RetryAfterOptions {
  /** How long to wait from now, or until when. At most a year; an instant in the past is now. */
  readonly after: Duration | Date;
  readonly cause?: unknown;
}

/**
 * Throw it, from a step or a workflow, where it is known when trying again may help, as from a `Retry-After` header. The
 * next attempt begins exactly then, whatever the retry policy's pauses are. It counts as a failed attempt like any other.
 * @throws {PawlError} `INVALID_OPTION` if `after` is neither a duration nor a valid date
 * @example
 * throw new RetryAfterError("The bank is busy", { after: "90s" });
 */
export class RetryAfterError extends Error {
  override readonly name: string = "RetryAfterError";
  /** The pause, if it is known as one. */
  readonly retryAfterMs?: number;
  /** The instant, if it is known as one: ms since 1970. */
  readonly retryAt?: number;

  constructor(message: string, options: RetryAfterOptions) {
    const { after, ...rest } = checkOptions("RetryAfterError", options, checks, { required: ["after"] });
    super(message, rest);
    if (isDate(after)) this.retryAt = Math.max(0, after.getTime());
    else this.retryAfterMs = Math.min(longestPauseMs, parseDuration(after));
  }
}

/** When an error wants to be retried. Reads the marks, not the class, so that it holds for errors read back from the history. */
export interface RetryMarks {
  /** False: trying again is of no use. */
  readonly retryable?: false;
  readonly retryAfterMs?: number;
  readonly retryAt?: number;
}

export function retryMarksOf(thrown: unknown): RetryMarks {
  const retryAfterMs = read(thrown, "retryAfterMs");
  const retryAt = read(thrown, "retryAt");
  return {
    ...(read(thrown, "retryable") === false && { retryable: false }),
    ...(isMs(retryAfterMs) && { retryAfterMs: Math.min(longestPauseMs, Math.ceil(retryAfterMs)) }),
    ...(isMs(retryAt) && { retryAt: Math.ceil(retryAt) }),
  };
}

function isMs(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

/** Only objects have marks, and a getter may throw. */
function read(thrown: unknown, mark: keyof RetryMarks): unknown {
  if (typeof thrown !== "object" || thrown === null) return undefined;
  try {
    return (thrown as RetryMarks)[mark];
  } catch {
    return undefined;
  }
}
