import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decode, encode } from "../../src/core/codec.ts";

describe("what plain JSON holds exactly", () => {
  test.each([
    [null],
    [true],
    [0],
    [-1.5e300],
    [Number.MIN_VALUE],
    [2 ** 53],
    [""],
    ['ünï 🎉 \u2028 \\ " \u0001'],
    [[]],
    [[[1], { a: [{}] }]],
    [{ "": 1, "a.b": { "c d": 2 }, constructor: 3, toString: 4 }],
  ])("is read back as it was written: %j", (value) => {
    expect(decode(encode(value))).toEqual(value);
  });

  test("includes a key named __proto__, which stays a key", () => {
    const value: unknown = JSON.parse('{"__proto__": {"polluted": true}}');
    const copy = decode(encode(value)) as object;
    expect(Object.keys(copy)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("is all of what fast-check calls JSON, but for -0", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!text.includes("\\u0000") && !/\\ud[89a-f]/.test(text) && !hasNegativeZero(value));
        expect(decode(encode(value))).toEqual(value);
      }),
    );
  });
});

test("undefined is no payload at all, and null is one", () => {
  expect(encode(undefined)).toBe(null);
  expect(decode(null)).toBe(undefined);
  expect(encode(null)).toEqual({ json: "null", notes: null });
});

test("a property that is undefined is left out, and -0 is 0", () => {
  expect(decode(encode({ a: undefined, b: 1 }))).toStrictEqual({ b: 1 });
  expect(decode(encode({ a: -0 }))).toStrictEqual({ a: 0 });
});

test("a refusal says what the value is of, and that trying again is of no use", () => {
  expect(() => encode({ at: new Date(0) }, 'The result of step "charge"')).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(
        /^The result of step "charge": the value at \$\.at is of the class Date/,
      ),
      retryable: false,
    }),
  );
});

const circle: { self?: unknown } = {};
circle.self = circle;
// oxlint-disable-next-line no-sparse-arrays
const sparse = [1, , 3];

test.each<[string, unknown, string]>([
  ["NaN", { a: Number.NaN }, "$.a"],
  ["Infinity", [Infinity], "$[0]"],
  ["NaN under an odd key", { "a b": Number.NaN }, '$["a b"]'],
  ["bigint", 1n, "$"],
  ["a symbol", { s: Symbol("x") }, "$.s"],
  ["a function", { f: () => {} }, "$.f"],
  ["undefined in an array", { a: [1, undefined] }, "$.a[1]"],
  ["a hole in an array", sparse, "$"],
  ["a date", { rows: [{ at: new Date(0) }] }, "$.rows[0].at"],
  ["a map", new Map(), "$"],
  ["a class instance", { user: new URLSearchParams() }, "$.user"],
  ["a buffer", { bytes: new Uint8Array(2) }, "$.bytes"],
  ["a promise", Promise.resolve(1), "$"],
  ["a symbol for a key", { [Symbol("k")]: 1 }, "$"],
  ["NUL", { text: "a\0b" }, "$.text"],
  ["NUL in a key", { "a\0": 1 }, '$["a\\u0000"]'],
  ["a lone surrogate", ["\ud800"], "$[0]"],
  ["a lone surrogate in a key", { "\udc00": 1 }, "$["],
  ["a circle", circle, "$.self.self"],
])("what JSON would bend is refused with its place: %s", (_name, value, path) => {
  expect(() => encode(value)).toThrow(
    expect.objectContaining({ code: "INVALID_PAYLOAD", message: expect.stringContaining(path) }),
  );
});

test("a hundred levels are enough", () => {
  const nest = (depth: number): unknown => (depth === 0 ? 1 : [nest(depth - 1)]);
  expect(decode(encode(nest(100)))).toEqual(nest(100));
  expect(() => encode(nest(101))).toThrow("deeper than 100 levels");
});

test("size is counted in bytes, with a limit that can be set", () => {
  expect(() => encode("x".repeat(1024 * 1024 - 2))).not.toThrow();
  expect(() => encode("x".repeat(1024 * 1024))).toThrow("larger than 1048576 bytes");
  expect(() => encode("é".repeat(10), undefined, 21)).toThrow("larger than 21 bytes");
  expect(() => encode("é".repeat(10), undefined, 22)).not.toThrow();
});

test("a value of a newer version is not misread", () => {
  expect(() => decode({ json: "1", notes: "{}" })).toThrow("newer version");
});

function hasNegativeZero(value: unknown): boolean {
  if (Object.is(value, -0)) return true;
  return typeof value === "object" && value !== null && Object.values(value).some(hasNegativeZero);
}
