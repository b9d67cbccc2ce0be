import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { systemTimers } from "../../src/system/system-timers.ts";

describe("the system's timers", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("call back once, after a delay longer than the platform can hold", () => {
    const callback = vi.fn<() => void>();
    const days = 24 * 3_600_000;
    systemTimers.after(60 * days, callback);
    vi.advanceTimersByTime(60 * days - 1);
    expect(callback).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledOnce();
  });

  test("do not call back once called off, whichever part of a long delay has passed", () => {
    const callback = vi.fn<() => void>();
    const callOff = systemTimers.after(2 ** 32, callback);
    vi.advanceTimersByTime(2 ** 31);
    callOff();
    vi.runAllTimers();
    expect(callback).not.toHaveBeenCalled();
  });

  test("call back at once for a delay that has passed, and never for one without end", () => {
    const callback = vi.fn<() => void>();
    systemTimers.after(-5, callback);
    systemTimers.after(Number.POSITIVE_INFINITY, callback);
    vi.runAllTimers();
    expect(callback).toHaveBeenCalledOnce();
  });
});
