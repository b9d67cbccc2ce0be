import { describe, expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { createGate, eventually, places, test, work } from "./job-test.ts";

describe.each(places)("rescheduling in %s", (place) => {
  test("brings a run for later forward, and wakes a worker at once", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => "done");
    const run = await pawl.start(job, undefined, { delay: "1h" });
    await work(pawl, { workflows: [job], queues: [queue], pollInterval: "1m" });
    await run.reschedule({ delay: 0 });
    expect(await run.result()).toBe("done");
  });

  test("puts off a run that is ready", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => "done");
    const run = await pawl.start(job);
    const at = new Date(Date.now() + 3_600_000);
    await run.reschedule({ at });
    expect(await pawl.get(run.id)).toMatchObject({ status: "pending", dueAt: at });
    expect(await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle()).toMatchObject({
      claimed: 0,
    });
    await run.reschedule({ at: new Date(0) });
    expect(await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle()).toMatchObject({
      completed: 1,
    });
  });

  test("changes who goes first", async ({ open, queue }) => {
    const pawl = open(place);
    const order: string[] = [];
    const job = workflow({ name: "job", version: 1, queue }, async (_, name: string) => {
      order.push(name);
    });
    const runs = [];
    for (const name of ["a", "b", "c"]) runs.push(await pawl.start(job, name));
    await runs[2]!.reschedule({ priority: -1 });
    await runs[0]!.reschedule({ priority: 1 });
    await pawl.worker({ workflows: [job], queues: [queue], concurrency: 1 }).runUntilIdle();
    expect(order).toEqual(["c", "b", "a"]);
    expect((await pawl.get(runs[2]!.id))!.priority).toBe(-1);
  });

  test("keeps the priority of a run for later", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => {});
    const run = await pawl.start(job, undefined, { delay: "1h", priority: 4 });
    await run.reschedule({ delay: "2h" });
    expect(await pawl.get(run.id)).toMatchObject({ priority: 4, status: "pending" });
    await run.reschedule({ priority: 5, delay: 0 });
    expect(await pawl.get(run.id)).toMatchObject({ priority: 5, dueAt: null });
  });

  test("is too late for a run that is executed, sleeps or has ended", async ({ open, queue }) => {
    const pawl = open(place);
    const gate = createGate();
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => {
      await ctx.step("wait", () => gate.opened);
      await ctx.sleep("1h");
    });
    const run = await pawl.start(job);
    await work(pawl, { workflows: [job], queues: [queue] });
    await eventually(() => run.status()).toBe("running");
    await expect(run.reschedule({ delay: 0 })).rejects.toMatchObject({ code: "RUN_BEGUN" });
    await expect(run.reschedule({ priority: 0 })).rejects.toMatchObject({ code: "RUN_BEGUN" });
    gate.open();
    await eventually(() => run.status()).toBe("waiting");
    await expect(run.reschedule({ delay: 0 })).rejects.toMatchObject({ code: "RUN_BEGUN" });
    await run.terminate();
    await expect(run.reschedule({ delay: 0 })).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  test.for([
    ["nothing", {}],
    ["both a date and a delay", { at: new Date(), delay: 1 }],
    ["what it does not know", { prio: 1 }],
    ["a fraction", { priority: 0.5 }],
  ] as const)("takes no %s", async ([, options], { open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => {});
    const run = await pawl.start(job);
    await expect(run.reschedule(options as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});
