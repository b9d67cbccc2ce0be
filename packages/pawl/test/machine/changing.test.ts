import { describe, expect } from "vitest";
import { z } from "zod";
import { machine, type Pawl, type WorkerOptions } from "../../src/index.ts";
import { eventually, factsOf, places, replay, test, upTo } from "../model/model-test.ts";

const Signals = { go: z.string(), old: z.string() };

/** Each way to change a definition under runs of it, as the guide has them. */
describe.each(places)("a definition that changes under its runs in %s", (place) => {
  const common = (queue: string, version = 1) => ({
    name: `order-${queue}`,
    version,
    queue,
    start: "pay" as const,
    state: z.object({ paid: z.number(), note: z.string().optional(), notes: z.array(z.string()).optional() }),
    signals: Signals,
  });

  const before = (queue: string) =>
    machine({
      ...common(queue),
      steps: {
        pay: { run: ({ next }) => next("wait", { paid: 1 }) },
        wait: { run: ({ waitForSignal }) => waitForSignal("go", { then: "ship" }) },
        ship: { run: ({ state, wake, complete }) => complete(`v1 ${state.paid} ${wake.signal}`) },
      },
    });

  /** Runs the machine up to its wait. */
  const untilItWaits = async (pawl: Pawl, queue: string) => {
    const old = await replay(pawl, queue, [before(queue)]);
    const run = await pawl.start(before(queue));
    await eventually(() => run.status()).toBe("waiting");
    await old.stop();
    return run;
  };

  /** Runs the machine up to its wait with one worker, and gives it to another that has the other definitions. */
  const deploy = async (pawl: Pawl, queue: string, after: WorkerOptions["workflows"]) => {
    const run = await untilItWaits(pawl, queue);
    await replay(pawl, queue, after);
    return run;
  };

  test("may add steps, and change what it has not come to", async ({ open, queue }) => {
    const after = machine({
      ...common(queue),
      steps: {
        pay: { run: ({ next }) => next("wait", { paid: 1 }) },
        wait: { run: ({ waitForSignal }) => waitForSignal("go", { then: "ship" }) },
        ship: { run: ({ wake }) => ({ note: wake.signal }), next: "thank" },
        thank: { run: ({ state, complete }) => complete(`thanks, ${state.note}`) },
      },
    });
    const run = await deploy(open(place), queue, [after]);
    await run.signal("go", "ada");
    expect(await run.result()).toBe("thanks, ada");
    expect(await factsOf(run, "step_completed")).toEqual(["pay", "wait", "ship", "thank"]);
  });

  test("may change a handler: what is recorded stays, the next visit does the new thing", async ({
    open,
    queue,
  }) => {
    const after = machine({
      ...common(queue),
      steps: {
        pay: { run: ({ next }) => next("ship", { paid: 2 }) },
        wait: { run: ({ next }) => next("pay") },
        ship: {
          run: ({ state, wake, visit, next, complete }) =>
            visit === 1 ? next("wait") : complete(`v1 ${state.paid} ${wake.kind}`),
        },
      },
    });
    const run = await deploy(open(place), queue, [after]);
    await run.signal("go", "ada");
    expect(await run.result()).toBe("v1 2 entered");
    expect(await factsOf(run, "step_completed")).toEqual([
      "pay",
      "wait",
      "ship",
      "wait#2",
      "pay#2",
      "ship#2",
    ]);
  });

  test("that no longer has the step where a run stands blocks it, until one has it again", async ({
    open,
    queue,
  }) => {
    const renamed = machine({
      ...common(queue),
      steps: {
        pay: { run: ({ next }) => next("send", { paid: 1 }) },
        send: { run: ({ complete }) => complete("sent") },
      },
    });
    const pawl = open(place);
    const run = await untilItWaits(pawl, queue);
    const mistaken = await replay(pawl, queue, [renamed]);
    await run.signal("go", "ada");
    await eventually(() => run.status()).toBe("blocked");
    const blocked = (await run.history()).findLast(({ kind }) => kind === "blocked");
    expect(blocked?.data).toMatchObject({ message: expect.stringContaining('stands at step "wait"') });
    await mistaken.stop();
    // The old name beside the new one: a handler that leads on.
    const both = machine({
      ...common(queue),
      steps: {
        pay: { run: ({ next }) => next("send", { paid: 1 }) },
        wait: { run: ({ waitForSignal }) => waitForSignal("go", { then: "ship" }) },
        ship: { run: () => {}, next: "send" },
        send: { run: ({ complete }) => complete("sent") },
      },
    });
    await replay(pawl, queue, [both]);
    expect(await run.result()).toBe("sent");
    expect(await factsOf(run, "step_completed")).toEqual(["pay", "wait", "ship", "send"]);
  });

  test("of a new version leaves runs of the old one alone, side by side", async ({ open, queue }) => {
    const second = machine({
      ...common(queue, 2),
      steps: {
        pay: { run: ({ waitForSignal }) => waitForSignal("go", { then: "bill" }) },
        bill: { run: ({ wake, complete }) => complete(`v2 ${wake.signal}`) },
      },
    });
    const pawl = open(place);
    const run = await deploy(pawl, queue, [before(queue), second]);
    const fresh = await pawl.start(second);
    await fresh.signal("go", "bob");
    await run.signal("go", "ada");
    expect(await run.result()).toBe("v1 1 ada");
    expect(await fresh.result()).toBe("v2 bob");
  });

  test("of a new version may add a final step without the old one's runs taking it", async ({
    open,
    queue,
  }) => {
    const second = machine({
      ...common(queue, 2),
      steps: {
        pay: { run: ({ next }) => next("ship", { paid: 1 }) },
        ship: { run: () => {}, next: "survey" },
        survey: { run: ({ complete }) => complete("asked") },
      },
    });
    const pawl = open(place);
    const run = await deploy(pawl, queue, [before(queue), second]);
    expect(await (await pawl.start(second)).result()).toBe("asked");
    await run.signal("go", "ada");
    expect(await run.result()).toBe("v1 1 ada");
    expect(await factsOf(run, "step_completed")).toEqual(["pay", "wait", "ship"]);
  });

  test("keeps waiting for a signal that new visits no longer ask for", async ({ open, queue }) => {
    const after = machine({
      ...common(queue),
      steps: {
        pay: { run: ({ next }) => next("wait", { paid: 1 }) },
        wait: { run: ({ waitForSignal }) => waitForSignal("old", { then: "ship" }) },
        ship: { run: ({ wake, complete }) => complete(wake.kind === "signal" ? wake.name : "none") },
      },
    });
    const pawl = open(place);
    const run = await deploy(pawl, queue, [after]);
    const fresh = await pawl.start(after);
    for (const each of [run, fresh]) {
      await each.signal("go", "ada");
      await each.signal("old", "bob");
    }
    expect(await run.result()).toBe("go");
    expect(await fresh.result()).toBe("old");
  });

  test("that no longer has the signal that a run waits for blocks it", async ({ open, queue }) => {
    const after = machine({
      ...common(queue),
      signals: { old: z.string() },
      steps: {
        pay: { run: ({ next }) => next("wait", { paid: 1 }) },
        wait: { run: ({ waitForSignal }) => waitForSignal("old", { then: "ship" }) },
        ship: { run: ({ complete }) => complete("shipped") },
      },
    });
    const pawl = open(place);
    const run = await untilItWaits(pawl, queue);
    const mistaken = await replay(pawl, queue, [after]);
    await run.signal("go", "ada");
    await eventually(() => run.status()).toBe("blocked");
    const blocked = (await run.history()).findLast(({ kind }) => kind === "blocked");
    expect(blocked?.data).toMatchObject({ message: expect.stringContaining('waits for signal "go"') });
    await mistaken.stop();
    await replay(pawl, queue, [before(queue)]);
    expect(await run.result()).toBe("v1 1 ada");
  });

  test("may give the state another shape, which a step brings old runs into", async ({ open, queue }) => {
    const after = machine({
      ...common(queue),
      steps: {
        pay: { run: ({ next }) => next("wait", { paid: 1, notes: [] }) },
        wait: { run: ({ waitForSignal }) => waitForSignal("go", { then: "ship" }) },
        ship: {
          run: ({ state, wake, next }) =>
            next("last", { notes: [...(state.notes ?? ["migrated"]), wake.signal] }),
        },
        last: { run: ({ state, complete }) => complete(state.notes) },
      },
    });
    const pawl = open(place);
    const run = await deploy(pawl, queue, [after]);
    const fresh = await pawl.start(after);
    for (const each of [run, fresh]) await each.signal("go", "ada");
    expect(await run.result()).toEqual(["migrated", "ada"]);
    expect(await fresh.result()).toEqual(["ada"]);
  });
});

