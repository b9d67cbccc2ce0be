import { runInNewContext } from "node:vm";
import { fc } from "pawl-test-support/fast-check";
import { describe, expect, test } from "vitest";
import { decode, encode } from "../../src/core/codec.ts";
import { PawlError } from "../../src/core/error.ts";
import { differenceOf, richValue } from "./rich-value.ts";

const copyOf = (value: unknown): unknown => decode(encode(value));
const parse = (text: string): unknown => JSON.parse(text);

describe("plain JSON", () => {
  test.each([
    [null],
    [true],
    [0],
    [-1.5e300],
    [Number.MIN_VALUE],
    [2 ** 53],
    [""],
    ['ünï 🎉 \u2028 \\ " \u0001 \\ud800 \\u0000'],
    [[]],
    [[[1], { a: [{}] }]],
    [{ "": 1, "a.b": { "c d": 2 }, constructor: 3, toString: 4, hasOwnProperty: 5 }],
  ])("is stored as it is, without notes, and read back: %j", (value) => {
    expect(encode(value)).toEqual({ json: JSON.stringify(value), notes: null });
    expect(differenceOf(value, copyOf(value))).toBe(null);
  });

  test("is all of what fast-check calls JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        expect(differenceOf(value, copyOf(value))).toBe(null);
      }),
    );
  });
});

