import { PawlError, type ErrorCode } from "../../src/index.ts";

/** What a caller may be told about a bad call. `INTERNAL` and `DATABASE` would mean that nobody had looked at it. */
const fitCodes: readonly ErrorCode[] = [
  "INVALID_OPTION",
  "INVALID_NAME",
  "INVALID_PAYLOAD",
  "INVALID_TRANSACTION",
  "RUN_BEGUN",
  "RUN_NOT_FOUND",
  "RUN_ENDED",
  "RUN_CANCELLED",
  "RUN_TIMED_OUT",
  "KEY_CONFLICT",
  "UPDATE_TIMED_OUT",
];

const longestMs = 10_000;
const longestMessage = 10_000;

/** What became of a call, in a word or two: `accepted`, `refused`, or what is wrong. */
export async function outcomeOf(act: () => unknown): Promise<string> {
  let stop = (): void => {};
  const late = new Promise<string>((resolve) => {
    const timeout = setTimeout(resolve, longestMs, "never ended");
    stop = () => clearTimeout(timeout);
  });
  const ended = (async () => {
    await act();
    return "accepted";
  })().catch(faultOf);
  return Promise.race([ended, late]).finally(() => stop());
}

/** What is wrong with an error that a bad call was answered with, or `refused`. */
export function faultOf(error: unknown): string {
  if (!(error instanceof PawlError)) return `threw ${describe(error)}`;
  if (!fitCodes.includes(error.code)) return `threw ${error.code}: ${error.message}`;
  if ("sqlState" in error.details) return `told of ${String(error.details["sqlState"])}: ${error.message}`;
  if (error.message === "" || error.message.length > longestMessage)
    return `said ${error.message.length} characters: ${error.message.slice(0, 200)}…`;
  return "refused";
}

function describe(error: unknown): string {
  try {
    return error instanceof Error
      ? (error.stack ?? String(error)).split("\n").slice(0, 4).join(" ")
      : String(error);
  } catch {
    return "something that cannot be described";
  }
}
