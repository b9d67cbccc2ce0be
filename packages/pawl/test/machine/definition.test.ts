import { describe, expect, test } from "vitest";
import { z } from "zod";
import { machine, toMermaid, type PawlError } from "../../src/index.ts";
import { createCheckout } from "./checkout.ts";

/** As code that no compiler has seen would. */
const define = machine as unknown as (options: unknown) => ReturnType<typeof createCheckout>;
const run = (): void => {};

function refusal(options: unknown): PawlError {
  try {
    define(options);
  } catch (error) {
    return error as PawlError;
  }
  throw new Error("It was taken.");
}

describe("a definition", () => {
  test("is refused with all that is wrong with it in one error", () => {
    const error = refusal({
      name: "",
      version: 0,
      start: "frist",
      statte: {},
      output: "string",
      signals: { go: 1 },
      retry: { attempts: 0 },
      steps: {
        first: { run, next: "secnd", retry: { attempts: 0, initial: "soon" }, timeout: "never" },
        second: { next: "first", undoRetry: {}, onCrash: "explode", limit: 0, leadsTo: ["first", "third"] },
        "nul\0": { run },
        third: null,
        fourth: { run, retri: {} },
      },
    });
    expect(error.code).toBe("INVALID_OPTION");
    expect(error.message.split("\n")).toEqual([
      "The options of machine have 18 problems:",
      '- The option "name" of machine must not be empty.',
      '- The option "version" of machine must be from 1 to 2147483647.',
      '- The option "start" of machine names "frist", which is no step: there is first.',
      '- There is no option "statte" of machine. Did you mean "state"?',
      '- The option "output" of machine must be a Standard Schema, such as one of zod or valibot.',
      '- The option "signals.go" of machine must be a Standard Schema, such as one of zod or valibot.',
      '- The option "retry.attempts" of machine must be from 1 to 1000.',
      '- The option "steps.first.next" of machine names "secnd", which is no step: there is second.',
      '- The option "steps.first.retry.attempts" of machine must be from 1 to 1000.',
      '- The option "steps.first.retry.initial" of machine must be a duration from "0ms" to "365d".',
      '- The option "steps.first.timeout" of machine must be a duration from "1ms" to "365d".',
      '- The option "steps.second.onCrash" of machine must be "retry" or "fail".',
      '- The option "steps.second.limit" of machine must be from 1 to 1000000.',
      '- The option "steps.second.run" of machine must be given.',
      '- The option "steps.second.undoRetry" of machine needs "undo".',
      '- The option "steps.nul\0" of machine must not hold NUL characters.',
      '- The option "steps.third" of machine must be a plain object.',
      '- There is no option "steps.fourth.retri" of machine. Did you mean "steps.fourth.retry"?',
    ]);
  });

  test.for([
    [{ steps: {} }, 'The option "steps" of machine must have a step.'],
    [{ steps: [] }, 'The option "steps" of machine must be an object of steps.'],
    [{ steps: undefined }, 'The option "steps" of machine must be given.'],
    [{ start: 1 }, 'The option "start" of machine must be the name of a step.'],
    [{ start: "nowhere" }, 'The option "start" of machine names "nowhere", which is no step: there is a, b.'],
    [
      { start: "toString" },
      'The option "start" of machine names "toString", which is no step: there is a, b.',
    ],
  ] as const)("is refused with %j", ([wrong, message]) => {
    const right = {
      name: "m",
      version: 1,
      start: "a",
      steps: { a: { run, next: "b" }, b: { run, next: "a" } },
    };
    expect(refusal({ ...right, ...wrong }).message).toBe(message);
  });

  test("is copied: who changes it later changes nothing", () => {
    const steps = { a: { run, next: "a" } };
    const made = define({ name: "m", version: 1, start: "a", steps });
    steps.a.next = "b";
    expect(made.graph.steps).toEqual([{ name: "a", next: "a", chooses: [], mayWait: false, limit: null }]);
  });
});

describe("what looks wrong about a machine", () => {
  test("is nothing about one whose steps lead to each other, and to waits", () => {
    expect(createCheckout("q", { done: [] }).warnings).toEqual([]);
  });

  test("is a step that none leads to, unless somebody says so", () => {
    const decide = ({ next }: { next: (to: never) => never }): never => next("b" as never);
    const steps = {
      a: { run: (handler: never) => decide(handler) },
      b: { run: ({ complete }: { complete: () => unknown }) => complete() },
      c: { run, next: "b" },
    };
    const given = { name: "m", version: 1, start: "a", steps };
    expect(define(given).warnings).toEqual([
      expect.stringContaining('No step leads to step "b"'),
      expect.stringContaining('No step leads to step "c"'),
    ]);
    const told = { ...steps, a: { ...steps.a, leadsTo: ["b", "c"] } };
    expect(define({ ...given, steps: told }).warnings).toEqual([]);
  });

  test("is a cycle that neither waits nor has a limit", () => {
    const steps = {
      start: { run, next: "a" },
      a: { run, next: "b" },
      b: { run, next: "c" },
      c: { run: ({ next }: Chooser) => next("b") },
    };
    const given = { name: "m", version: 1, start: "start" };
    expect(define({ ...given, steps }).warnings).toEqual([
      'The steps "b", "c" lead to each other without a wait or a "limit".',
    ]);
    const itself = { ...steps, c: { run, next: "c" } };
    expect(define({ ...given, steps: itself }).warnings).toEqual([
      'Step "c" leads to itself without a wait or a "limit".',
    ]);
    const limited = { ...steps, b: { run, next: "c", limit: 9 } };
    expect(define({ ...given, steps: limited }).warnings).toEqual([]);
    const resting = { ...steps, c: { run: ({ sleepUntil }: Chooser) => sleepUntil(1, "b") } };
    expect(define({ ...given, steps: resting }).warnings).toEqual([]);
    const unclear = {
      ...steps,
      c: { run: (handler: Chooser) => Object.values(handler)[0]?.("b"), leadsTo: ["b"] },
    };
    expect(define({ ...given, steps: unclear }).warnings).toEqual([]);
  });
});

interface Chooser {
  readonly next: (to: string) => unknown;
  readonly sleepUntil: (at: number, to: string) => unknown;
}

describe("a diagram", () => {
  test("shows the steps of a machine, and where each may lead", () => {
    expect(toMermaid(createCheckout("q", { done: [] }))).toBe(
      [
        "stateDiagram-v2",
        "  [*] --> reserve_inventory",
        "  reserve_inventory --> charge_card",
        "  charge_card --> wait_for_shipment",
        "  wait_for_shipment --> nag",
        "  wait_for_shipment --> notify",
        "  nag --> wait_for_shipment",
        "  notify --> [*]",
        "",
      ].join("\n"),
    );
  });

  test("names steps whatever they are called", () => {
    const made = machine({
      name: "odd",
      version: 1,
      start: 'say "hi" --> [*]',
      state: z.object({}),
      steps: {
        'say "hi" --> [*]': { run: ({ next }) => next("end") },
        end: { run: ({ next }) => next(`step1`) },
        step1: { run: ({ next }) => next("日本") },
        日本: { run: ({ complete }) => complete() },
      },
    });
    expect(toMermaid(made)).toBe(
      [
        "stateDiagram-v2",
        '  state "say #34;hi#34; --#62; #91;#42;#93;" as step1',
        '  state "end" as step2',
        '  state "step1" as step3',
        '  state "日本" as step4',
        "  [*] --> step1",
        "  step1 --> step2",
        "  step2 --> step3",
        "  step3 --> step4",
        "  step4 --> [*]",
        "",
      ].join("\n"),
    );
  });
});