/** The value, its JSON as people see it, and what the notes say of it. */
test.each<[name: string, value: unknown, json: string, types: string]>([
  ["a date", { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}', '{"at":"Date"}'],
  ["a date alone", new Date(1), '"1970-01-01T00:00:00.001Z"', '"Date"'],
  ["an early date", new Date(-8.64e15), '"-271821-04-20T00:00:00.000Z"', '"Date"'],
  ["an invalid date", [new Date(Number.NaN)], "[null]", '{"0":"Date"}'],
  ["a bigint", { n: -(2n ** 70n) }, '{"n":"-1180591620717411303424"}', '{"n":"bigint"}'],
  ["NaN", [Number.NaN], '["NaN"]', '{"0":"number"}'],
  ["infinities", [Infinity, -Infinity], '["Infinity","-Infinity"]', '{"0":"number","1":"number"}'],
  ["-0", { a: -0 }, '{"a":0}', '{"a":"-0"}'],
  ["undefined", { a: undefined, b: 1 }, '{"a":null,"b":1}', '{"a":"undefined"}'],
  ["undefined in an array", [1, undefined], "[1,null]", '{"1":"undefined"}'],
  // oxlint-disable-next-line no-sparse-arrays
  ["a hole in an array", [1, , 3, ,], "[1,null,3,null]", '{"1":"hole","3":"hole"}'],
  ["bytes", new Uint8Array([0, 255, 16]), '"AP8Q"', '"Uint8Array"'],
  ["a part of bytes", new Uint8Array([9, 1, 2, 9]).subarray(1, 3), '"AQI="', '"Uint8Array"'],
  ["a buffer", { b: Buffer.from("hi") }, '{"b":"aGk="}', '{"b":"Buffer"}'],
  ["a map", new Map([["a", 1]]), '[["a",1]]', '"Map"'],
  [
    "a map of dates",
    new Map([[new Date(0), 1n]]),
    '[["1970-01-01T00:00:00.000Z","1"]]',
    '["Map",{"0":{"0":"Date","1":"bigint"}}]',
  ],
  ["a set", new Set([1, "1"]), '[1,"1"]', '"Set"'],
  [
    "a set in a set",
    new Set([new Set([-0.5, Number.NaN])]),
    '[[-0.5,"NaN"]]',
    '["Set",{"0":["Set",{"1":"number"}]}]',
  ],
  [
    "odd keys",
    { "a.b": 1n, "": 2n, "[0]": { '"': 3n } },
    '{"a.b":"1","":"2","[0]":{"\\"":"3"}}',
    '{"a.b":"bigint","":"bigint","[0]":{"\\"":"bigint"}}',
  ],
])("%s is readable in SQL and comes back as it went", (_name, value, json, types) => {
  expect(encode(value)).toEqual({ json, notes: `{"types":${types}}` });
  expect(differenceOf(value, copyOf(value))).toBe(null);
});

test("an error keeps its name, message, stack, cause, and what was added to it, but not its class", () => {
  const cause = Object.assign(new RangeError("inner"), { code: 42, at: new Date(0) });
  const error = Object.assign(new TypeError("outer", { cause }), { code: "E_OUTER", seen: new Set([1n]) });
  expect(differenceOf({ error }, copyOf({ error }))).toBe(null);
  const { json } = encode(error)!;
  expect(parse(json)).toMatchObject({
    name: "TypeError",
    message: "outer",
    code: "E_OUTER",
    cause: { code: 42 },
  });
  const bare = new Error("bare", { cause: undefined });
  Reflect.deleteProperty(bare, "stack");
  expect(differenceOf(bare, copyOf(bare))).toBe(null);
  expect(Object.keys(copyOf(bare) as Error)).toEqual([]);
  const many = new AggregateError([new Error("a"), 1n], "many");
  expect(differenceOf(many, copyOf(many))).toBe(null);
  expect((copyOf(many) as AggregateError).errors).toMatchObject([{ message: "a" }, 1n]);
});

test("an error of Pawl is one again", () => {
  const error = new PawlError("RUN_FAILED", "It failed.", { runId: "x" }, { cause: new Error("why") });
  const copy = copyOf(error);
  expect(PawlError.is(copy, "RUN_FAILED")).toBe(true);
  expect(differenceOf(error, copy)).toBe(null);
});

test("whatever is made of these comes back as it went", () => {
  fc.assert(
    fc.property(richValue, (value) => {
      expect(differenceOf(value, copyOf(value))).toBe(null);
    }),
    { numRuns: 2_000 },
  );
});

test("objects of another realm are what they are", () => {
  const value = runInNewContext(
    "({ a: [1, , new Date(5)], m: new Map([[1n, new Set([NaN])]]), e: new Error('x'), b: new Uint8Array([1]) })",
  ) as object;
  const copy = copyOf(value) as { m: Map<bigint, Set<number>>; e: Error; b: Uint8Array };
  expect(copy.m.get(1n)!.has(Number.NaN)).toBe(true);
  expect(copy.e.message).toBe("x");
  expect(copy.b).toEqual(new Uint8Array([1]));
});

test("two references to one object become two equal objects", () => {
  const shared = { at: new Date(0) };
  const copy = copyOf([shared, shared]) as [object, object];
  expect(copy[0]).toEqual(copy[1]);
  expect(copy[0]).not.toBe(copy[1]);
});

test("what is read back shares nothing with what was given", () => {
  const bytes = new Uint8Array([1, 2]);
  const copy = copyOf({ bytes, buffer: Buffer.from(bytes) }) as { bytes: Uint8Array };
  expect(copy.bytes.buffer.byteLength).toBe(2);
  expect(copy.bytes.buffer).not.toBe(bytes.buffer);
});

test("undefined is no payload at all, and null is one", () => {
  expect(encode(undefined)).toBe(null);
  expect(decode(null)).toBe(undefined);
  expect(encode(null)).toEqual({ json: "null", notes: null });
});

test("a refusal says what the value is of, and that trying again is of no use", () => {
  expect(() => encode({ at: /x/ }, 'The result of step "charge"')).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(
        /^The result of step "charge": the value at \$\.at is of the class RegExp/,
      ),
      retryable: false,
    }),
  );
});

const circle: { self?: unknown } = {};
circle.self = circle;
const bush: Record<string, unknown> = {};
for (const key of "abcdefgh") bush[key] = bush;
class Money {
  toJSON(): string {
    return "5";
  }
}
const hidden = {
  get secret(): never {
    throw new Error("hands off");
  },
};
const { proxy: revoked, revoke } = Proxy.revocable({}, {});
revoke();
const throwing = new Proxy(
  { a: 1 },
  {
    get() {
      throw new Error("hands off");
    },
  },
);

