import { expect, test } from "vitest";
import type { SnapshotEvent, StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import { indexSnapshot } from "./check-facts.ts";
import { createForkCheck } from "./check-forks.ts";
import { createPatchCheck } from "./check-patches.ts";
import { createShownCheck } from "./check-shown.ts";
import { createUpdateCheck } from "./check-updates.ts";
import {
  clientEntry,
  endedRun,
  event,
  fact,
  healthy,
  message,
  run,
  stepEntry,
  storeEntry,
  worker,
} from "./healthy-history.ts";
import type { ClientEntry, PatchEntry, RecordedFact, StepEntry, StoreEntry } from "./record.ts";
import { Verdict } from "./verdict.ts";

function withState(snapshot: Partial<StoreSnapshot>, verdict: Verdict) {
  return [indexSnapshot({ ...healthy.snapshot, ...snapshot }), verdict.report] as const;
}

function saidOf({ violations }: Verdict): readonly string[] {
  for (const { witness } of violations) expect(witness.length).toBeGreaterThan(0);
  return violations.map(({ invariant, says }) => `${invariant}: ${says}`);
}

const asked = (epoch: number, isNew: boolean): PatchEntry => {
  return { by: "patch", at: epoch, process: worker, run, epoch, id: "p.1", isNew };
};
const patched = { ...fact(2, "patched"), name: "p.1" };

test("I14: a run that leaves the side of a patch which it took is noticed", () => {
  const verdict = new Verdict();
  const check = createPatchCheck(verdict.report);
  const took = storeEntry(2, { op: "record", run, epoch: 1, facts: [patched] });
  for (const entry of [asked(1, true), took, asked(2, true), asked(3, false)]) check(entry);
  expect(saidOf(verdict)).toEqual(["I14: a run left the new side of a patch"]);
});

test("I14: a side that nobody recorded binds nobody, but for the old one", () => {
  const verdict = new Verdict();
  const check = createPatchCheck(verdict.report);
  for (const entry of [asked(1, true), asked(2, false), asked(1, true)]) check(entry);
  expect(saidOf(verdict)).toEqual([]);
  check(asked(3, true));
  expect(saidOf(verdict)).toEqual(["I14: a run left the old side of a patch"]);
});

test("I14: code that fits and is blocked is noticed, and so is a step before the block", () => {
  const verdict = new Verdict();
  const check = createPatchCheck(verdict.report);
  const park = (...facts: readonly RecordedFact[]): StoreEntry =>
    storeEntry(9, { op: "park", run, epoch: 1, facts, outcome: "parked" });
  check(park(patched, fact(3, "blocked")));
  expect(saidOf(verdict)).toEqual([]);
  check({ ...park(fact(2, "blocked")), run: "other" } as StoreEntry);
  check(stepEntry(8, { type: "invoke" }));
  check(park(fact(3, "blocked")));
  expect(saidOf(verdict)).toEqual([
    "I14: a run is blocked by code that fits",
    "I14: code that does not fit its history executed a step",
  ]);
});

const received = event(1, 5, "update_received", {
  name: "update:ask",
  data: { value: { id: "m", payload: "answered:0" } },
});
const answered = event(2, 6, "update_answered", {
  name: "update:ask",
  data: { value: { status: "answered", output: "pu:answered:0#1" } },
});
const update = message("m", 4, {
  topic: "update:ask",
  idempotencyKey: "answered:0",
  data: { value: "answered:0" },
  takenSeq: 1,
  answerSeq: 2,
});

function updatesSay(snapshot: Partial<StoreSnapshot>, ...entries: readonly ClientEntry[]): readonly string[] {
  const verdict = new Verdict();
  const check = createUpdateCheck(
    ...withState({ inbox: [update], events: [received, answered], ...snapshot }, verdict),
  );
  for (const entry of entries) check(entry);
  return saidOf(verdict);
}

const told = (output: string): ClientEntry =>
  clientEntry(9, { op: "update", type: "ok", key: "answered:0", value: { status: "answered", output } });

test("I10: an update that is answered with what its handler said is fine", () => {
  expect(updatesSay({}, told("pu:answered:0#1"))).toEqual([]);
});

test("I10: an answer that nobody gave, or that is not the update's, is noticed", () => {
  expect(updatesSay({}, told("pu:answered:0#2"))).toEqual([
    "I10: a caller was answered otherwise than the history says",
  ]);
  const other = { ...answered, data: { value: { status: "answered", output: "pu:answered:1#1" } } };
  expect(updatesSay({ events: [received, other] })).toEqual([
    "I10: an update was answered with what its handler did not say",
  ]);
});

test("I10: an update that is received twice, or there twice, is noticed", () => {
  expect(updatesSay({ events: [received, answered, { ...received, seq: 3 }] })).toEqual([
    "I10: an update was received twice",
  ]);
  expect(updatesSay({ inbox: [update, { ...update, id: "n" }] }, told("pu:answered:0#1"))).toEqual([
    "I10: an update that was answered is not there once",
  ]);
});

test("I10: a run that completes or waits and owes an answer is noticed", () => {
  const open = { inbox: [{ ...update, answerSeq: null }], events: [received] };
  expect(updatesSay(open)).toEqual(["I10: a run completed that owes the answer to an update"]);
  const waiting = { ...endedRun, status: null, input: { value: { serves: true } } };
  expect(updatesSay({ ...open, runs: [waiting] })).toEqual([
    "I10: a run waits, and does not answer an update",
  ]);
});

const item = (position: number, value: string): StoreSnapshot["streams"][number] => ({
  runId: run,
  name: "out",
  position,
  at: 5,
  step: null,
  attempt: null,
  isFirst: false,
  isClosing: false,
  data: { value },
});
const written = (seq: number): SnapshotEvent =>
  event(seq, 5, "stream_written", { name: `stream:out#${seq}` });
const whole = { streams: [item(1, "p.0:0"), item(2, "p.0:1")], events: [written(1), written(2)] };

function shownSays(snapshot: Partial<StoreSnapshot>, ...entries: readonly ClientEntry[]): readonly string[] {
  const verdict = new Verdict();
  const check = createShownCheck(...withState(snapshot, verdict));
  for (const entry of entries) check(entry);
  return saidOf(verdict);
}

const read = (...values: readonly string[]): ClientEntry =>
  clientEntry(9, {
    op: "stream",
    type: "ok",
    key: "out",
    value: values.map((value, index) => ({ position: index + 1, value })),
  });

test("I15: a stream that its readers got whole is fine, one that is lost in part is noticed", () => {
  expect(shownSays(whole, read("p.0:0", "p.0:1"))).toEqual([]);
  expect(shownSays(whole, read("p.0:0"))).toEqual(["I15: a reader got 1 of 2 items"]);
  expect(shownSays(whole, read("p.0:1", "p.0:0"))).toEqual([
    "I15: a reader got what is not in the stream there",
  ]);
});

test("I15: an item that is lost, doubled or out of order is noticed", () => {
  expect(shownSays({ ...whole, streams: [item(1, "p.0:0")] })).toEqual(["I15: 2 facts tell of 1 items"]);
  expect(shownSays({ ...whole, streams: [item(1, "p.0:0"), item(2, "p.0:0")] })).toEqual([
    "I15: an item is in a stream twice",
    "I15: item 0 of p.0 comes after 0",
  ]);
  expect(shownSays({ ...whole, streams: [item(1, "p.0:1"), item(2, "p.0:0")] })).toContain(
    "I15: item 1 of p.0 comes after -1",
  );
});

test("I15: a value that was not published there, or is not the last, is noticed", () => {
  const publish = (seq: number, value: string): SnapshotEvent =>
    event(seq, seq, "published", { name: `publish:state#${seq}`, data: { value } });
  const events = [publish(1, "p.0"), publish(2, "p.1")];
  const seen = (at: number, value: string): ClientEntry =>
    clientEntry(at, { op: "published", type: "ok", value: { state: value } });
  const asked40 = clientEntry(40, { op: "published", type: "invoke" });
  expect(shownSays({ events }, seen(5, "p.0"), asked40, seen(40, "p.1"))).toEqual([]);
  expect(shownSays({ events }, seen(5, "p.2"), asked40, seen(40, "p.0"))).toEqual([
    "I15: under state somebody read what was not published there",
    "I15: under state somebody read what was not published there",
  ]);
});

function forkSays(facts: readonly RecordedFact[], ...steps: readonly StepEntry[]): readonly string[] {
  const verdict = new Verdict();
  const check = createForkCheck(...withState({}, verdict));
  check(storeEntry(40, { op: "fork", run: "fork", epoch: 0, source: run, facts }));
  for (const entry of steps) check(entry);
  return saidOf(verdict);
}

const kept = fact(2, "step_completed", "p.0#1");

test("I14: a fork that forgets what its source had done is noticed, and one that knows more", () => {
  const before = fact(1, "forked", { seq: 2 });
  expect(forkSays([before, kept])).toEqual([]);
  expect(forkSays([before])).toEqual(["I14: a fork forgot what its source had done"]);
  expect(forkSays([fact(1, "forked", { seq: 1 }), kept])).toEqual([
    "I14: a fork knows what its source did later",
  ]);
});

test("I3: a fork that does again what its source had done is noticed", () => {
  const again = stepEntry(50, { type: "invoke", run: "fork" });
  expect(forkSays([fact(1, "forked", { seq: 2 }), kept], again)).toEqual([
    "I3: a fork did again what its source had done",
  ]);
});
