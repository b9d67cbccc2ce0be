import { expect, test } from "vitest";
import { createRng } from "../sim/rng.ts";
import { expectEnd, findMismatch, type SentSignals, type Surroundings } from "./expect.ts";
import { always, walk, type Op, type Program, type Tries } from "./program.ts";
import { generateScenario } from "./scenario.ts";

const step = (path: string, failures = 0, retry: Tries | null = null): Op => ({
  kind: "step",
  path,
  name: "a",
  workMs: 0,
  failures,
  retry,
  undo: null,
  transaction: null,
});
const wait = (path: string, timeoutMs: number | null): Op => ({ kind: "wait", path, signal: "s", timeoutMs });
const program = (ops: readonly Op[], attempts: 1 | 3 = 1): Program => ({
  path: "p",
  attempts,
  ops,
  next: null,
});

function around(sent: SentSignals = new Map()): Surroundings {
  return { signalsOf: () => sent, mayStop: false, mayOutlive: false };
}

test("a program of steps completes with their tokens", () => {
  const steps = program([step("p.0"), step("p.1")]);
  expect(expectEnd(steps, around())).toEqual({ completes: true, causes: new Set(), waits: false });
  expect(findMismatch(steps, ["p.0#4", "p.1#7"], around())).toBeNull();
  expect(findMismatch(steps, ["p.1#7", "p.0#4"], around())).toContain("p.0");
  expect(findMismatch(steps, ["p.0#4"], around())).toContain("2 results");
});

test("a step that fails as often as there are attempts may fail the run, one that always fails does", () => {
  expect(expectEnd(program([step("p.0", 1)], 3), around()).causes).toEqual(new Set());
  expect(expectEnd(program([step("p.0", 3)], 3), around())).toMatchObject({
    completes: true,
    causes: new Set(["p.0"]),
  });
  expect(expectEnd(program([step("p.0", always)], 3), around())).toMatchObject({ completes: false });
});

test("a step that is tried more often than it fails does not fail", () => {
  const tries = { attempts: 3, pauseMs: 0 };
  expect(expectEnd(program([step("p.0", 2, tries)]), around()).causes).toEqual(new Set());
  expect(expectEnd(program([step("p.0", 3, tries)]), around()).causes).toEqual(new Set(["p.0"]));
});

test("a wait without a signal waits for ever, unless it has a timeout", () => {
  expect(expectEnd(program([wait("p.0", null), step("p.1", always)]), around())).toEqual({
    completes: false,
    causes: new Set(),
    waits: true,
  });
  expect(expectEnd(program([wait("p.0", 5)]), around())).toMatchObject({ completes: true, waits: false });
});

test("waits receive the signals of their name in the order sent, or time out", () => {
  const waits = program([wait("p.0", 5), wait("p.1", 5)]);
  const sent = around(new Map([["s", ["s:0", "s:1"]]]));
  expect(findMismatch(waits, ["s:0", "s:1"], sent)).toBeNull();
  expect(findMismatch(waits, ["timeout", "s:0"], sent)).toBeNull();
  expect(findMismatch(waits, ["s:1", "s:0"], sent)).toContain("signal 0");
  expect(findMismatch(waits, ["timeout", "s:1"], sent)).toContain("signal 0");
});

test("a chain that fails fails all of them, though another waits", () => {
  const all: Op = {
    kind: "all",
    path: "p.0",
    isScoped: false,
    chains: [[wait("p.0c0.0", null)], [step("p.0c1.0", always)]],
  };
  expect(expectEnd(program([all]), around())).toEqual({
    completes: false,
    causes: new Set(["p.0c1.0"]),
    waits: false,
  });
});

test("what is caught does not fail the run, and only what can throw is caught", () => {
  const caught: Op = { kind: "try", path: "p.0", body: [step("p.0t.0", always)] };
  const fine: Op = { kind: "try", path: "p.0", body: [step("p.0t.0")] };
  expect(expectEnd(program([caught]), around())).toMatchObject({ completes: true, causes: new Set() });
  expect(findMismatch(program([caught]), ["caught"], around())).toBeNull();
  expect(findMismatch(program([fine]), ["caught"], around())).toContain("caught");
});

test("the same seed gives the same scenario, in which no path occurs twice", () => {
  const limits = {
    leaseMs: 1_000,
    size: 12,
    depth: 2,
    roots: 3,
    activeMs: 1_000,
    mayPatch: true,
    isPunctual: true,
  };
  for (let i = 0; i < 100; i++) {
    const scenario = generateScenario(createRng(`scenario ${i}`), limits);
    expect(generateScenario(createRng(`scenario ${i}`), limits)).toEqual(scenario);
    const paths = scenario.roots.flatMap(({ program }) =>
      [...walk(program.ops, true)].map(({ path }) => path),
    );
    expect(new Set(paths).size).toBe(paths.length);
  }
});