test.each<[string, unknown, string]>([
  ["a symbol", { s: Symbol("x") }, "$.s is a symbol"],
  ["a function", { f: () => {} }, "$.f is a function"],
  ["a class instance", { user: new URLSearchParams() }, "$.user is of the class URLSearchParams"],
  [
    "a class with toJSON",
    { "my cost": new Money() },
    '$["my cost"] is of the class Money (its toJSON is not called)',
  ],
  ["an object with toJSON", { toJSON: () => 1 }, "$.toJSON is a function"],
  ["a regular expression", [/x/], "$[0] is of the class RegExp"],
  ["a promise", Promise.resolve(1), "$ is of the class Promise"],
  ["a WeakMap", new WeakMap(), "$ is of the class WeakMap"],
  ["another typed array", new Float64Array(2), "$ is of the class Float64Array"],
  ["a boxed text", Object("x"), "$ is of the class String"],
  ["a class that extends Map", new (class Index extends Map {})(), "$ is of the class Index"],
  ["a class that extends Array", new (class List extends Array {})(), "$ is of the class List"],
  [
    "a date with a property",
    Object.assign(new Date(0), { zone: "UTC" }),
    '$ has a property "zone" of its own',
  ],
  ["an array with a property", Object.assign([1], { total: 1 }), '$ is an array with a property "total"'],
  ["what only pretends to be a date", Object.create({ [Symbol.toStringTag]: "Date" }), "$ cannot be read"],
  ["a symbol for a key", { [Symbol("k")]: 1 }, "$ has a symbol for a key"],
  ["a getter that throws", { a: [hidden] }, "$.a[0].secret cannot be read"],
  ["a proxy that throws", { a: throwing }, "$.a.a cannot be read"],
  ["a proxy that is revoked", { a: revoked }, "$.a cannot be read"],
  ["NUL", { text: "a\0b" }, "$.text holds a NUL"],
  ["NUL in a key", { "a\0": 1 }, '$["a\\u0000"] holds a NUL'],
  ["NUL in a map's key", new Map([["\0", 1]]), "$[0][0] holds a NUL"],
  ["NUL in an error", new Error("\0"), "$.message holds a NUL"],
  ["a lone surrogate", ["\ud800"], "$[0] holds half of a surrogate pair"],
  ["a lone surrogate in a key", { "\udc00": 1 }, '$["\\udc00"] holds half of a surrogate pair'],
  [
    "a lone surrogate in a map's value",
    new Map([[1, ["\udfff"]]]),
    "$[0][1][0] holds half of a surrogate pair",
  ],
  ["a circle", circle, "$.self lies in a circle"],
  [
    "a circle of causes",
    (() => Object.assign(new Error("x"), { cause: circle }))(),
    "$.cause.self lies in a circle",
  ],
  ["a circle of many ways", bush, "$.a lies in a circle"],
])("what would not come back is refused with its place: %s", (_name, value, fault) => {
  expect(() => encode(value)).toThrow(
    expect.objectContaining({ code: "INVALID_PAYLOAD", message: expect.stringContaining(`at ${fault}`) }),
  );
});

test("a hundred levels are enough", () => {
  const nest = (depth: number, inside: unknown): unknown => {
    let value = inside;
    for (let level = 0; level < depth; level++) value = [value];
    return value;
  };
  expect(copyOf(nest(100, 1))).toEqual(nest(100, 1));
  expect(copyOf(nest(99, new Map([[1, 1n]])))).toEqual(nest(99, new Map([[1, 1n]])));
  expect(() => encode(nest(101, 1))).toThrow("deeper than 100 levels");
  expect(() => encode(nest(1_000_000, 1))).toThrow("deeper than 100 levels");
});

