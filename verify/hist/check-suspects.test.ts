import { expect, test } from "vitest";
import { createSuspectCheck } from "./check-suspects.ts";
import { storeEntry } from "./healthy-history.ts";
import type { StoreOperation } from "./record.ts";
import { Verdict } from "./verdict.ts";

const leaseMs = 100;

/** What is found in these operations of one worker, at these instants. */
function found(...operations: readonly (readonly [number, StoreOperation])[]): readonly string[] {
  const verdict = new Verdict();
  const check = createSuspectCheck(verdict.report);
  check(storeEntry(0, { op: "register", leaseMs }));
  for (const [at, operation] of operations) check(storeEntry(at, operation));
  return verdict.violations.map(({ invariant }) => invariant);
}

const claim = (run: string, isSuspect: boolean): StoreOperation => ({
  op: "claim",
  run,
  epoch: 1,
  isSuspect,
});
const record = (run: string): StoreOperation => ({ op: "record", run, epoch: 1, facts: [] });
const release = (run: string): StoreOperation => ({ op: "release", run, epoch: 1 });

test("I16: a suspect that is claimed by a worker which holds something else is noticed", () => {
  const both = [claim("a", false), record("a"), claim("b", true), record("b")];
  expect(found(...both.map((operation, at) => [at, operation] as const))).toEqual(["I16"]);
});

test("I16: a suspect may be claimed by a worker that has waited for what it holds", () => {
  const beside = (at: number) =>
    found([1, claim("a", false)], [2, record("a")], [at, claim("b", true)], [at, record("b")]);
  expect(beside(4 * leaseMs - 1)).toEqual(["I16"]);
  expect(beside(4 * leaseMs)).toEqual([]);
});

test("I16: something that is claimed beside a suspect is noticed, but not once it was alone for long", () => {
  const beside = (at: number) =>
    found([1, claim("a", true)], [2, record("a")], [at, claim("b", false)], [at, record("b")]);
  expect(beside(4 * leaseMs - 1)).toEqual(["I16"]);
  expect(beside(4 * leaseMs)).toEqual([]);
});

test("I16: what the store writes with a claim does not show that the worker heard of it", () => {
  const fired: StoreOperation = { op: "record", run: "a", epoch: 1, facts: [], isWithClaim: true };
  const before: readonly (readonly [number, StoreOperation])[] = [
    [1, claim("a", false)],
    [1, fired],
    [2, claim("b", true)],
    [3, record("b")],
  ];
  expect(found(...before)).toEqual([]);
  expect(found(...before, [4, record("a")])).toEqual(["I16"]);
});

test("I16: nothing is wrong with a claim that its worker never heard of, or after the suspect has left", () => {
  expect(found([1, claim("a", true)], [2, record("a")], [3, claim("b", false)])).toEqual([]);
  expect(found([1, claim("a", true)], [2, release("a")], [3, claim("b", false)], [4, record("b")])).toEqual(
    [],
  );
});
