import { fc } from "pawl-test-support/fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { decode } from "../../src/core/codec.ts";
import { PawlError } from "../../src/core/error.ts";
import { machine, type Machine } from "../../src/machine/machine.ts";
import { createEngine, type Engine, type EngineOptions } from "../runtime/engine.ts";
import {
  evaluate,
  mostAttempts,
  moveAt,
  nameOf,
  patchOf,
  type Move,
  type Plan,
  type Values,
} from "./reference-machine.ts";

const mostSteps = 5;
const step = fc.nat({ max: mostSteps - 1 });
const isPatched = fc.boolean();

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("patch" as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("next" as const), to: step, isPatched }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("sleep" as const),
      to: step,
      isPatched,
      ms: fc.constantFrom(0, 1_000, 3_600_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      signal: fc.constantFrom("a" as const, "b" as const),
      to: step,
      isPatched,
      onTimeout: fc.option(step, { freq: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("complete" as const, "fail" as const) }) },
);

const plan: fc.Arbitrary<Plan> = fc.record({
  moves: fc.array(move, { minLength: 1, maxLength: 4 }),
  next: step,
  flaky: fc.constantFrom(0, 0, 0, 0, 1, 2, 3),
  limit: fc.constantFrom(null, null, null, 2, 5),
  hasUndo: fc.boolean(),
});

const plans = fc.array(plan, { minLength: mostSteps, maxLength: mostSteps });
const signals = fc.array(fc.constantFrom("a" as const, "b" as const), { maxLength: 6 });
const faults = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constant("none") },
    { weight: 2, arbitrary: fc.constantFrom("crash before", "crash after", "fail before", "fail after") },
  ),
  { maxLength: 60 },
);

function withFaults(given: readonly string[], isSticky: boolean): EngineOptions {
  return {
    isSticky,
    crashAt: (call, when) => given[call - 1] === `crash ${when}`,
    failAt: (call, when) => given[call - 1] === `fail ${when}`,
  };
}

const runs = Number(process.env["PAWL_PROPERTY_RUNS"] ?? 150);
const retry = { attempts: mostAttempts, initial: "1s", jitter: false } as const;

/** Steps that are made at run time have no names that a compiler could know. */
const define = machine as unknown as (options: object) => Machine<undefined>;

/** What was done: each completed visit, by the key that all attempts at it share, and what was undone. */
interface Deeds {
  readonly visits: Map<string, string>;
  readonly undone: string[];
}

function build(given: readonly Plan[], { visits, undone }: Deeds): Machine<undefined> {
  const stepOf = ({ flaky, limit, hasUndo, next, ...rest }: Plan, index: number) => ({
    next: nameOf(next),
    ...(limit !== null && { limit }),
    ...(hasUndo && {
      undo: ({ inDoubt }: { readonly inDoubt: boolean }) => void (inDoubt || undone.push(nameOf(index))),
    }),
    run: async (handler: Handler) => {
      const { attempt, visit, wake, state, signal, idempotencyKey } = handler;
      // Its process is dead: what it does then does not happen.
      await Promise.resolve();
      if (PawlError.is(signal.reason, "LEASE_LOST")) throw signal.reason;
      expect(wake.isRetry).toBe(attempt > 1);
      if (attempt <= flaky) throw new Error("not yet");
      const now = moveAt({ ...rest, flaky, limit, hasUndo, next }, visit, state);
      if (now.kind !== "fail") {
        const cause =
          wake.kind === "signal"
            ? `signal ${wake.name} ${wake.signal as number}`
            : wake.kind === "timeout"
              ? `timeout ${wake.name}`
              : wake.kind;
        visits.set(idempotencyKey, `${nameOf(index)} ${cause}`);
      }
      return follow(now, handler, patchOf(index, visit, state));
    },
  });
  return define({
    name: "random",
    version: 1,
    crashLimit: 1_000,
    retry,
    start: nameOf(0),
    state: z.record(z.string(), z.number()).transform((state) => ({ turns: 0, ...state })),
    signals: { a: z.number(), b: z.number() },
    steps: Object.fromEntries(given.map((each, index) => [nameOf(index), stepOf(each, index)])),
  });
}

