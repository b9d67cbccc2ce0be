import { expect, test } from "vitest";
import { assertName } from "../../src/core/name.ts";
import { checkDuration, checkInteger, checkOneOf, checkOptions } from "../../src/core/options.ts";
import { createRetryPolicy, retryDelayMs } from "../../src/core/retry.ts";
import { workflow } from "../../src/runtime/workflow.ts";

const checks = { attempts: checkInteger(1, 10), timeout: checkDuration, mode: checkOneOf("a", "b") };

test.each<[unknown, string]>([
  [{ atempts: 1 }, 'There is no option "atempts" of thing. Did you mean "attempts"?'],
  [{ zebra: 1 }, 'There is no option "zebra" of thing. Known are attempts, timeout, mode.'],
  [{ constructor: 1 }, 'There is no option "constructor" of thing.'],
  [{ attempts: 0 }, 'The option "attempts" of thing must be from 1 to 10.'],
  [{ attempts: 1.5 }, "must be a whole number"],
  [{ timeout: "1 year" }, 'must be a duration, such as "30s"'],
  [{ mode: "c" }, 'must be "a" or "b"'],
  [null, "The options of thing must be a plain object."],
])("a wrong option is refused with advice: %j", (options, message) => {
  expect(() => checkOptions("thing", options as object, checks)).toThrow(
    expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining(message) }),
  );
});

test("an option that is undefined counts as not given", () => {
  expect(() => checkOptions("thing", { attempts: undefined }, checks)).not.toThrow();
});

test.each<[string, object]>([
  ["unknown", { name: "a", version: 1, retires: {} }],
  ["unknown in retry", { name: "a", version: 1, retry: { attemps: 1 } }],
  ["no version", { name: "a" }],
  ["version 0", { name: "a", version: 0 }],
  ["not a schema", { name: "a", version: 1, input: {} }],
  ["not a schema for a signal", { name: "a", version: 1, signals: { s: {} } }],
  ["crash limit", { name: "a", version: 1, crashLimit: 0 }],
])("a workflow's options are checked: %s", (_name, options) => {
  expect(() => workflow(options as never, async () => {})).toThrow(
    expect.objectContaining({ code: "INVALID_OPTION" }),
  );
});

test("a workflow has its defaults", () => {
  expect(workflow({ name: "a", version: 1 }, async () => {})).toMatchObject({
    queue: "default",
    timeoutMs: null,
    crashLimit: 3,
    retry: { attempts: 3, initialMs: 1_000, maxMs: 300_000, factor: 2, jitter: true },
  });
  expect(workflow({ name: "a", version: 1, onCrash: "fail" }, async () => {}).crashLimit).toBe(0);
});

test.each([[""], ["a\0"], ["\ud800"], ["é".repeat(128)], [7]])(
  "a name that a store cannot hold is refused: %j",
  (name) => {
    expect(() => assertName("step", name)).toThrow(expect.objectContaining({ code: "INVALID_NAME" }));
  },
);

test("a name may have 255 bytes of anything else", () => {
  expect(() => assertName("step", `${"é".repeat(127)}'`)).not.toThrow();
});

test("pauses grow, are bounded, and are spread over their upper half", () => {
  const middle = { next: () => 0.5 };
  const policy = createRetryPolicy({ initial: "1s", max: "10s" });
  expect([1, 2, 3, 4, 5, 1_000].map((failures) => retryDelayMs(policy, failures, middle))).toEqual([
    750, 1_500, 3_000, 6_000, 7_500, 7_500,
  ]);
  const fixed = createRetryPolicy({ backoff: "fixed", initial: "2s", jitter: false });
  expect([1, 2, 9].map((failures) => retryDelayMs(fixed, failures, middle))).toEqual([2_000, 2_000, 2_000]);
});
