import { describe, expect, test } from "vitest";
import { parseDuration } from "../src/core/duration.ts";
import { createManualClock } from "../src/testing/manual-clock.ts";

describe("durations", () => {
  for (const [duration, ms] of [
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["1.5h", 5_400_000],
    ["1.1h", 3_960_000],
    ["7d", 604_800_000],
    ["2w", 1_209_600_000],
    ["0s", 0],
    [1_500, 1_500],
    [0.6, 1],
    [0, 0],
  ] as const) {
    test(`${duration} is ${ms} ms`, () => {
      expect(parseDuration(duration)).toBe(ms);
    });
  }

  for (const wrong of [
    "",
    "s",
    "5",
    "5 s",
    "-5s",
    "5x",
    "1e3s",
    "5S",
    ".5s",
    "5s5m",
    -1,
    -0.1,
    Infinity,
    NaN,
    "9e99w",
  ]) {
    test(`${JSON.stringify(wrong)} (${typeof wrong}) is refused`, () => {
      expect(() => parseDuration(wrong)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
    });
  }

  test("the error names the option and the value", () => {
    expect(() => parseDuration("5 minutes", "timeout")).toThrow(/timeout "5 minutes"/);
    expect(() => parseDuration(-1, "timeout")).toThrow(/timeout -1/);
  });
});

describe("the manual clock", () => {
  test("stands still until it is advanced", () => {
    const clock = createManualClock(1_000);
    expect(clock.now()).toBe(1_000);
    clock.advance("16s");
    clock.advance(1);
    expect(clock.now()).toBe(17_001);
  });
});
