import { expect, test } from "vitest";
import { PawlError } from "../../src/core/error.ts";
import { recordError, reviveError } from "../../src/core/recorded-error.ts";
import { NonRetryableError, retryMarksOf } from "../../src/core/retry-error.ts";

function copy(error: unknown): Error {
  return reviveError(recordError(error));
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

test("a circle of causes ends, and no record is large", () => {
  const error = new Error("x".repeat(1_000_000));
  error.cause = error;
  expect(recordError(error).json.length).toBeLessThan(300_000);
});

test("texts that a store cannot hold are mended", () => {
  const revived = copy(new Error("a\0b\ud800c"));
  expect(revived.message).toBe("a\uFFFDb\uFFFDc");
});
