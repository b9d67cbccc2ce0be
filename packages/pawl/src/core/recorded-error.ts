import { PawlError, type ErrorCode } from "./error.ts";
import type { Payload } from "./json.ts";
import { hasLoneSurrogate } from "./name.ts";

/** An error as the history keeps it. */
export interface RecordedError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string | number;
  /** False: trying again is of no use. */
  readonly retryable?: false;
  readonly cause?: RecordedError;
}

const longestText = 8_192;
const mostCauses = 8;

/** Writes down whatever was thrown. Never throws itself, and never writes more than some tens of kB. */
export function recordError(thrown: unknown): Payload {
  return { json: JSON.stringify(describeError(thrown)), notes: null };
}

/** Whatever was thrown, in texts of bounded length that any store can hold. */
export function describeError(thrown: unknown): RecordedError {
  try {
    return describe(thrown, mostCauses);
  } catch {
    // A revoked proxy, for one, throws at every look.
    return { name: "NonError", message: "Something that cannot be described was thrown." };
  }
}

/** Makes an error of what was written down: its name, message, stack, code and cause, but not its class. */
export function revive(recorded: RecordedError): Error {
  const options = recorded.cause === undefined ? undefined : { cause: revive(recorded.cause) };
  const error =
    recorded.name === "PawlError"
      ? new PawlError(String(recorded.code ?? "INTERNAL") as ErrorCode, recorded.message, {}, options)
      : new Error(recorded.message, options);
  if (error.name !== recorded.name) define(error, "name", recorded.name);
  define(error, "stack", recorded.stack ?? `${recorded.name}: ${recorded.message}`);
  if (recorded.code !== undefined && !(error instanceof PawlError))
    Object.assign(error, { code: recorded.code });
  if (recorded.retryable === false) Object.assign(error, { retryable: false });
  return error;
}

function define(error: Error, property: "name" | "stack", value: string): void {
  Object.defineProperty(error, property, { value, configurable: true, writable: true, enumerable: false });
}

function describe(thrown: unknown, causes: number): RecordedError {
  if (!(thrown instanceof Error)) return { name: "NonError", message: bounded(describeValue(thrown)) };
  const code = read(thrown, "code");
  const stack = read(thrown, "stack");
  const cause = read(thrown, "cause");
  return {
    name: bounded(textOr(read(thrown, "name"), "Error")),
    message: bounded(textOr(read(thrown, "message"), "")),
    ...(typeof stack === "string" && { stack: bounded(stack) }),
    ...(typeof code === "string" && { code: bounded(code) }),
    ...(typeof code === "number" && Number.isFinite(code) && { code }),
    ...(read(thrown, "retryable") === false && { retryable: false as const }),
    ...(cause !== undefined && causes > 0 && { cause: describe(cause, causes - 1) }),
  };
}

/** A getter may throw, and then there is nothing to read. */
function read(error: Error, property: string): unknown {
  try {
    return (error as unknown as Readonly<Record<string, unknown>>)[property];
  } catch {
    return undefined;
  }
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}

function describeValue(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  try {
    const json = typeof thrown === "object" ? JSON.stringify(thrown) : undefined;
    return json ?? `${String(thrown)} was thrown`;
  } catch {
    return `A value of type ${typeof thrown} was thrown`;
  }
}

function bounded(text: string): string {
  const short = text.length > longestText ? `${text.slice(0, longestText)}…` : text;
  const printable = short.replaceAll("\0", "\uFFFD");
  return hasLoneSurrogate(printable) ? printable.replace(/\p{Surrogate}/gu, "\uFFFD") : printable;
}
