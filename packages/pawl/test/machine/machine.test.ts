import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { z } from "zod";
import { machine, NonRetryableError, ref, workflow, type Log, type Pawl } from "../../src/index.ts";
import { eventually, factsOf, places, replay, test } from "../model/model-test.ts";
import { createCheckout, type Shop } from "./checkout.ts";

const once = { attempts: 1 } as const;
const soon = (now: number): number => now + 1;

describe.each(places)("a machine in %s", (place) => {
  test("goes from step to step, waits for its signal, and ends with its result", async ({ open, queue }) => {
    const shop: Shop = { done: [] };
    const checkout = createCheckout(queue, shop);
    const pawl = open(place);
    await replay(pawl, queue, [checkout]);
    const run = await pawl.start(checkout, { orderId: 7 });
    await eventually(() => run.status()).toBe("waiting");
    expect(await run.published()).toEqual({
      step: "wait_for_shipment",
      state: { hold: "hold-7", charge: "c-1" },
    });
    await run.signal("shipment_created", { carrier: "dhl" });
    expect(await run.result()).toEqual({ carrier: "dhl", hold: "hold-7" });
    expect(shop.done).toEqual(["reserve 7", "charge 1", "charge 2"]);
    expect(await factsOf(run, "step_completed")).toEqual([
      "reserve_inventory",
      "charge_card",
      "wait_for_shipment",
      "notify",
    ]);
    expect(await run.published("step")).toBe("notify");
  });

  test("takes a signal that came before it asked", async ({ open, queue }) => {
    const checkout = createCheckout(queue, { done: [] });
    const pawl = open(place);
    const run = await pawl.start(checkout, { orderId: 7 });
    await run.signal("shipment_created", { carrier: "ups" });
    await replay(pawl, queue, [checkout]);
    expect(await run.result()).toEqual({ carrier: "ups", hold: "hold-7" });
  });

  test("tells a handler why it runs, the same in every attempt", async ({ open, queue }) => {
    const wakes: unknown[] = [];
    let fails = false;
    const woken = machine({
      name: "woken",
      version: 1,
      queue,
      retry: { initial: 0 },
      start: "first",
      state: z.object({ seen: z.number() }),
      signals: { go: z.object({ by: z.string() }), stop: z.null() },
      steps: {
        first: { run: ({ wake }) => void wakes.push(wake), next: "second" },
        second: { run: ({ wake, sleepUntil, now }) => (wakes.push(wake), sleepUntil(soon(now), "third")) },
        third: {
          run: ({ wake, waitForSignal }) => (
            wakes.push(wake),
            waitForSignal("go", { then: "first", timeout: 1, onTimeout: "fourth", patch: { seen: 1 } })
          ),
        },
        fourth: {
          run: ({ wake, state, waitForSignal }) => (
            wakes.push(wake, state.seen),
            waitForSignal("stop", { then: "fifth", timeout: "1d", onTimeout: "first" })
          ),
        },
        fifth: {
          run: ({ wake, attempt, complete }) => {
            wakes.push({ ...wake, attempt });
            fails = !fails;
            if (fails) throw new Error("once more");
            return complete(wake.kind === "signal" && wake.name === "stop" ? wake.signal : "no");
          },
        },
      },
    });
    const pawl = open(place);
    await replay(pawl, queue, [woken]);
    const run = await pawl.start(woken);
    await run.signal("stop", null);
    expect(await run.result()).toBeNull();
    expect(wakes).toEqual([
      { kind: "entered", isRetry: false },
      { kind: "entered", isRetry: false },
      { kind: "timer", isRetry: false },
      { kind: "timeout", name: "go", isRetry: false },
      1,
      { kind: "signal", name: "stop", signal: null, isRetry: false, attempt: 1 },
      { kind: "signal", name: "stop", signal: null, isRetry: true, attempt: 2 },
    ]);
  });

  test("fails where a handler reads a signal that did not come, and is not tried again", async ({
    open,
    queue,
  }) => {
    let calls = 0;
    const hasty = machine({
      name: "hasty",
      version: 1,
      queue,
      start: "only",
      signals: { go: z.string() },
      steps: { only: { run: ({ wake, complete }) => ((calls += 1), complete(wake.signal)) } },
    });
    const pawl = open(place);
    await replay(pawl, queue, [hasty]);
    await expect((await pawl.start(hasty)).result()).rejects.toMatchObject({
      cause: { code: "INVALID_OPTION", message: expect.stringContaining('which is "entered"') },
    });
    expect(calls).toBe(1);
  });

  test("comes to a step again and again, each visit with a record and a key of its own", async ({
    open,
    queue,
  }) => {
    const keys: string[] = [];
    const poll = machine({
      name: "poll",
      version: 1,
      queue,
      start: "look",
      state: z.object({ looks: z.number().default(0) }),
      output: z.number(),
      steps: {
        look: {
          run: ({ state, visit, idempotencyKey, complete, sleepUntil, now }) => {
            keys.push(idempotencyKey);
            expect(visit).toBe(state.looks + 1);
            if (visit === 4) return complete(state.looks);
            return sleepUntil(soon(now), "look", { looks: state.looks + 1 });
          },
        },
      },
    });
    const pawl = open(place);
    await replay(pawl, queue, [poll]);
    const run = await pawl.start(poll);
    expect(await run.result()).toBe(3);
    expect(await factsOf(run, "step_completed")).toEqual(["look", "look#2", "look#3", "look#4"]);
    expect(new Set(keys).size).toBe(4);
    expect(await run.published()).toEqual({ step: "look", state: { looks: 3 } });
  });

  test("fails at the visit past a step's limit", async ({ open, queue }) => {
    const loop = machine({
      name: "loop",
      version: 1,
      queue,
      start: "around",
      steps: { around: { run: () => {}, next: "around", limit: 3 } },
    });
    const pawl = open(place);
    await replay(pawl, queue, [loop]);
    const run = await pawl.start(loop);
    await expect(run.result()).rejects.toMatchObject({
      cause: { message: 'The machine has come to step "around" more than 3 times.' },
    });
    expect(await factsOf(run, "step_completed")).toHaveLength(3);
  });

  test("records what a step changes and where it leads in one write, which SQL shows", async ({
    open,
    queue,
    pool,
    home,
  }) => {
    const checkout = createCheckout(queue, { done: [] });
    const pawl = open(place);
    await replay(pawl, queue, [checkout]);
    const run = await pawl.start(checkout, { orderId: 7 });
    await eventually(() => run.status()).toBe("waiting");
    const history = await run.history();
    const [completed, ...shown] = history.slice(history.findIndex(({ kind }) => kind === "step_completed"));
    expect(completed?.data).toEqual({
      kind: "next",
      to: "charge_card",
      patch: { hold: "hold-7" },
      hasUndo: true,
    });
    expect(shown.slice(0, 2).map(({ kind, data, at }) => [kind, data, at])).toEqual([
      ["published", "charge_card", completed?.at],
      ["published", { hold: "hold-7" }, completed?.at],
    ]);
    if (place === "memory") return;
    const guide = await readFile(join(import.meta.dirname, "../../../../docs/machines.md"), "utf8");
    const answers: unknown[] = [];
    for (const [, sql = ""] of guide.matchAll(/^```sql\n([^]*?)^```/gm)) {
      const text = sql.replaceAll("pawl.", `${home}.`).replaceAll(":'run'", `'${run.id}'`);
      answers.push(
        (await pool.query(text.replaceAll("'checkout'", `'checkout' and l.queue = '${queue}'`))).rows,
      );
    }
    expect(answers).toMatchObject([
      [{ run_id: run.id, status: "waiting", step: "wait_for_shipment", state: { hold: "hold-7" } }],
      [
        { name: "reserve_inventory", kind: "step_completed", next: "charge_card", patch: { hold: "hold-7" } },
        { name: "charge_card", next: "wait_for_shipment" },
        { name: "wait_for_shipment", next: "notify", patch: {} },
      ],
      [{ version: 1, step: "wait_for_shipment", runs: "1" }],
    ]);
  });

  test("gives handlers what they cannot change, and keeps what they return alone", async ({
    open,
    queue,
  }) => {
    const greedy = machine({
      name: "greedy",
      version: 1,
      queue,
      retry: once,
      start: "first",
      input: z.object({ list: z.array(z.number()) }),
      state: z.object({ list: z.array(z.number()) }),
      steps: {
        first: { run: ({ input }) => ({ list: input.list }), next: "second" },
        second: {
          run: ({ input, state, complete }) => {
            expect(() => input.list.push(1)).toThrow(TypeError);
            expect(() => state.list.push(1)).toThrow(TypeError);
            return complete(state.list);
          },
        },
      },
    });
    const pawl = open(place);
    await replay(pawl, queue, [greedy]);
    expect(await (await pawl.start(greedy, { list: [0] })).result()).toEqual([0]);
  });

  test("keeps what its schema began with, and leaves alone what handlers own", async ({ open, queue }) => {
    const own = [1];
    const shared = { list: [0] };
    const begun = machine({
      name: "begun",
      version: 1,
      queue,
      retry: { attempts: 2, initial: 0 },
      start: "first",
      state: z.object({
        id: z.string().default(() => crypto.randomUUID()),
        shared: z.object({ list: z.array(z.number()) }).default(shared),
        own: z.array(z.number()).default([]),
      }),
      steps: {
        first: {
          run: ({ state, attempt, waitForSignal }) => {
            expect(() => state.shared.list.push(1)).toThrow(TypeError);
            if (attempt === 1) throw new Error("once more");
            return waitForSignal("go", { then: "second", patch: { own } });
          },
        },
        second: { run: ({ state, complete }) => complete(state) },
      },
    });
    const pawl = open(place);
    await replay(pawl, queue, [begun]);
    const run = await pawl.start(begun);
    await eventually(() => run.status()).toBe("waiting");
    const before = await run.published("state");
    expect(before).toMatchObject({ id: expect.any(String), own: [1], shared: { list: [0] } });
    await run.signal("go");
    expect(await run.result()).toEqual(before);
    own.push(2);
    shared.list.push(1);
  });

  test("is a workflow like any other: child, ref, one of many", async ({ open, queue }) => {
    const double = machine({
      name: "double",
      version: 1,
      queue,
      start: "double",
      input: z.number(),
      output: z.number(),
      steps: { double: { run: ({ input, complete }) => complete(input * 2) } },
    });
    const parent = workflow({ name: "parent", version: 1, queue }, (ctx, input: number) =>
      ctx.call(double, input),
    );
    const pawl = open(place);
    await replay(pawl, queue, [double, parent]);
    expect(await (await pawl.start(parent, 2)).result()).toBe(4);
    const elsewhere = ref<typeof double>("double", 1, { queue });
    const remote = await pawl.start(elsewhere, 3);
    expect(await remote.result()).toBe(6);
    expect(await remote.published("step")).toBe("double");
    const many = await pawl.startMany(double, [{ input: 4 }, { input: 5 }]);
    expect(await Promise.all(many.map((run) => run.result()))).toEqual([8, 10]);
  });

  test("logs what looks wrong with it when a worker gets it", async ({ open, queue }) => {
    const lines: [string, unknown][] = [];
    const quiet = (): void => {};
    const log: Log = {
      debug: quiet,
      info: quiet,
      error: quiet,
      warn: (text, fields) => void lines.push([text, fields]),
    };
    const odd = machine({
      name: "odd",
      version: 3,
      queue,
      start: "a",
      steps: { a: { run: ({ complete }) => complete() }, b: { run: ({ complete }) => complete() } },
    });
    open(place, { log }).worker({ workflows: [odd], queues: [queue] });
    expect(lines).toEqual([
      [expect.stringContaining('No step leads to step "b"'), { workflow: "odd", version: 3 }],
    ]);
  });
});

