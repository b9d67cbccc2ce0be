import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { PawlError } from "../../src/core/error.ts";
import { describeError, recordError, revive } from "../../src/core/recorded-error.ts";
import { NonRetryableError, retryMarksOf } from "../../src/core/retry-error.ts";

function copy(error: unknown): Error {
  return revive(describeError(error));
}

test("name, message, stack, code and causes are kept", () => {
  const cause = Object.assign(new RangeError("inner"), { code: 42 });
  const error = Object.assign(new TypeError("outer", { cause }), { code: "E_OUTER" });
  const revived = copy(error);
  expect(revived).toBeInstanceOf(Error);
  expect(revived).toMatchObject({ name: "TypeError", message: "outer", code: "E_OUTER", stack: error.stack });
  expect(revived.cause).toMatchObject({ name: "RangeError", message: "inner", code: 42 });
  expect(String(revived)).toBe("TypeError: outer");
});

test("an error of Pawl is one again", () => {
  const revived = copy(
    new PawlError("RUN_FAILED", "The child failed.", { runId: "x" }, { cause: new Error("why") }),
  );
  expect(PawlError.is(revived, "RUN_FAILED")).toBe(true);
  expect(revived.cause).toMatchObject({ message: "why" });
});

test("an error that says that it is not to be retried still says so", () => {
  expect(retryMarksOf(copy(new NonRetryableError("no")))).toEqual({ retryable: false });
  expect(retryMarksOf(copy(new Error("yes")))).toEqual({});
});

test.each<[string, unknown, string]>([
  ["a text", "boom", "boom"],
  ["undefined", undefined, "undefined was thrown"],
  ["null", null, "null"],
  ["a bigint", 5n, "5 was thrown"],
  ["a symbol", Symbol("s"), "Symbol(s) was thrown"],
  ["an object", { a: 1 }, '{"a":1}'],
  ["a function", Math.max, "was thrown"],
  [
    "an object that cannot be written",
    Object.assign(Object.create(null), { n: 1n }),
    "A value of type object was thrown",
  ],
])("whatever is thrown is recorded: %s", (_name, thrown, message) => {
  expect(copy(thrown)).toMatchObject({ name: "NonError", message: expect.stringContaining(message) });
});

test("an error that resists being read is recorded as far as it can be", () => {
  const hostile = new Error("hostile");
  for (const property of ["stack", "cause", "code", "name", "message"]) {
    Object.defineProperty(hostile, property, {
      get() {
        throw new Error("hands off");
      },
    });
  }
  expect(copy(hostile)).toMatchObject({ name: "Error", message: "" });
});

test("a circle of causes ends where it began", () => {
  const first = new Error("first");
  first.cause = new Error("second", { cause: first });
  const revived = copy(first);
  expect(revived.cause).toMatchObject({ message: "second" });
  expect((revived.cause as Error).cause).toBeUndefined();
});

test("no record is large, however much was thrown", () => {
  const huge = "x".repeat(10_000_000);
  const chain = Array.from({ length: 20 }).reduce<Error>(
    (cause) => Object.assign(new Error(huge, { cause }), { code: huge, name: huge }),
    new Error("root"),
  );
  const one = new Error(huge);
  const many = Array.from({ length: 1_000 }, () => one);
  const wide = new AggregateError(Array.from({ length: 100 }, () => new AggregateError(many)));
  for (const thrown of [huge, { huge }, new Error(huge), chain, wide])
    expect(recordError(thrown).json.length).toBeLessThan(100_000);
});

test("an AggregateError keeps what it is made of, circles and other values included", () => {
  const inner = new AggregateError([new TypeError("deep")], "inner");
  const error = new AggregateError([new RangeError("one"), "two", inner], "all failed");
  error.errors.push(error);
  const revived = copy(error) as AggregateError;
  expect(revived).toMatchObject({ name: "AggregateError", message: "all failed" });
  expect(revived.errors).toMatchObject([
    { name: "RangeError", message: "one" },
    { name: "NonError", message: "two" },
    { name: "AggregateError", errors: [{ name: "TypeError", message: "deep" }] },
  ]);
});

test("an error of another realm is an error", () => {
  const foreign: unknown = runInNewContext(`
    const error = new TypeError("foreign", { cause: new RangeError("why") });
    error.code = "E_FOREIGN";
    error;
  `);
  expect(foreign).not.toBeInstanceOf(Error);
  const revived = copy(foreign);
  expect(revived).toMatchObject({ name: "TypeError", message: "foreign", code: "E_FOREIGN" });
  expect(revived.stack).toContain("foreign");
  expect(revived.cause).toMatchObject({ name: "RangeError", message: "why" });
});

test("a cause that resists being read does not spoil the rest", () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const revived = copy(new Error("outer", { cause: proxy }));
  expect(revived).toMatchObject({
    message: "outer",
    cause: { name: "NonError", message: expect.stringContaining("cannot be described") },
  });
});

test.each<[string, () => unknown, object]>([
  ["a frozen error", () => Object.freeze(new Error("cold")), { name: "Error", message: "cold" }],
  ["a proxy of an error", () => new Proxy(new TypeError("veiled"), {}), { message: "veiled" }],
  ["an error without a prototype", () => Object.setPrototypeOf(new Error("bare"), null), { message: "bare" }],
  ["a message that is no text", () => Object.assign(new Error("x"), { message: 7 }), { message: "" }],
  ["a name that is no text", () => Object.assign(new Error("x"), { name: {} }), { name: "Error" }],
  ["a code that is no number", () => Object.assign(new Error("x"), { code: Number.NaN }), { message: "x" }],
  ["a null for a cause", () => new Error("x", { cause: null }), { cause: { message: "null" } }],
  ["a class of one's own", () => new (class OddError extends Error {})("odd"), { message: "odd" }],
])("of %s what can be kept is kept", (_name, thrown, kept) => {
  expect(copy(thrown())).toMatchObject(kept);
});

test("a circular object is recorded", () => {
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  expect(copy(circle)).toMatchObject({ name: "NonError", message: "A value of type object was thrown" });
});

test("texts that a store cannot hold are mended", () => {
  const revived = copy(new Error("a\0b\ud800c"));
  expect(revived.message).toBe("a\uFFFDb\uFFFDc");
});
