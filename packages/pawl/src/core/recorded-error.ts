import { PawlError, type ErrorCode } from "./error.ts";
import type { Payload } from "./json.ts";
import { hasLoneSurrogate } from "./name.ts";
import { retryMarksOf, type RetryMarks } from "./retry-error.ts";

/** An error as the history keeps it. */
export interface RecordedError extends RetryMarks {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string | number;
  readonly cause?: RecordedError;
  /** For a run's error: the steps that could not be undone. */
  readonly notUndone?: readonly string[];
  /** What an `AggregateError` is made of: the first of them. */
  readonly errors?: readonly RecordedError[];
}

const longestText = 8_192;
/** All texts of one record together; what comes late is cut short. */
const mostText = 65_536;
const deepest = 8;
const mostNotUndone = 10_000;
/** Errors in one record, causes included. */
const mostErrors = 20;

/** Writes down whatever was thrown. Never throws itself, and never writes more than some tens of thousands of characters. */
export function recordError(thrown: unknown): Payload {
  return { json: JSON.stringify(describeError(thrown)), notes: null };
}

/** Whatever was thrown, in texts of bounded length that any store can hold. */
export function describeError(thrown: unknown): RecordedError {
  return describe(thrown, { seen: new Set(), depth: 0, left: { text: mostText, errors: mostErrors } });
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
  if (recorded.errors !== undefined) define(error, "errors", recorded.errors.map(revive));
  const { notUndone } = recorded;
  return Object.assign(error, retryMarksOf(recorded), notUndone !== undefined && { notUndone });
}

/** The steps that could not be undone when the run failed with this error; null: none is known. */
export function notUndoneOf(error: unknown): readonly string[] | null {
  const steps = typeof error === "object" && error !== null ? read(error, "notUndone") : null;
  if (!Array.isArray(steps) || steps.length > mostNotUndone) return null;
  return steps.every((step) => typeof step === "string") ? steps : null;
}

function define(error: Error, property: "name" | "stack" | "errors", value: unknown): void {
  Object.defineProperty(error, property, { value, configurable: true, writable: true, enumerable: false });
}

/** Where in what was thrown an error stands, and how much may still be written down. */
interface Place {
  /** Errors on the way here: causes may run in a circle. */
  readonly seen: ReadonlySet<unknown>;
  readonly depth: number;
  readonly left: { text: number; errors: number };
}

function describe(thrown: unknown, place: Place): RecordedError {
  place.left.errors -= 1;
  try {
    return isError(thrown) ? describeObject(thrown, place) : describeOther(thrown, place);
  } catch {
    // A revoked proxy, for one, throws at every look.
    return { name: "NonError", message: "Something that cannot be described was thrown." };
  }
}

function describeOther(thrown: unknown, { left }: Place): RecordedError {
  return { name: "NonError", message: bounded(describeValue(thrown), left), ...retryMarksOf(thrown) };
}

function describeObject(thrown: object, place: Place): RecordedError {
  const text = (value: string): string => bounded(value, place.left);
  const name = textOr(read(thrown, "name"), "Error");
  const code = read(thrown, "code");
  const stack = read(thrown, "stack");
  const cause = read(thrown, "cause");
  const notUndone = notUndoneOf(thrown)?.map(text);
  const errors = name === "AggregateError" ? read(thrown, "errors") : undefined;
  const inner = { ...place, seen: new Set(place.seen).add(thrown), depth: place.depth + 1 };
  return {
    name: text(name),
    message: text(textOr(read(thrown, "message"), "")),
    ...(typeof stack === "string" && { stack: text(stack) }),
    ...(typeof code === "string" && { code: text(code) }),
    ...(typeof code === "number" && Number.isFinite(code) && { code }),
    ...retryMarksOf(thrown),
    ...(notUndone !== undefined && { notUndone }),
    ...(cause !== undefined && hasRoom(cause, inner) && { cause: describe(cause, inner) }),
    ...(Array.isArray(errors) && { errors: describeAll(errors, inner) }),
  };
}

function describeAll(errors: readonly unknown[], place: Place): readonly RecordedError[] {
  const described: RecordedError[] = [];
  for (const error of errors.slice(0, mostErrors)) {
    if (hasRoom(error, place)) described.push(describe(error, place));
  }
  return described;
}

function hasRoom(error: unknown, { seen, depth, left }: Place): boolean {
  return depth <= deepest && left.errors > 0 && !seen.has(error);
}

/** Those of other realms too, such as a test runner's or a sandbox's. */
function isError(thrown: unknown): thrown is object {
  return thrown instanceof Error || Object.prototype.toString.call(thrown) === "[object Error]";
}

/** A getter may throw, and then there is nothing to read. */
function read(error: object, property: string): unknown {
  try {
    return (error as Readonly<Record<string, unknown>>)[property];
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
    const json = typeof thrown === "object" ? JSON.stringify(thrown, shortenList) : undefined;
    return json ?? `${String(thrown)} was thrown`;
  } catch {
    return `A value of type ${typeof thrown} was thrown`;
  }
}

/** Of a long list nothing would be kept but its beginning; one that only says that it is long would take all memory. */
function shortenList(_key: string, value: unknown): unknown {
  return Array.isArray(value) && value.length > longestText ? value.slice(0, longestText) : value;
}

function bounded(text: string, left: Place["left"]): string {
  const most = Math.min(longestText, left.text);
  const short = text.length > most ? `${text.slice(0, most)}…` : text;
  left.text = Math.max(0, left.text - short.length);
  const printable = short.replaceAll("\0", "\uFFFD");
  return hasLoneSurrogate(printable) ? printable.replace(/\p{Surrogate}/gu, "\uFFFD") : printable;
}