test("size is counted in bytes, notes included, with a limit that can be set", () => {
  expect(() => encode("x".repeat(1024 * 1024 - 2))).not.toThrow();
  expect(() => encode("x".repeat(1024 * 1024 - 1))).toThrow("larger than 1048576 bytes");
  expect(() => encode("é".repeat(10), undefined, 21)).toThrow("larger than 21 bytes");
  expect(() => encode("é".repeat(10), undefined, 22)).not.toThrow();
  const { json, notes } = encode([1n, 2n])!;
  const bytes = json.length + notes!.length;
  expect(() => encode([1n, 2n], undefined, bytes)).not.toThrow();
  expect(() => encode([1n, 2n], undefined, bytes - 1)).toThrow(`larger than ${bytes - 1} bytes`);
  expect(() => encode(new Uint8Array(1024 * 1024))).toThrow("larger than 1048576 bytes");
});

test("what would take for ever to write is refused at once", () => {
  let wide: unknown = "x";
  for (let level = 0; level < 90; level++) wide = [wide, wide, wide];
  expect(() => encode(wide)).toThrow("larger than 1048576 bytes");
  expect(() => encode([1n, wide])).toThrow("larger than 1048576 bytes");
  const long: unknown[] = [];
  long.length = 2 ** 32 - 1;
  expect(() => encode(long)).toThrow("larger than 1048576 bytes");
});

describe("__proto__ and its like", () => {
  test("are keys like any other, in plain values and in rich ones", () => {
    for (const text of [
      '{"__proto__": {"polluted": true}}',
      '{"constructor": {"prototype": {"polluted": true}}}',
    ]) {
      const value = parse(text) as Record<string, unknown>;
      expect(differenceOf(value, copyOf(value))).toBe(null);
      const rich = Object.defineProperty({ n: 1n }, "__proto__", {
        value: { at: new Date(0) },
        enumerable: true,
      });
      const copy = copyOf(rich) as object;
      expect(Object.keys(copy)).toEqual(["n", "__proto__"]);
      expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    }
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test.each([
    ["{}", '{"__proto__":{"polluted":"-0"}}'],
    ["{}", '{"constructor":{"prototype":{"polluted":"undefined"}}}'],
    ['{"a":[1]}', '{"a":{"length":"undefined"}}'],
    ['{"a":[1]}', '{"a":{"__proto__":{"map":"undefined"}}}'],
    ['"text"', '{"length":"-0"}'],
    ["1", '["Map",{"0":"-0"}]'],
    ["[1]", '"Map"'],
    ["1", '"Set"'],
    ["{}", '"Date"'],
    ['"soon"', '"Date"'],
    ['"1e5"', '"number"'],
    ['"0x10"', '"bigint"'],
    ["null", '"Error"'],
    ["1", "null"],
  ])("cannot be reached by notes that somebody wrote by hand: %s %s", (json, types) => {
    expect(() => decode({ json, notes: `{"types":${types}}` })).toThrow(
      expect.objectContaining({ code: "INVALID_PAYLOAD" }),
    );
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect([1].map((n) => n + 1)).toEqual([2]);
  });

  test("an error from such a hand has no other prototype", () => {
    const copy = decode({
      json: '{"name":"x","message":"y","__proto__":{"a":1}}',
      notes: '{"types":"Error"}',
    });
    expect(Object.getPrototypeOf(copy)).toBe(Error.prototype);
  });
});

test("a value of a newer version is not misread", () => {
  const newer = expect.objectContaining({
    code: "INVALID_PAYLOAD",
    message: expect.stringContaining("newer version"),
  });
  expect(() => decode({ json: "1", notes: "{}" })).toThrow(newer);
  expect(() => decode({ json: "1", notes: "[]" })).toThrow(newer);
  expect(() => decode({ json: '["1"]', notes: '{"types":{"0":"Temporal.Instant"}}' })).toThrow(newer);
});