describe.each(places)("what a machine refuses in %s", (place) => {
  const outcomeOf = async (
    pawl: Pawl,
    made: Parameters<Pawl["start"]>[0],
    queue: string,
  ): Promise<unknown> => {
    await replay(pawl, queue, [made as never]);
    const run = await pawl.start(made, undefined as never);
    return run.result().catch((error: unknown) => (error as Error).cause);
  };

  test("is a patch that its schema refuses, but for keys that are not there yet", async ({ open, queue }) => {
    const calls: string[] = [];
    const strict = machine({
      name: "strict",
      version: 1,
      queue,
      start: "good",
      state: z.object({ first: z.string(), second: z.number().max(1) }),
      steps: {
        good: { run: () => (calls.push("good"), { first: "a" }), next: "bad" },
        bad: { run: () => (calls.push("bad"), { second: 2 }), next: "good" },
      },
    });
    expect(await outcomeOf(open(place), strict, queue)).toMatchObject({
      code: "INVALID_PAYLOAD",
      message: expect.stringContaining("second: "),
    });
    expect(calls).toEqual(["good", "bad"]);
  });

  test("is a result that its schema refuses; one that it takes is parsed", async ({ open, queue }) => {
    const parsed = (output: string) =>
      machine({
        name: `parsed-${output}`,
        version: 1,
        queue,
        start: "only",
        output: z.string().regex(/^\d+$/).transform(Number),
        steps: { only: { run: ({ complete }) => complete(output) } },
      });
    expect(await outcomeOf(open(place), parsed("12"), queue)).toBe(12);
    expect(await outcomeOf(open(place), parsed("x"), queue)).toMatchObject({ code: "INVALID_PAYLOAD" });
  });

  test.for([
    [
      "an unknown step",
      ({ next }: Loose) => next("frist"),
      /The target of next names "frist", which is no step: there is first\./,
    ],
    [
      "an unknown signal",
      ({ waitForSignal }: Loose) => waitForSignal("went", { then: "first" }),
      /no signal "went": it knows go/,
    ],
    [
      "a timeout that leads nowhere",
      ({ waitForSignal }: Loose) => waitForSignal("go", { then: "first", timeout: "1d" }),
      /"onTimeout" of waitForSignal is needed/,
    ],
    [
      "a signal without a name",
      ({ waitForSignal }: Loose) => waitForSignal("", { then: "first" }),
      /must not be empty/,
    ],
    ["no time at all", ({ sleepUntil }: Loose) => sleepUntil("soon", "first"), /needs a valid date/],
    [
      "a patch that is none",
      ({ next }: Loose) => next("first", [1]),
      /must be a plain object with keys of the state/,
    ],
    ["neither an outcome nor a next", () => ({ a: 1 }), /has returned no outcome, and has no "next"/],
  ] as const)("is %s, from code that no compiler has seen", async ([, run, message], { open, queue }) => {
    let calls = 0;
    const loose = machine({
      name: "loose",
      version: 1,
      queue,
      start: "first",
      signals: { go: z.string() },
      steps: { first: { run: (handler) => ((calls += 1), (run as (handler: unknown) => never)(handler)) } },
    });
    expect(await outcomeOf(open(place), loose, queue)).toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringMatching(message),
    });
    expect(calls).toBe(1);
  });
});

