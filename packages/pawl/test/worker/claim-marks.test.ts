import { describe, expect, test } from "vitest";
import type { ClaimedRun, Lane } from "../../src/store/lease.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createClaimMarks } from "../../src/worker/claim-marks.ts";

const lane: Lane = { queue: "default", workflow: "greet", version: 1, after: null, crashLimit: 3 };
const otherLane: Lane = { ...lane, workflow: "part" };

function claimedAt(readyAt: number, priority = 0): ClaimedRun {
  const runId = "01900000-0000-7000-8000-000000000001";
  return { ...lane, runId, mark: { priority, readyAt, runId } } as unknown as ClaimedRun;
}

describe("claim marks", () => {
  test("the first look begins at the beginning", () => {
    const marks = createClaimMarks(createManualClock());
    expect(marks.look([lane])).toEqual({ lanes: [lane], isFull: true });
  });

  test("the next look begins 50 ms before the place where the last claim ended, in that lane alone", () => {
    const marks = createClaimMarks(createManualClock());
    marks.found(marks.look([lane, otherLane]), [claimedAt(1_000), claimedAt(2_000, 3)], 1);
    expect(marks.look([lane, otherLane])).toEqual({
      lanes: [
        { ...lane, after: { priority: 3, readyAt: 1_950, runId: "00000000-0000-0000-0000-000000000000" } },
        otherLane,
      ],
      isFull: false,
    });
  });

  test("while claims bring work, a full look comes 50 ms after the last one", () => {
    const clock = createManualClock();
    const marks = createClaimMarks(clock);
    marks.found(marks.look([lane]), [claimedAt(1_000)], 1);
    clock.advance(49);
    expect(marks.look([lane]).isFull).toBe(false);
    clock.advance(1);
    expect(marks.look([lane]).isFull).toBe(true);
  });

  test("a full look that was slow comes again after ten times as long, and after 2 s at the latest", () => {
    const clock = createManualClock();
    const marks = createClaimMarks(clock);
    marks.found(marks.look([lane]), [claimedAt(1_000)], 30);
    expect(marks.fullLookDueAt() - clock.now()).toBe(300);
    marks.forget();
    marks.found(marks.look([lane]), [claimedAt(1_000)], 900);
    expect(marks.fullLookDueAt() - clock.now()).toBe(2_000);
  });

  test("once a claim brings nothing, only the cost of the last full look delays the next", () => {
    const clock = createManualClock();
    const marks = createClaimMarks(clock);
    marks.found(marks.look([lane]), [claimedAt(1_000)], 1);
    marks.found(marks.look([lane]), [], 1);
    expect(marks.fullLookDueAt() - clock.now()).toBe(10);
  });

  test("with few slots every look is a full one", () => {
    const marks = createClaimMarks(createManualClock(), true);
    marks.found(marks.look([lane]), [claimedAt(1_000)], 100);
    expect(marks.look([lane]).isFull).toBe(true);
  });
});
