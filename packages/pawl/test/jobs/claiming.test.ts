import { describe, expect } from "vitest";
import { workflow, type PawlEvent, type Workflow } from "../../src/index.ts";
import { createGate, eventually, places, test, upTo, work } from "./job-test.ts";

/** A workflow that writes down in which order its runs begin. */
function createNote(order: unknown[], name = "note"): Workflow<unknown, void> {
  return workflow({ name, version: 1 }, async (_, input: unknown) => {
    order.push(input);
  });
}

describe.each(places)("workers of %s", (place) => {
  test("take the oldest first", async ({ open, queue }) => {
    const pawl = open(place);
    const order: unknown[] = [];
    const note = createNote(order);
    for (const input of upTo(12)) await pawl.start(note, input, { queue });
    await pawl.worker({ workflows: [note], queues: [queue], concurrency: 1 }).runUntilIdle();
    expect(order).toEqual(upTo(12));
  });

  test("take the lowest priority first, and the oldest of those", async ({ open, queue }) => {
    const pawl = open(place);
    const order: unknown[] = [];
    const note = createNote(order);
    const priorities = [5, -3, 0, 5, -3, 2_147_483_647, 0, -2_147_483_648];
    for (const [index, priority] of priorities.entries())
      await pawl.start(note, `${priority}/${index}`, { queue, priority });
    await pawl.worker({ workflows: [note], queues: [queue], concurrency: 1 }).runUntilIdle();
    expect(order).toEqual(["-2147483648/7", "-3/1", "-3/4", "0/2", "0/6", "5/0", "5/3", "2147483647/5"]);
  });

  test("keep that order across workflows and queues", async ({ open, queue }) => {
    const pawl = open(place);
    const order: unknown[] = [];
    const left = createNote(order, "left");
    const right = createNote(order, "right");
    const queues = [`${queue} a`, `${queue} b`, `${queue} c`];
    for (const index of upTo(24)) {
      const options = { queue: queues[index % 3]!, priority: index % 2 };
      await pawl.start(index % 4 < 2 ? left : right, index, options);
    }
    await pawl.worker({ workflows: [right, left], queues, concurrency: 1 }).runUntilIdle();
    expect(order).toEqual([
      ...upTo(24).filter((index) => index % 2 === 0),
      ...upTo(24).filter((index) => index % 2 === 1),
    ]);
  });

  test("let a run that comes later with a lower priority go before those that wait", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const order: unknown[] = [];
    const gate = createGate();
    const note = workflow({ name: "note", version: 1 }, async (ctx, input: string) => {
      order.push(input);
      if (input === "first") await ctx.step("wait", () => gate.opened);
    });
    await pawl.start(note, "first", { queue });
    await work(pawl, { workflows: [note], queues: [queue], concurrency: 1 });
    await eventually(() => order).toEqual(["first"]);
    await pawl.start(note, "usual", { queue });
    await pawl.start(note, "usual too", { queue });
    await pawl.start(note, "urgent", { queue, priority: -1 });
    gate.open();
    await eventually(() => order).toEqual(["first", "urgent", "usual", "usual too"]);
  });

  test("do not let runs for later, however urgent, hold up others", async ({ open, queue }) => {
    const pawl = open(place);
    const order: unknown[] = [];
    const note = createNote(order);
    await pawl.startMany(
      note,
      upTo(50).map((input) => ({ input })),
      { queue, priority: -9, delay: "1h" },
    );
    await pawl.start(note, "now", { queue });
    const summary = await pawl.worker({ workflows: [note], queues: [queue], concurrency: 1 }).runUntilIdle();
    expect(order).toEqual(["now"]);
    expect(summary).toMatchObject({ claimed: 1 });
  });

  test("execute as many runs at once as they are allowed to, and no more", async ({ open, queue }) => {
    const pawl = open(place);
    const gate = createGate();
    let running = 0;
    let most = 0;
    const busy = workflow({ name: "busy", version: 1 }, async (ctx) => {
      await ctx.step("wait", async () => {
        running += 1;
        most = Math.max(most, running);
        await gate.opened;
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
      });
    });
    await pawl.startMany(
      busy,
      upTo(20).map(() => ({})),
      { queue },
    );
    const done = pawl.worker({ workflows: [busy], queues: [queue], concurrency: 4 }).runUntilIdle();
    await eventually(() => running).toBe(4);
    gate.open();
    expect(await done).toMatchObject({ completed: 20 });
    expect(most).toBe(4);
  });

  test("never execute one run twice, though five look for the same", async ({ open, queue }) => {
    const pawl = open(place);
    const seen = new Map<unknown, number>();
    const count = workflow({ name: "count", version: 1 }, async (_, input: number) => {
      seen.set(input, (seen.get(input) ?? 0) + 1);
    });
    await pawl.startMany(
      count,
      upTo(400).map((input) => ({ input })),
      { queue },
    );
    const workers = upTo(5).map(() => pawl.worker({ workflows: [count], queues: [queue], concurrency: 7 }));
    const summaries = await Promise.all(workers.map((worker) => worker.runUntilIdle()));
    expect(summaries.reduce((sum, { completed }) => sum + completed, 0)).toBe(400);
    expect(seen.size).toBe(400);
    expect(new Set(seen.values())).toEqual(new Set([1]));
  });

  test("leave alone what they do not know: other workflows, versions and queues", async ({ open, queue }) => {
    const pawl = open(place);
    const known = workflow({ name: "known", version: 2 }, async () => "done");
    const older = workflow({ name: "known", version: 1 }, async () => "old");
    const other = workflow({ name: "unknown", version: 2 }, async () => "other");
    const mine = await pawl.start(known, undefined, { queue });
    const left = await Promise.all([
      pawl.start(older, undefined, { queue }),
      pawl.start(other, undefined, { queue }),
      pawl.start(known, undefined, { queue: `${queue} elsewhere` }),
    ]);
    const worker = pawl.worker({ workflows: [known], queues: [queue] });
    expect(await worker.runUntilIdle()).toMatchObject({ claimed: 1, completed: 1 });
    expect(await mine.result()).toBe("done");
    for (const run of left) {
      expect(await pawl.get(run.id)).toMatchObject({ status: "pending", attempt: 1 });
      expect(await run.attempts()).toEqual([]);
    }
    const rest = pawl.worker({ workflows: [older, other], queues: [queue] });
    expect(await rest.runUntilIdle()).toMatchObject({ completed: 2 });
  });

  test("say who executes a run while they do", async ({ open, queue }) => {
    const events: PawlEvent[] = [];
    const pawl = open(place, { onEvent: (event) => events.push(event) });
    const gate = createGate();
    const slow = workflow({ name: "slow", version: 1 }, async (ctx) => ctx.step("wait", () => gate.opened));
    const run = await pawl.start(slow, undefined, { queue });
    await work(pawl, { workflows: [slow], queues: [queue] });
    await eventually(() => run.status()).toBe("running");
    const started = events.find((event) => event.kind === "worker.started");
    expect(await pawl.get(run.id)).toMatchObject({ workerId: (started as { workerId: string }).workerId });
    gate.open();
    await run.result();
    expect(await pawl.get(run.id)).toMatchObject({ workerId: null, attempt: 1 });
    expect(await run.attempts()).toMatchObject([
      { attempt: 1, outcome: "completed", willRetry: false, error: null, pid: process.pid },
    ]);
  });

  test("are told of a run's whole way by events", async ({ open, queue }) => {
    const kinds: string[] = [];
    const pawl = open(place, { onEvent: ({ kind }) => kinds.push(kind) });
    const two = workflow({ name: "two", version: 1 }, async (ctx) => {
      await ctx.step("a", () => 1);
      await ctx.step("b", () => 2);
    });
    await pawl.start(two, undefined, { queue });
    await pawl.worker({ workflows: [two], queues: [queue] }).runUntilIdle();
    expect(kinds).toEqual([
      "run.started",
      "worker.started",
      "run.claimed",
      "step.completed",
      "step.completed",
      "run.completed",
      "worker.stopped",
    ]);
  });
});
