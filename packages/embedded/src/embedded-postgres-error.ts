/** What can go wrong. Codes are public: they are added, never renamed. */
export type EmbeddedPostgresErrorCode =
  | "INVALID_OPTION"
  | "UNSUPPORTED_PLATFORM"
  | "BINARIES_MISSING"
  | "BINARIES_UNUSABLE"
  | "DATA_DIR_UNREACHABLE"
  | "DATA_DIR_FOREIGN"
  | "DATA_DIR_IN_USE"
  | "DATA_DIR_VERSION"
  | "USER_UNAVAILABLE"
  | "ALREADY_RUNNING"
  | "PORT_BUSY"
  | "INIT_FAILED"
  | "START_FAILED"
  | "SUPERVISOR_LOST"
  | "STOPPED"
  | "QUERY_FAILED";

/** Everything this package throws, an aborted signal's reason excepted. Test `code`, not the text. */
export class EmbeddedPostgresError extends Error {
  override readonly name = "EmbeddedPostgresError";
  readonly code: EmbeddedPostgresErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: EmbeddedPostgresErrorCode,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }

  /** Whether `error` is one of ours, with this code if one is named. */
  static is(error: unknown, code?: EmbeddedPostgresErrorCode): error is EmbeddedPostgresError {
    return error instanceof EmbeddedPostgresError && (code === undefined || error.code === code);
  }
}
