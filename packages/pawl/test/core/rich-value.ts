import fc from "fast-check";

const text = fc.string({ unit: "grapheme", maxLength: 8 });
const key = fc.oneof(
  text,
  fc.constantFrom("__proto__", "constructor", "a.b", "0", "1", "types", "codec", "toJSON", "length"),
);
const number = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(-0, Number.NaN, Infinity, -Infinity));

function errorOf(name: string, message: string, cause: unknown, code: string | number | undefined): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause });
  if (name !== "Error")
    Object.defineProperty(error, "name", { value: name, configurable: true, writable: true });
  return code === undefined ? error : Object.assign(error, { code });
}

/** Anything that can be stored. */
export const richValue: fc.Arbitrary<unknown> = fc.letrec((tie) => {
  const value = tie("value");
  return {
    value: fc.oneof(
      { maxDepth: 5, depthSize: "small" },
      fc.constantFrom(null, undefined, true, false),
      text,
      number,
      fc.bigInt(),
      fc.date({ noInvalidDate: false }),
      fc.uint8Array(),
      fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      fc.array(value, { maxLength: 4 }),
      fc.sparseArray(value, { maxLength: 6 }),
      fc.array(fc.tuple(key, value), { maxLength: 4 }).map(objectOf),
      fc.array(fc.tuple(value, value), { maxLength: 3 }).map((entries) => new Map(entries)),
      fc.array(value, { maxLength: 3 }).map((members) => new Set(members)),
      fc
        .tuple(text, text, value, fc.option(fc.oneof(text, fc.integer()), { nil: undefined }))
        .map((parts) => errorOf(...parts)),
    ),
  };
}).value;

/** `__proto__` is a key like any other. */
function objectOf(entries: readonly (readonly [string, unknown])[]): object {
  const object = {};
  for (const [key, value] of entries)
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  return object;
}

/** Where two values differ, or null: tells -0 from 0, a hole from undefined, and the order of maps, sets and keys. */
export function differenceOf(a: unknown, b: unknown, path = "$"): string | null {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null)
    return Object.is(a, b) ? null : path;
  if (a instanceof Error !== b instanceof Error) return path;
  if (!(a instanceof Error) && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b))
    return `${path} (class)`;
  if (a instanceof Date && b instanceof Date) return Object.is(a.getTime(), b.getTime()) ? null : path;
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0 ? null : path;
  if (a instanceof Map && b instanceof Map) return differenceOf([...a], [...b], `${path} (map)`);
  if (a instanceof Set && b instanceof Set) return differenceOf([...a], [...b], `${path} (set)`);
  if (Array.isArray(a) && Array.isArray(b) && a.length !== b.length) return `${path} (length)`;
  return differenceOfMembers(a, b, path);
}

function differenceOfMembers(a: object, b: object, path: string): string | null {
  const keys = keysOf(a);
  if (keys.join("\0") !== keysOf(b).join("\0")) return `${path} (keys)`;
  for (const key of keys) {
    const [one, other] = [a, b].map((object) => (object as Readonly<Record<string, unknown>>)[key]);
    const difference = differenceOf(one, other, `${path}.${key}`);
    if (difference !== null) return difference;
  }
  return null;
}

/** An error shows little of itself. */
function keysOf(value: object): readonly string[] {
  if (!(value instanceof Error)) return Object.keys(value);
  const hidden = ["cause", "errors"].filter((key) => Object.hasOwn(value, key));
  const own = Object.keys(value)
    .filter((key) => key !== "name")
    .sort();
  return [...new Set(["name", "message", "stack", ...hidden, ...own])];
}
