/** Stable names of everything that can go wrong. Add, never rename. */
export type ErrorCode =
  | "CLOSED"
  | "CODEC_FAILED"
  | "CODEC_MISSING"
  | "DATABASE"
  | "INTERNAL"
  | "INVALID_NAME"
  | "INVALID_OPTION"
  | "INVALID_PAYLOAD"
  | "INVALID_TRANSACTION"
  | "KEY_CONFLICT"
  | "LEASE_LOST"
  | "NESTED_REQUEST"
  | "NODE_FAILED"
  | "RUN_BEGUN"
  | "RUN_CANCELLED"
  | "RUN_ENDED"
  | "RUN_EXPIRED"
  | "RUN_FAILED"
  | "RUN_NOT_FOUND"
  | "RUN_TIMED_OUT"
  | "SCHEMA_MISSING"
  | "SCHEMA_TOO_NEW"
  | "SCHEMA_TOO_OLD"
  | "STEP_CRASHED"
  | "STEP_ENDED"
  | "STEP_TIMED_OUT"
  | "STORE_UNAVAILABLE"
  | "STREAM_CLOSED"
  | "TRANSACTION_ABORTED"
  | "UNDO_MISSING"
  | "UPDATE_FAILED"
  | "UPDATE_TIMED_OUT"
  | "WITHDRAWN"
  | "WORKER_CRASHED"
  | "WORKER_EXPIRED";

/** Everything Pawl throws. Test `code`, not the class or the text. */
export class PawlError extends Error {
  override readonly name: string = "PawlError";
  readonly code: ErrorCode;
  /** The same facts as the message, for machines. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: ErrorCode,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
    this.code = code;
    this.details = details;
  }

  /** Whether this is a Pawl error, with this code if one is given; holds across copies of the library. */
  static is(error: unknown, code?: ErrorCode): error is PawlError {
    try {
      if (!(error instanceof Error) || !("code" in error) || !("details" in error)) return false;
      return code === undefined
        ? error.name === "PawlError" || error instanceof PawlError
        : error.code === code;
    } catch {
      // Whatever throws at a look is not ours.
      return false;
    }
  }
}

/** Another worker holds the run now. Drop the work: nothing has failed. */
export class LeaseLostError extends PawlError {
  constructor(runId: string, epoch: number) {
    super("LEASE_LOST", `Run ${runId} is no longer held under epoch ${epoch}.`, { runId, epoch });
  }
}
