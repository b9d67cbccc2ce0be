import { PawlError, type ErrorCode } from "./error.ts";

/** The message is the kind. */
export class UnknownKind extends Error {}

/**
 * Makes a value of parsed JSON and the notes on it. What they say is checked at every turn, since anybody with SQL may
 * have written them: only properties that are there are replaced, and no prototype is ever reached.
 * @throws {UnknownKind}, and errors of any kind where the notes do not fit
 */
export function readRichValue(json: unknown, types: unknown): unknown {
  if (typeof types === "string") return readKind(types, json);
  if (!Array.isArray(types)) return readWithin(json, types);
  const [kind, within] = types as readonly unknown[];
  return readKind(String(kind), readWithin(json, within));
}

function readWithin(json: unknown, within: unknown): unknown {
  const value = asObject(json);
  for (const [key, types] of Object.entries(asObject(within))) {
    if (!Object.prototype.propertyIsEnumerable.call(value, key)) throw misfit(`there is no "${key}"`);
    if (types === "hole" && Array.isArray(value)) Reflect.deleteProperty(value, key);
    else define(value, key, readRichValue((value as Readonly<Record<string, unknown>>)[key], types), true);
  }
  return value;
}

function readKind(kind: string, json: unknown): unknown {
  switch (kind) {
    case "undefined":
      return undefined;
    case "-0":
      return -0;
    case "number":
      return readNumber(asText(json));
    case "bigint":
      return readBigint(asText(json));
    case "Date":
      return json === null ? new Date(Number.NaN) : readDate(asText(json));
    case "Map":
      return new Map(asArray(json).map((entry) => asArray(entry) as [unknown, unknown]));
    case "Set":
      return new Set(asArray(json));
    case "Uint8Array":
      return new Uint8Array(Buffer.from(asText(json), "base64"));
    case "Buffer":
      return Buffer.from(asText(json), "base64");
    case "Error":
      return readError(asObject(json) as Readonly<Record<string, unknown>>);
    default:
      throw new UnknownKind(kind);
  }
}

function readNumber(text: string): number {
  if (text === "NaN" || text === "Infinity" || text === "-Infinity") return Number(text);
  throw misfit(`"${text}" is no number`);
}

function readBigint(text: string): bigint {
  if (/^-?\d+$/.test(text)) return BigInt(text);
  throw misfit(`"${text}" is no whole number`);
}

function readDate(text: string): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) throw misfit(`"${text}" is no date`);
  return date;
}

/** Properties that errors usually hide stay hidden. */
const hidden: readonly string[] = ["name", "message", "stack", "cause", "errors"];

function readError(members: Readonly<Record<string, unknown>>): Error {
  const { name, message, code } = members;
  const isOurs = name === "PawlError" && typeof code === "string";
  const error = isOurs ? new PawlError(code as ErrorCode, "") : new Error();
  define(error, "stack", undefined, false);
  define(error, "message", message, false);
  for (const [key, member] of Object.entries(members))
    if (key !== "name" || error.name !== name) define(error, key, member, !hidden.includes(key));
  return error;
}

function define(target: object, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(target, key, { value, enumerable, configurable: true, writable: true });
}

function asObject(value: unknown): object {
  if (typeof value !== "object" || value === null) throw misfit("an object is missing");
  return value;
}

function asArray(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw misfit("an array is missing");
  return value;
}

function asText(value: unknown): string {
  if (typeof value !== "string") throw misfit("a text is missing");
  return value;
}

function misfit(fault: string): Error {
  return new TypeError(`The notes do not fit: ${fault}.`);
}
