import { PawlError } from "./error.ts";
import type { Payload } from "./json.ts";
import { byteLength, hasLoneSurrogate } from "./name.ts";

/** Larger values are refused, unless a caller sets another limit. */
const defaultPayloadBytes = 1024 * 1024;

const deepest = 100;

/**
 * Writes a value so that reading it back gives an equal one, or refuses it. `undefined` is no payload at all;
 * a property that is `undefined` is left out and -0 becomes 0, as JSON does.
 * @param what begins the message of a refusal, as in `The result of step "charge"`
 * @throws {PawlError} `INVALID_PAYLOAD`, naming the place of what JSON cannot hold
 */
export function encode(value: unknown, what?: string, most: number = defaultPayloadBytes): Payload | null {
  if (value === undefined) return null;
  try {
    checkValue(value, "$", 0);
    return { json: write(value, most), notes: null };
  } catch (error) {
    if (error instanceof Refusal) throw error.toPawlError(what);
    // A getter or a proxy that throws.
    throw new Refusal("$", "cannot be read").toPawlError(what, error);
  }
}

/** Reads back what `encode` wrote. */
export function decode(payload: Payload | null): unknown {
  if (payload === null) return undefined;
  if (payload.notes !== null) {
    throw new PawlError(
      "INVALID_PAYLOAD",
      "A value was written by a newer version of Pawl: update this process.",
    );
  }
  return JSON.parse(payload.json);
}

function checkValue(value: unknown, path: string, depth: number): void {
  switch (typeof value) {
    case "string":
      checkText(value, path);
      return;
    case "boolean":
      return;
    case "number":
      if (!Number.isFinite(value)) throw new Refusal(path, `is ${value}, which JSON cannot hold`);
      return;
    case "object":
      if (value !== null) checkObject(value, path, depth);
      return;
    case "undefined":
    case "function":
    case "symbol":
    case "bigint":
    default:
      throw new Refusal(path, `is of type ${typeof value}, which JSON cannot hold`);
  }
}

function checkObject(value: object, path: string, depth: number): void {
  if (depth >= deepest) throw new Refusal(path, `lies deeper than ${deepest} levels, or in a circle`);
  if (Array.isArray(value)) {
    checkArray(value, path, depth);
    return;
  }
  if (!isPlain(value)) {
    throw new Refusal(
      path,
      `is of the class ${className(value)}: turn it into plain objects, arrays, strings and numbers`,
    );
  }
  if (Object.getOwnPropertySymbols(value).length > 0) throw new Refusal(path, "has a symbol for a key");
  for (const [key, item] of Object.entries(value)) {
    const place = `${path}${writeKey(key)}`;
    checkText(key, place);
    if (item !== undefined) checkValue(item, place, depth + 1);
  }
}

function checkArray(value: readonly unknown[], path: string, depth: number): void {
  if (Object.keys(value).length !== value.length) {
    throw new Refusal(path, "is an array with holes or named properties, which JSON cannot hold");
  }
  for (const [index, item] of value.entries()) checkValue(item, `${path}[${index}]`, depth + 1);
}

/** Of any realm: its prototype is null, or the end of the chain. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function className(value: object): string {
  const { constructor } = value;
  return typeof constructor === "function" && constructor.name !== ""
    ? constructor.name
    : "another prototype";
}

function checkText(text: string, path: string): void {
  if (text.includes("\0")) throw new Refusal(path, "holds a NUL character, which Postgres cannot store");
  if (hasLoneSurrogate(text)) throw new Refusal(path, "holds half of a surrogate pair, which is not Unicode");
}

function writeKey(key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

function write(value: unknown, most: number): string {
  const json = JSON.stringify(value);
  if (json.length > most || (json.length * 3 > most && byteLength(json) > most)) {
    throw new Refusal("$", `is larger than ${most} bytes: keep it elsewhere and store where`);
  }
  return json;
}

/** Carries the place and the fault up to where it is known what the value is of. */
class Refusal extends Error {
  readonly path: string;
  readonly fault: string;

  constructor(path: string, fault: string) {
    super(fault);
    this.path = path;
    this.fault = fault;
  }

  /** Trying again is of no use: the same code makes the same value. */
  toPawlError(what: string | undefined, cause?: unknown): PawlError {
    const { path, fault } = this;
    const subject = what === undefined ? "The value" : `${what}: the value`;
    const options = cause === undefined ? undefined : { cause };
    const error = new PawlError("INVALID_PAYLOAD", `${subject} at ${path} ${fault}.`, { path }, options);
    return Object.assign(error, { retryable: false });
  }
}
