import { PawlError } from "./error.ts";
import type { Payload } from "./json.ts";
import { byteLength } from "./name.ts";
import { readRichValue, UnknownKind } from "./read-rich-value.ts";
import { Refusal } from "./refusal.ts";
import { deepest, hasPlainPrototype, isOrdinaryArray } from "./value-shape.ts";
import { RichValueWriter } from "./write-rich-value.ts";

/** Larger values are refused, unless a caller sets another limit. */
export const defaultPayloadBytes = 1024 * 1024;

/**
 * Writes a value so that reading it back gives an equal one, or refuses it. Plain JSON is written as it is; of anything
 * richer, the JSON is what people can read, and the notes tell which parts of it are what. `undefined` is no payload at all.
 * @param what begins the message of a refusal, as in `The result of step "charge"`
 * @throws {PawlError} `INVALID_PAYLOAD`, naming the place of what cannot be written
 */
export function encode(value: unknown, what?: string, most: number = defaultPayloadBytes): Payload | null {
  if (value === undefined) return null;
  try {
    return encodePlain(value, most) ?? encodeRich(value, most);
  } catch (error) {
    if (error instanceof Refusal) throw error.toPawlError(what);
    // A getter or a proxy that throws.
    throw new Refusal("$", "cannot be read", { cause: error }).toPawlError(what);
  }
}

/**
 * Reads back what `encode` wrote.
 * @throws {PawlError} `INVALID_PAYLOAD` for what a newer version wrote, or somebody else
 */
export function decode(payload: Payload | null): unknown {
  if (payload === null) return undefined;
  const value: unknown = JSON.parse(payload.json);
  return payload.notes === null ? value : decodeParsed(value, JSON.parse(payload.notes));
}

/** Reads a value and its notes out of JSON that was parsed already. The value is changed. */
export function decodeParsed(value: unknown, notes: unknown): unknown {
  if (notes === null) return value;
  if (typeof notes !== "object" || !("types" in notes)) throw unreadable("holds notes that are unknown here");
  try {
    return readRichValue(value, notes.types);
  } catch (error) {
    if (error instanceof UnknownKind) throw unreadable(`holds a value of the kind ${error.message}`);
    throw new PawlError("INVALID_PAYLOAD", "A value and the notes on it do not fit.", {}, { cause: error });
  }
}

function unreadable(fault: string): PawlError {
  return new PawlError(
    "INVALID_PAYLOAD",
    `A payload ${fault}: it was written by a newer version of Pawl. Update this process.`,
  );
}

/** How JSON writes NUL and half a surrogate pair; a text that merely looks like it only costs some time. */
const writtenNul = String.raw`\u0000`;
const writtenSurrogate = String.raw`\ud`;

/** Null: it is not plain JSON, or not acceptable. Which of them, and why, is left to the slow way. */
function encodePlain(value: unknown, most: number): Payload | null {
  try {
    if (leftAfter(value, 0, most) < 0) return null;
    const json = JSON.stringify(value);
    if (json.includes(writtenNul) || json.includes(writtenSurrogate)) return null;
    return fits(json, most) ? { json, notes: null } : null;
  } catch {
    // A getter or a proxy threw: the slow way says where.
    return null;
  }
}

function encodeRich(value: unknown, most: number): Payload {
  const { json, types } = new RichValueWriter(most).write(value);
  const payload = {
    json: JSON.stringify(json),
    notes: types === null ? null : JSON.stringify({ types }),
  };
  if (!fits(payload.json, most - (payload.notes === null ? 0 : byteLength(payload.notes))))
    throw Refusal.tooLarge(most);
  return payload;
}

/**
 * How much of a limit the value leaves, counting at least one for every part of it and no more than its bytes; below
 * zero if it is not plain JSON, too deep or too large.
 */
function leftAfter(value: unknown, depth: number, left: number): number {
  switch (typeof value) {
    case "string":
      return left - value.length;
    case "boolean":
      return left - 1;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0) ? left - 1 : -1;
    case "object":
      return value === null ? left - 1 : leftAfterObject(value, depth, left);
    case "undefined":
    case "function":
    case "symbol":
    case "bigint":
    default:
      return -1;
  }
}

function leftAfterObject(value: object, depth: number, before: number): number {
  if (depth >= deepest) return -1;
  let left = before - 1;
  if (Array.isArray(value)) {
    // A hole reads as undefined, which is not plain.
    if (!isOrdinaryArray(value) || Object.keys(value).length !== value.length) return -1;
    for (let index = 0; index < value.length && left >= 0; index++)
      left = leftAfter(value[index], depth + 1, left);
    return left;
  }
  if (!hasPlainPrototype(value) || Object.getOwnPropertySymbols(value).length > 0) return -1;
  for (const key of Object.keys(value)) {
    left = leftAfter((value as Readonly<Record<string, unknown>>)[key], depth + 1, left - key.length);
    if (left < 0) return left;
  }
  return left;
}

function fits(json: string, most: number): boolean {
  return json.length * 3 <= most || (json.length <= most && byteLength(json) <= most);
}
