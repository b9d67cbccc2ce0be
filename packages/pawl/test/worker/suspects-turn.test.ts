import { expect, test } from "vitest";
import type { Execution } from "../../src/runtime/execution.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createSlots, type HeldRun } from "../../src/worker/slots.ts";
import { createSuspects } from "../../src/worker/suspects.ts";

const half = { next: () => 0.5 };
const empty = createSlots(1);
const busy = createSlots(1);
busy.expect("neighbour");
const heldAs = (runId: string): HeldRun => ({
  runId,
  epoch: 1,
  execution: {} as Execution,
  isWaiting: false,
  isEnding: false,
});

test("a worker that is idle again looks at once while suspects wait, and they have the turn after", () => {
  const suspects = createSuspects(createManualClock(), half, 1_000);
  suspects.seen("ordinary", [], true);
  expect(suspects.next(empty)).toEqual({ kind: "suspect" });
  suspects.seen("suspect", [{ runId: "first", suspicion: 2 }], true);
  suspects.freed("first");
  expect(suspects.next(empty)).toEqual({ kind: "ordinary", isUrgent: true });
  suspects.seen("ordinary", [{ runId: "neighbour", suspicion: 0 }], true);
  expect(suspects.next(busy)).toEqual({ kind: "ordinary", isUrgent: false });
  expect(suspects.next(empty)).toEqual({ kind: "ordinary", isUrgent: true });
});

test("suspects that could not be had do not keep an idle worker busy", () => {
  const suspects = createSuspects(createManualClock(), half, 1_000);
  suspects.seen("ordinary", [], true);
  suspects.seen("suspect", [], true);
  expect(suspects.next(empty)).toEqual({ kind: "ordinary", isUrgent: false });
});

test("a suspect is alone for twice as long after each crash, so that one which kills slowly is found out too", () => {
  const aloneMs = (suspicion: number): unknown => {
    const suspects = createSuspects(createManualClock(), half, 1_000);
    suspects.seen("suspect", [{ runId: "slow", suspicion }], false);
    return suspects.next(busy);
  };
  expect(aloneMs(2)).toEqual({ kind: "nothing", ms: 4_000 });
  expect(aloneMs(3)).toEqual({ kind: "nothing", ms: 8_000 });
  expect(aloneMs(6)).toEqual({ kind: "nothing", ms: 64_000 });
  expect(aloneMs(8)).toEqual({ kind: "nothing", ms: 256_000 });
  expect(aloneMs(9)).toEqual({ kind: "nothing", ms: 256_000 });
});

test("no other is tried beside a suspect until its crashes have been allowed for, though ordinary work goes on before", () => {
  const clock = createManualClock();
  const suspects = createSuspects(clock, half, 1_000);
  const slots = createSlots(2);
  suspects.seen("suspect", [{ runId: "slow", suspicion: 9 }], true);
  slots.add(heldAs("slow"));
  const kinds = new Map<string, number>();
  for (let second = 0; ; second++) {
    const { kind } = suspects.next(slots);
    if (!kinds.has(kind)) kinds.set(kind, second);
    if (kind === "suspect") break;
    clock.advance(1_000);
  }
  expect(kinds.get("ordinary")).toBe(256);
  expect(kinds.get("suspect")).toBeGreaterThanOrEqual(512);
  expect(kinds.get("suspect")).toBeLessThan(540);
});

test("a suspect whose time alone is over leaves the worker to others", () => {
  const clock = createManualClock();
  const suspects = createSuspects(clock, half, 1_000);
  suspects.seen("suspect", [{ runId: "slow", suspicion: 2 }], false);
  clock.advance(4_000);
  expect(suspects.next(busy)).toEqual({ kind: "ordinary", isUrgent: false });
  expect(suspects.freed("slow")).toBe(false);
});
