import { expect, test } from "vitest";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createSuspects } from "../../src/worker/suspects.ts";

const half = { next: () => 0.5 };

test("a worker that is idle again looks at once while suspects wait, and they have the turn after", () => {
  const suspects = createSuspects(createManualClock(), half, 1_000);
  suspects.seen("ordinary", [], true);
  expect(suspects.next(true)).toEqual({ kind: "suspect" });
  suspects.seen("suspect", ["first"], true);
  suspects.freed("first");
  expect(suspects.next(true)).toEqual({ kind: "ordinary", isUrgent: true });
  suspects.seen("ordinary", ["neighbour"], true);
  expect(suspects.next(false)).toEqual({ kind: "ordinary", isUrgent: false });
  expect(suspects.next(true)).toEqual({ kind: "ordinary", isUrgent: true });
});

test("suspects that could not be had do not keep an idle worker busy", () => {
  const suspects = createSuspects(createManualClock(), half, 1_000);
  suspects.seen("ordinary", [], true);
  suspects.seen("suspect", [], true);
  expect(suspects.next(true)).toEqual({ kind: "ordinary", isUrgent: false });
});
