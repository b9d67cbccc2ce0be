import { expect, test } from "vitest";
import { describeError, revive } from "../../src/core/recorded-error.ts";
import { NonRetryableError, RetryAfterError, retryMarksOf } from "../../src/core/retry-error.ts";
import { createRetryPolicy, retryDelayMs, type RetryOptions } from "../../src/core/retry.ts";
import { workflow } from "../../src/runtime/workflow.ts";

const middle = { next: () => 0.5 };

function delays(options: RetryOptions, failures: readonly number[]): readonly number[] {
  const policy = createRetryPolicy(options);
  return failures.map((count) => retryDelayMs(policy, count, middle));
}

test("pauses grow, are bounded, and are spread over their upper half", () => {
  expect(delays({ initial: "1s", max: "10s" }, [1, 2, 3, 4, 5, 1_000])).toEqual([
    750, 1_500, 3_000, 6_000, 7_500, 7_500,
  ]);
  expect(delays({ initial: 1, factor: 10, max: "1h", jitter: false }, [1, 2, 3])).toEqual([1, 10, 100]);
  expect(delays({ initial: 0, factor: 1_000 }, [1, 1_000])).toEqual([0, 0]);
});

test("fixed pauses stay the same", () => {
  expect(delays({ backoff: "fixed", initial: "2s", jitter: false }, [1, 2, 9])).toEqual([
    2_000, 2_000, 2_000,
  ]);
});

test("pauses that begin longer than the usual limit are not cut to it", () => {
  const { maxMs } = createRetryPolicy({ initial: "1h" });
  expect(maxMs).toBe(3_600_000);
  const fixed = createRetryPolicy({ backoff: "fixed", initial: "10m", jitter: false });
  expect(retryDelayMs(fixed, 3, { next: () => 0 })).toBe(600_000);
  expect(createRetryPolicy({ initial: "1h", max: "1m" }).maxMs).toBe(60_000);
});

test("a list of delays is followed, its last one again and again, with jitter unless told otherwise", () => {
  const list = ["1s", "10s", "1m"] as const;
  expect(delays({ delays: list, jitter: false }, [1, 2, 3, 4, 999])).toEqual([
    1_000, 10_000, 60_000, 60_000, 60_000,
  ]);
  expect(delays({ delays: list }, [1, 2, 3])).toEqual([750, 7_500, 45_000]);
});

test("there is one more attempt than there are delays, unless told otherwise", () => {
  expect(createRetryPolicy({ delays: [1, 2, 3] }).attempts).toBe(4);
  expect(createRetryPolicy({ delays: [1, 2, 3], attempts: 9 }).attempts).toBe(9);
  expect(createRetryPolicy({ delays: [1, 2, 3], attempts: 2 }).attempts).toBe(2);
});

test("a policy survives being stored as JSON", () => {
  const policy = createRetryPolicy({ delays: ["1s", 5], attempts: 7, jitter: false });
  expect(JSON.parse(JSON.stringify(policy))).toEqual(policy);
});

test.each<[string, object]>([
  ["no delays", { delays: [] }],
  ["a delay that is none", { delays: ["1s", "soon"] }],
  ["delays that are no list", { delays: "1s" }],
  ["too many delays", { delays: Array.from({ length: 101 }, () => 1) }],
  ["delays with a factor", { delays: [1], factor: 2 }],
  ["delays with an initial pause", { delays: [1], initial: 2 }],
  ["delays with a longest pause", { delays: [1], max: 2 }],
  ["delays with a back-off", { delays: [1], backoff: "fixed" }],
  ["a pause of more than a year", { initial: "366d" }],
  ["a factor below 1", { factor: 0.5 }],
  ["a factor that is no number", { factor: Number.NaN }],
  ["no attempt", { attempts: 0 }],
  ["a back-off that is not known", { backoff: "linear" }],
  ["retryIf that is no function", { retryIf: true }],
])("a wrong policy is refused: %s", (_name, retry) => {
  expect(() => workflow({ name: "a", version: 1, retry } as never, async () => {})).toThrow(
    expect.objectContaining({ code: "INVALID_OPTION" }),
  );
});

test("what an error says about trying again survives being recorded", () => {
  const copy = (error: unknown) => retryMarksOf(revive(describeError(error)));
  expect(copy(new NonRetryableError("no"))).toEqual({ retryable: false });
  expect(copy(new RetryAfterError("later", { after: "90s" }))).toEqual({ retryAfterMs: 90_000 });
  expect(copy(new RetryAfterError("later", { after: new Date(5_000) }))).toEqual({ retryAt: 5_000 });
  expect(copy(new RetryAfterError("later", { after: new Date(-5_000) }))).toEqual({ retryAt: 0 });
  expect(copy(new RetryAfterError("later", { after: "9999d" }))).toEqual({ retryAfterMs: 31_536_000_000 });
  expect(copy(Object.assign(new Error("own"), { retryAfterMs: 1.5, retryAt: 2.5 }))).toEqual({
    retryAfterMs: 2,
    retryAt: 3,
  });
  expect(copy(Object.assign(new Error("odd"), { retryAfterMs: "soon", retryAt: -1 }))).toEqual({});
});

test("an error for later keeps its cause, its name and its message", () => {
  const cause = new Error("503");
  const error = new RetryAfterError("The bank is busy", { after: 1, cause });
  expect(error).toMatchObject({ name: "RetryAfterError", message: "The bank is busy", cause });
  expect("cause" in new RetryAfterError("later", { after: 1 })).toBe(false);
});

test.each<[unknown]>([
  [undefined],
  [{}],
  [{ after: "soon" }],
  [{ after: Number.NaN }],
  [{ after: new Date(Number.NaN) }],
  [{ after: 1, befor: 2 }],
])("an error for later must say when: %j", (options) => {
  expect(() => new RetryAfterError("later", options as never)).toThrow(
    expect.objectContaining({ code: "INVALID_OPTION" }),
  );
});

test("the first pause is never cut short by the default of the longest", () => {
  const policy = createRetryPolicy({ attempts: 2, initial: "1h", jitter: false });
  expect(retryDelayMs(policy, 1, { next: () => 0 })).toBe(3_600_000);
});
