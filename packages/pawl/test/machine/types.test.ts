import { expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  machine,
  ref,
  type InputOf,
  type Outcome,
  type OutputOf,
  type PublishedOf,
  type RunHandle,
  type SignalsOf,
} from "../../src/index.ts";
import type { createCheckout } from "./checkout.ts";

test("a machine has the types of a workflow: what it takes, ends with, is told and shows", async () => {
  type Checkout = ReturnType<typeof createCheckout>;
  expectTypeOf<InputOf<Checkout>>().toEqualTypeOf<{ orderId: number }>();
  expectTypeOf<OutputOf<Checkout>>().toEqualTypeOf<{ carrier: string; hold: string }>();
  const elsewhere = ref<Checkout>("checkout", 1);
  expectTypeOf<keyof SignalsOf<typeof elsewhere>>().toEqualTypeOf<"shipment_created">();
  const read = async (run: RunHandle<unknown, SignalsOf<Checkout>, PublishedOf<Checkout>>): Promise<void> => {
    expectTypeOf(await run.published("step")).toEqualTypeOf<
      "reserve_inventory" | "charge_card" | "wait_for_shipment" | "nag" | "notify" | undefined
    >();
    expectTypeOf(await run.published("state")).toEqualTypeOf<{ hold: string; charge: string } | undefined>();
    // @ts-expect-error: a machine publishes no other
    void run.published("steps");
    // @ts-expect-error: not declared
    void run.signal("shipped", {});
  };
  expectTypeOf(read).toBeFunction();
});

test("a handler gets what the schemas make, and gives what they take", () => {
  machine({
    name: "typed",
    version: 1,
    start: "only",
    input: z.object({ id: z.string().transform(Number) }),
    state: z.object({ seen: z.number().default(0), note: z.string().optional() }),
    output: z.string().transform(Number),
    signals: { go: z.string().transform(Number), stop: z.boolean() },
    steps: {
      only: {
        run: ({ input, state, wake, now, visit, attempt, signal, idempotencyKey, complete }) => {
          expectTypeOf(input).toEqualTypeOf<{ id: number }>();
          expectTypeOf(state).toEqualTypeOf<Readonly<{ seen: number; note?: string | undefined }>>();
          expectTypeOf(wake.signal).toEqualTypeOf<number | boolean>();
          if (wake.kind === "signal" && wake.name === "go") expectTypeOf(wake.signal).toEqualTypeOf<number>();
          if (wake.kind === "timeout") expectTypeOf(wake.name).toEqualTypeOf<"go" | "stop">();
          if (wake.kind === "timer") expectTypeOf(wake.signal).toEqualTypeOf<never>();
          expectTypeOf([now, visit, attempt]).toEqualTypeOf<number[]>();
          expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
          expectTypeOf(idempotencyKey).toEqualTypeOf<string>();
          expectTypeOf(complete).parameters.toEqualTypeOf<[result: string]>();
          return complete("1");
        },
        undo: ({ input, state, inDoubt }) => {
          expectTypeOf(input).toEqualTypeOf<{ id: number }>();
          expectTypeOf(state.seen).toEqualTypeOf<number>();
          expectTypeOf(inDoubt).toEqualTypeOf<boolean>();
        },
      },
    },
  });
});

test("without schemas there is no input and no state, and any signal and result", () => {
  const bare = machine({
    name: "bare",
    version: 1,
    start: "first",
    steps: {
      first: { run: ({ waitForSignal }) => waitForSignal("whatever", { then: "last" }) },
      last: {
        run: ({ input, wake, complete }) => {
          expectTypeOf(input).toEqualTypeOf<undefined>();
          expectTypeOf(wake.signal).toEqualTypeOf<unknown>();
          return complete({ any: "thing" });
        },
      },
    },
  });
  expectTypeOf<InputOf<typeof bare>>().toEqualTypeOf<undefined>();
  expectTypeOf<OutputOf<typeof bare>>().toEqualTypeOf<unknown>();
  machine({
    name: "bare",
    version: 1,
    start: "first",
    // @ts-expect-error: there is no state to patch
    steps: { first: { run: () => ({ a: 1 }), next: "first" } },
  });
});

test("a step with a static next may return a patch, nothing, or an outcome, at once or later", () => {
  const external = async (): Promise<{ count: number }> => ({ count: 1 });
  machine({
    name: "static",
    version: 1,
    start: "a",
    state: z.object({ count: z.number(), note: z.string() }),
    steps: {
      a: { run: external, next: "b" },
      b: { run: () => {}, next: "c" },
      c: { run: async () => undefined, next: "d" },
      d: {
        run: ({ state, complete }) => (state.count > 3 ? complete() : { count: state.count + 1 }),
        next: "e",
      },
      e: {
        run: async ({ state, fail }) => {
          if (state.note === "") return fail(new Error("no note"));
          if (state.count === 1) return undefined;
          return { note: "x" };
        },
        next: "f",
      },
      f: {
        run: (): never => {
          throw new Error("always");
        },
      },
    },
  });
});

test("what nobody may forget is required together", () => {
  machine({
    name: "waits",
    version: 1,
    start: "a",
    signals: { go: z.string() },
    steps: {
      a: {
        // @ts-expect-error: a timeout leads somewhere
        run: ({ waitForSignal }) => waitForSignal("go", { then: "a", timeout: "1d" }),
      },
    },
  });
  const misspelt = (): unknown =>
    machine({
      name: "misspelt",
      version: 1,
      start: "a",
      // @ts-expect-error: misspelt
      steps: { a: { run: ({ complete }) => complete(), retri: { attempts: 1 } } },
    });
  expectTypeOf(misspelt).toBeFunction();
  // @ts-expect-error: no outcome can be made by hand
  const forged: Outcome = { kind: "next", to: "a" };
  expectTypeOf(forged).not.toBeAny();
});