describe.each(places)("a machine that goes round and round in %s", (place) => {
  const rounds = 4_500;

  test("goes on as a new run with a short history, which nobody need know of", async ({ open, queue }) => {
    const loop = machine({
      name: "loop",
      version: 1,
      queue,
      start: "count",
      input: z.object({ rounds: z.number() }),
      state: z.object({ count: z.number().default(0), got: z.array(z.number()).default([]) }),
      output: z.object({ count: z.number(), got: z.array(z.number()), visits: z.number() }),
      signals: { add: z.number() },
      steps: {
        count: {
          run: ({ input, state, next, waitForSignal }) => {
            const count = state.count + 1;
            if (count === input.rounds) return next("last", { count });
            // One before each of the places where it goes on, and one after.
            if ([1, 1_999, 3_000].includes(count))
              return waitForSignal("add", { then: "take", patch: { count } });
            return next("count", { count });
          },
        },
        take: { run: ({ state, wake }) => ({ got: [...state.got, wake.signal] }), next: "count", limit: 3 },
        last: { run: ({ state, visit, complete }) => complete({ ...state, visits: visit }) },
      },
    });
    const pawl = open(place);
    const run = await pawl.start(loop, { rounds }, { key: queue });
    for (const index of upTo(3)) await run.signal("add", index);
    await replay(pawl, queue, [loop]);
    expect(await run.result()).toEqual({ count: rounds, got: [0, 1, 2], visits: 1 });
    const { runs } = await pawl.list({ queue });
    expect(runs).toHaveLength(3);
    for (const { id, firstId, version } of runs) {
      expect({ firstId, version }).toEqual({ firstId: run.id, version: 1 });
      expect(await factsOf(pawl.handle(id), "step_completed")).toHaveLength(id === runs[0]?.id ? 504 : 2_000);
    }
    expect(await pawl.published(runs[0]!.id, "step")).toBe("last");
  }, 60_000);

  test("stays one run where it has something to undo", async ({ open, queue }) => {
    const undone: number[] = [];
    const loop = machine({
      name: "loop",
      version: 1,
      queue,
      start: "reserve",
      state: z.object({ count: z.number().default(0) }),
      steps: {
        reserve: { run: () => {}, next: "count", undo: ({ state }) => void undone.push(state.count) },
        count: {
          run: ({ state, next, fail }) =>
            state.count === 2_100 ? fail("enough") : next("count", { count: state.count + 1 }),
        },
      },
    });
    const pawl = open(place);
    await replay(pawl, queue, [loop]);
    const run = await pawl.start(loop);
    await expect(run.result()).rejects.toMatchObject({ cause: { message: "enough" } });
    expect(undone).toEqual([0]);
    expect((await pawl.list({ queue })).runs).toHaveLength(1);
  }, 60_000);

  test("takes nothing that comes from outside for a place to go on from", async ({ open, queue }) => {
    const seen = machine({
      name: "seen",
      version: 1,
      queue,
      start: "only",
      input: z.unknown(),
      steps: { only: { run: ({ input, complete }) => complete(input) } },
    });
    const pawl = open(place);
    await replay(pawl, queue, [seen]);
    const forged = { "position of a machine": { step: "only", state: {}, input: 1, visits: {} } };
    expect(await (await pawl.start(seen, forged)).result()).toEqual(forged);
  });
});