interface Handler {
  readonly attempt: number;
  readonly visit: number;
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
  readonly state: Values;
  readonly now: number;
  readonly wake: {
    readonly kind: string;
    readonly name: string;
    readonly signal: unknown;
    readonly isRetry: boolean;
  };
  readonly next: (to: string, patch?: Values) => unknown;
  readonly sleepUntil: (at: number, to: string, patch?: Values) => unknown;
  readonly waitForSignal: (name: string, options: object) => unknown;
  readonly complete: (result: unknown) => unknown;
  readonly fail: (error: string) => unknown;
}

function follow(now: Move, handler: Handler, patch: Values): unknown {
  const { next, sleepUntil, waitForSignal, complete, fail, state } = handler;
  switch (now.kind) {
    case "patch":
      return patch;
    case "next":
      return now.isPatched ? next(nameOf(now.to), patch) : next(nameOf(now.to));
    case "sleep":
      return sleepUntil(handler.now + now.ms, nameOf(now.to), now.isPatched ? patch : undefined);
    case "wait":
      return waitForSignal(now.signal, {
        then: nameOf(now.to),
        ...(now.isPatched && { patch }),
        ...(now.onTimeout !== null && { timeout: "1h", onTimeout: nameOf(now.onTimeout) }),
      });
    case "complete":
      return complete(state);
    case "fail":
      return fail("It is over");
    default:
      return now satisfies never;
  }
}

async function execute(
  engine: Engine,
  given: readonly Plan[],
  sent: readonly string[],
  isWaiting: boolean,
): Promise<object> {
  const deeds: Deeds = { visits: new Map(), undone: [] };
  const id = await engine.start(build(given, deeds));
  for (const [index, name] of sent.entries()) await engine.tell(id, `signal:${name}`, index);
  if (isWaiting) {
    await engine.pass(400 * 3_600_000);
    await engine.tell(id, "cancel");
  }
  const { status } = await engine.end(id);
  const published = await engine.store.readPublished(id, null);
  const shown = Object.fromEntries(published.map(({ key, data }) => [key, decode(data)]));
  const history = await engine.history(id);
  const completed = history.flatMap(({ kind, name }) => (kind === "step_completed" ? [name!] : []));
  expect(new Set(completed).size).toBe(completed.length);
  expect(history.filter(({ kind }) => kind === "blocked")).toEqual([]);
  return {
    status,
    output: await engine.output(id),
    // Recorded ones alone: what a dead worker did was done again, and its record is the same.
    visits: completed.map((name) => deeds.visits.get(`${id}/${name}`)),
    ...shown,
    undone: history.flatMap(({ kind, name }) =>
      kind === "undo_completed" && completed.includes(name ?? "") ? [name!.replace(/#.*/, "")] : [],
    ),
  };
}

test(
  "a machine does what its table says, though its workers die anywhere",
  { timeout: 120_000 },
  async () => {
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(plans, signals, faults, fc.boolean(), async (given, sent, broken, isSticky) => {
        const { status, undone, ...expected } = evaluate(given, sent);
        seen.set(status, (seen.get(status) ?? 0) + 1);
        const wanted = {
          ...expected,
          status: status === "waiting" ? "cancelled" : status,
          undone: status === "completed" ? [] : undone,
        };
        for (const options of [{}, withFaults(broken, isSticky)])
          expect(await execute(createEngine(options), given, sent, status === "waiting")).toEqual(wanted);
      }),
      { numRuns: runs },
    );
    expect([...seen.keys()].toSorted()).toEqual(["completed", "failed", "waiting"]);
  },
);

test("a machine costs one write a visit, beside that of its beginning and that of its end", async () => {
  const engine = createEngine();
  const visits = 7;
  const counting = machine({
    name: "counting",
    version: 1,
    start: "count",
    state: z.object({ count: z.number().default(0) }),
    steps: {
      count: {
        run: ({ state, visit, next, complete }) =>
          visit === visits - 1 ? complete() : next("other", { count: state.count + 1 }),
      },
      other: { run: ({ state }) => ({ count: state.count + 1 }), next: "count" },
    },
  });
  const id = await engine.start(counting);
  await engine.end(id);
  const history = await engine.history(id);
  expect(history.filter(({ kind }) => kind === "step_completed")).toHaveLength(2 * visits - 3);
  expect(engine.writes()).toBe(2 * visits - 3 + 2);
});
