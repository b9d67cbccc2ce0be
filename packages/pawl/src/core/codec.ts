import { PawlError } from "./error.ts";
import type { Payload } from "./json.ts";
import { byteLength, hasLoneSurrogate } from "./name.ts";

/** Larger values are refused, unless a caller sets another limit. */
const defaultPayloadBytes = 1024 * 1024;

const deepest = 100;

/**
 * Writes a value so that reading it back gives an equal one, or refuses it. `undefined` is no payload at all;
 * a property that is `undefined` is left out, as JSON does.
 * @throws {PawlError} `INVALID_PAYLOAD`, naming the place of what JSON cannot hold
 */
export function encode(value: unknown, most: number = defaultPayloadBytes): Payload | null {
  if (value === undefined) return null;
  checkValue(value, "$", 0);
  const json = JSON.stringify(value);
  if (json.length > most || (json.length * 3 > most && byteLength(json) > most)) {
    throw refusal("$", `is larger than ${most} bytes: keep it elsewhere and store where`);
  }
  return { json, notes: null };
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
      if (!Number.isFinite(value)) throw refusal(path, `is ${value}, which JSON cannot hold`);
      if (Object.is(value, -0)) throw refusal(path, "is -0, which JSON cannot hold: add 0 to it");
      return;
    case "object":
      if (value !== null) checkObject(value, path, depth);
      return;
    case "undefined":
    case "function":
    case "symbol":
    case "bigint":
    default:
      throw refusal(path, `is of type ${typeof value}, which JSON cannot hold`);
  }
}

function checkObject(value: object, path: string, depth: number): void {
  if (depth >= deepest) throw refusal(path, `lies deeper than ${deepest} levels, or in a circle`);
  if (Array.isArray(value)) {
    checkArray(value, path, depth);
    return;
  }
  if (!isPlain(value)) {
    throw refusal(
      path,
      `is of the class ${className(value)}: turn it into plain objects, arrays, strings and numbers`,
    );
  }
  if (Object.getOwnPropertySymbols(value).length > 0) throw refusal(path, "has a symbol for a key");
  for (const [key, item] of Object.entries(value)) {
    const place = `${path}${writeKey(key)}`;
    checkText(key, place);
    if (item !== undefined) checkValue(item, place, depth + 1);
  }
}

function checkArray(value: readonly unknown[], path: string, depth: number): void {
  if (Object.keys(value).length !== value.length) {
    throw refusal(path, "is an array with holes or named properties, which JSON cannot hold");
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
  if (text.includes("\0")) throw refusal(path, "holds a NUL character, which Postgres cannot store");
  if (hasLoneSurrogate(text)) throw refusal(path, "holds half of a surrogate pair, which is not Unicode");
}

function writeKey(key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

function refusal(path: string, fault: string): PawlError {
  return new PawlError("INVALID_PAYLOAD", `The value at ${path} ${fault}.`, { path });
}