type Loose = Readonly<Record<"next" | "waitForSignal" | "sleepUntil", (...args: unknown[]) => unknown>>;

describe.each(places)("a machine that fails in %s", (place) => {
  const saga = (queue: string, done: string[], end: "throw" | "fail" | "wait" | "string") =>
    machine({
      name: `saga-${end}`,
      version: 1,
      queue,
      retry: { attempts: 2, initial: 0 },
      start: "flight",
      input: z.string(),
      state: z.object({ flight: z.string(), hotel: z.string() }),
      steps: {
        flight: {
          run: ({ input, next }) => next("hotel", { flight: `flight to ${input}` }),
          undo: ({ input, state, inDoubt }) => void done.push(`no ${state.flight} ${input} ${inDoubt}`),
        },
        hotel: {
          run: () => ({ hotel: "hotel" }),
          next: "car",
          undo: ({ state }) => void done.push(`no ${state.hotel} after ${state.flight}`),
        },
        car: {
          run: ({ fail, waitForSignal }) => {
            done.push("car");
            if (end === "throw") throw new Error("no car");
            if (end === "wait") return waitForSignal("car", { then: "car" });
            return fail(
              end === "string" ? "no car" : Object.assign(new RangeError("no car"), { code: "CAR" }),
            );
          },
          undo: () => void done.push("no car"),
        },
      },
    });

  test.for(["throw", "fail", "string"] as const)(
    "by a %s undoes what it did, the last first",
    async (end, { open, queue }) => {
      const done: string[] = [];
      const made = saga(queue, done, end);
      const pawl = open(place);
      await replay(pawl, queue, [made]);
      const run = await pawl.start(made, "Oslo");
      const error = { throw: Error, fail: RangeError, string: NonRetryableError }[end];
      await expect(run.result()).rejects.toMatchObject({
        code: "RUN_FAILED",
        cause: { name: error === NonRetryableError ? "NonRetryableError" : error.name, message: "no car" },
      });
      const tries = end === "throw" ? ["car", "car"] : ["car"];
      expect(done).toEqual([...tries, "no hotel after flight to Oslo", "no flight to Oslo Oslo false"]);
    },
  );

  test("by a cancel undoes what it did, the step it waits after included", async ({ open, queue }) => {
    const done: string[] = [];
    const made = saga(queue, done, "wait");
    const pawl = open(place);
    await replay(pawl, queue, [made]);
    const run = await pawl.start(made, "Oslo");
    await eventually(() => run.status()).toBe("waiting");
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    expect(done).toEqual(["car", "no car", "no hotel after flight to Oslo", "no flight to Oslo Oslo false"]);
  });

  test("is retried by an operator from the step that failed", async ({ open, queue }) => {
    let isUp = false;
    const calls: string[] = [];
    const made = machine({
      name: "mended",
      version: 1,
      queue,
      start: "first",
      steps: {
        first: { run: () => void calls.push("first"), next: "second" },
        second: {
          run: ({ fail, complete }) => (calls.push("second"), isUp ? complete("up") : fail("It is down")),
        },
      },
    });
    const pawl = open(place);
    await replay(pawl, queue, [made]);
    const run = await pawl.start(made);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    isUp = true;
    await run.retry();
    expect(await run.result()).toBe("up");
    expect(calls).toEqual(["first", "second", "second"]);
  });

  test("since a step takes too long says so, after its attempts", async ({ open, queue }) => {
    const attempts: number[] = [];
    const slow = machine({
      name: "slow",
      version: 1,
      queue,
      start: "only",
      steps: {
        only: {
          run: async ({ attempt, signal, complete }) => {
            attempts.push(attempt);
            await new Promise((resolve) => signal.addEventListener("abort", resolve));
            return complete();
          },
          timeout: 10,
          retry: { attempts: 2, initial: 0 },
        },
      },
    });
    const pawl = open(place);
    await replay(pawl, queue, [slow]);
    await expect((await pawl.start(slow)).result()).rejects.toMatchObject({
      cause: { code: "STEP_TIMED_OUT" },
    });
    expect(attempts).toEqual([1, 2]);
  });
});
