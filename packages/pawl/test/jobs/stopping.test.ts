import { describe, expect } from "vitest";
import { createPawl, workflow, type PawlEvent, type Workflow } from "../../src/index.ts";
import { createTcpProxy } from "../postgres/tcp-proxy.ts";
import { createGate, eventually, places, test, upTo, work } from "./job-test.ts";

const plain = workflow({ name: "plain", version: 1 }, async () => "done");

/** A workflow whose one step waits at a gate. */
function createGated(queue: string) {
  const gate = createGate();
  const begun = createGate();
  const calls: string[] = [];
  const gated: Workflow<undefined, string> = workflow({ name: "gated", version: 1, queue }, async (ctx) => {
    await ctx.step("wait", async () => {
      calls.push("wait");
      begun.open();
      await gate.opened;
    });
    await ctx.step("after", () => calls.push("after"));
    return "done";
  });
  return { gated, gate, begun, calls };
}

describe.each(places)("a worker of %s that stops", (place) => {
  test("waits for the step that runs, keeps its result, and loses nothing", async ({ open, queue }) => {
    const pawl = open(place);
    const { gated, gate, begun, calls } = createGated(queue);
    const run = await pawl.start(gated);
    const worker = await work(pawl, { workflows: [gated], queues: [queue] });
    await begun.opened;
    let isStopped = false;
    const stopping = worker.stop().then(() => (isStopped = true));
    await pawl.start(plain, undefined, { queue });
    expect(isStopped).toBe(false);
    gate.open();
    await stopping;
    expect(calls).toEqual(["wait"]);
    expect(await run.status()).toBe("pending");
    await pawl.worker({ workflows: [gated], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toBe("done");
    expect(calls).toEqual(["wait", "after"]);
  });

  test("lets a run complete whose code stops it first thing", async ({ open, queue }) => {
    const pawl = open(place);
    const stopping: Promise<void>[] = [];
    const job = workflow({ name: "job", version: 1, queue }, async () => {
      stopping.push(worker.stop());
      return "done";
    });
    const worker = pawl.worker({ workflows: [job], queues: [queue] });
    const run = await pawl.start(job);
    await worker.start();
    expect(await run.result()).toBe("done");
    expect(stopping).toHaveLength(1);
    await Promise.all(stopping);
    expect(await run.attempts()).toHaveLength(1);
  });

  test("lets a run whose last step ends meanwhile complete", async ({ open, queue }) => {
    const pawl = open(place);
    const gate = createGate();
    const begun = createGate();
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) =>
      ctx.step("all of it", async () => {
        begun.open();
        await gate.opened;
        return "done";
      }),
    );
    const run = await pawl.start(job);
    const worker = await work(pawl, { workflows: [job], queues: [queue] });
    await begun.opened;
    const stopping = worker.stop();
    gate.open();
    await stopping;
    expect(await run.status()).toBe("completed");
  });

  test("waits for a job that has no steps", async ({ open, queue }) => {
    const pawl = open(place);
    const gate = createGate();
    const begun = createGate();
    const job = workflow({ name: "job", version: 1, queue }, async () => {
      begun.open();
      await gate.opened;
      return "done";
    });
    const run = await pawl.start(job);
    const worker = await work(pawl, { workflows: [job], queues: [queue] });
    await begun.opened;
    const stopping = worker.stop();
    gate.open();
    await stopping;
    expect(await run.status()).toBe("completed");
  });

  test("keeps the failure of a step that ends meanwhile", async ({ open, queue }) => {
    const pawl = open(place);
    const gate = createGate();
    const begun = createGate();
    const job = workflow({ name: "job", version: 1, queue, retry: { attempts: 1 } }, async (ctx) =>
      ctx.step("all of it", async () => {
        begun.open();
        await gate.opened;
        throw new Error("late");
      }),
    );
    const run = await pawl.start(job);
    const worker = await work(pawl, { workflows: [job], queues: [queue] });
    await begun.opened;
    const stopping = worker.stop();
    gate.open();
    await stopping;
    expect(await pawl.get(run.id)).toMatchObject({ status: "failed", error: { message: "late" } });
  });

  test("takes no more runs", async ({ open, queue }) => {
    const pawl = open(place);
    const { gated, gate, begun } = createGated(queue);
    await pawl.start(gated);
    const worker = await work(pawl, { workflows: [gated, plain], queues: [queue] });
    await begun.opened;
    const stopping = worker.stop();
    const late = await pawl.startMany(
      plain,
      upTo(5).map(() => ({})),
      { queue },
    );
    gate.open();
    await stopping;
    expect(await Promise.all(late.map((run) => run.status()))).toEqual(upTo(5).map(() => "pending"));
  });

  test("gives back what does not end in time, to be continued at once and not as a failure", async ({
    open,
    queue,
  }) => {
    const events: PawlEvent[] = [];
    const pawl = open(place, { onEvent: (event) => events.push(event) });
    let calls = 0;
    const begun = createGate();
    const stuck = workflow({ name: "stuck", version: 1, queue, retry: { attempts: 1 } }, async (ctx) =>
      ctx.step("hang", async () => {
        calls += 1;
        if (calls > 1) return calls;
        begun.open();
        return new Promise<number>(() => {});
      }),
    );
    const run = await pawl.start(stuck);
    const worker = await work(pawl, { workflows: [stuck], queues: [queue] });
    await begun.opened;
    await worker.stop({ timeout: 20 });
    expect(await pawl.get(run.id)).toMatchObject({ status: "pending", workerId: null, attempt: 1 });
    expect(events.map(({ kind }) => kind).slice(-2)).toEqual(["run.released", "worker.stopped"]);
    await pawl.worker({ workflows: [stuck], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toBe(2);
  });

  test("tells a step that it gives up on", async ({ open, queue }) => {
    const pawl = open(place);
    const begun = createGate();
    let isAborted = false;
    const slow = workflow({ name: "slow", version: 1, queue }, async (ctx) => {
      await ctx.step("wait", ({ signal }) => {
        begun.open();
        return new Promise<void>(() => {
          signal.addEventListener("abort", () => (isAborted = true));
        });
      });
    });
    await pawl.start(slow);
    const worker = await work(pawl, { workflows: [slow], queues: [queue] });
    await begun.opened;
    await worker.stop({ timeout: 0 });
    expect(isAborted).toBe(true);
  });

  test("is hurried by a second stop, as by a second signal", async ({ open, queue }) => {
    const pawl = open(place);
    const { gated, begun } = createGated(queue);
    const run = await pawl.start(gated);
    const worker = await work(pawl, { workflows: [gated], queues: [queue] });
    await begun.opened;
    const first = worker.stop({ timeout: "1h" });
    await Promise.all([worker.stop({ timeout: 10 }), worker.stop({ timeout: "1h" }), first]);
    await worker.stop();
    expect(await run.status()).toBe("pending");
  });

  test("does not start again", async ({ open, queue }) => {
    const pawl = open(place);
    const worker = await work(pawl, { workflows: [plain], queues: [queue] });
    await worker.start();
    await worker.stop();
    await expect(worker.start()).rejects.toMatchObject({ code: "CLOSED" });
    await expect(worker.runUntilIdle()).rejects.toMatchObject({ code: "CLOSED" });
  });

  test("may never have been started, or be starting", async ({ open, queue }) => {
    const pawl = open(place);
    const idle = pawl.worker({ workflows: [plain], queues: [queue] });
    await idle.stop();
    const hasty = pawl.worker({ workflows: [plain], queues: [queue] });
    const starting = hasty.start().catch((error: unknown) => error);
    await hasty.stop();
    await starting;
    await pawl.start(plain, undefined, { queue });
    const alive = (await pawl.workers()).filter(({ isAlive, queues }) => isAlive && queues.includes(queue));
    expect(alive).toEqual([]);
  });

  test("leaves the rest to its peers", async ({ open, queue }) => {
    const pawl = open(place);
    const seen = new Map<number, number>();
    const count = workflow({ name: "count", version: 1, queue }, async (ctx, input: number) => {
      await ctx.step("count", () => {
        seen.set(input, (seen.get(input) ?? 0) + 1);
      });
    });
    const runs = await pawl.startMany(
      count,
      upTo(300).map((input) => ({ input })),
    );
    const workers = await Promise.all(
      upTo(3).map(() => work(pawl, { workflows: [count], queues: [queue], concurrency: 5 })),
    );
    await eventually(() => seen.size).toBeGreaterThan(20);
    await workers[0]!.stop();
    await eventually(() => seen.size).toBeGreaterThan(120);
    await workers[1]!.stop();
    await Promise.all(runs.map((run) => run.result()));
    expect(new Set(seen.values())).toEqual(new Set([1]));
  });

  test("while many runs are started keeps none of them from being there", async ({ open, queue }) => {
    const pawl = open(place);
    const worker = await work(pawl, { workflows: [plain], queues: [queue], concurrency: 10 });
    const starting = pawl.startMany(
      plain,
      upTo(3_000).map(() => ({})),
      { queue },
    );
    await worker.stop();
    const runs = await starting;
    expect(runs).toHaveLength(3_000);
    const counts = { pending: 0, completed: 0 } as Record<string, number>;
    for await (const run of pawl.listAll({ queue, limit: 1_000 })) counts[run.status]! += 1;
    expect(counts["pending"]! + counts["completed"]!).toBe(3_000);
  });

  test("is listed as ended", async ({ open, queue }) => {
    const pawl = open(place);
    const worker = await work(pawl, { workflows: [plain], queues: [queue], concurrency: 3 });
    const mine = async () => (await pawl.workers()).filter(({ queues }) => queues.includes(queue));
    expect(await mine()).toMatchObject([
      { isAlive: true, endedAt: null, concurrency: 3, pid: process.pid, workflows: ["plain@1"] },
    ]);
    await worker.stop();
    expect(await mine()).toMatchObject([{ isAlive: false, endedAt: expect.any(Date) }]);
  });
});

describe.each(places)("a Pawl of %s that closes", (place) => {
  test("stops its workers, tells who waits, and does nothing more", async ({ open, queue }) => {
    const pawl = open(place);
    const { gated, begun } = createGated(queue);
    const run = await pawl.start(gated);
    await work(pawl, { workflows: [gated], queues: [queue] });
    await begun.opened;
    const waiting = run.result().catch((error: unknown) => error);
    await pawl.close({ timeout: 10 });
    await pawl.close();
    expect(await waiting).toMatchObject({ code: "CLOSED" });
    for (const call of [
      () => pawl.start(plain, undefined, { queue }),
      () => pawl.startMany(plain, [{}], { queue }),
      () => pawl.get(run.id),
      () => pawl.list(),
      () => pawl.counts(),
      () => run.status(),
      () => run.cancel(),
      () => pawl.redriveAll(),
      () => pawl.migrate(),
    ])
      await expect(call()).rejects.toMatchObject({ code: "CLOSED" });
    expect(() => pawl.worker({ workflows: [plain] })).toThrow(expect.objectContaining({ code: "CLOSED" }));
  });
});

describe("a worker that vanishes", () => {
  test("is found out, and its runs go on elsewhere without the steps they had finished", async ({
    open,
    database,
    home,
    queue,
  }) => {
    const calls: string[] = [];
    const begun = createGate();
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) => {
      await ctx.step("first", () => calls.push("first"));
      const { attempt } = ctx.run;
      return ctx.step("second", async () => {
        calls.push("second");
        if (attempt > 1) return attempt;
        begun.open();
        return new Promise<number>(() => {});
      });
    });
    const cable = await createTcpProxy(database.url);
    const lost = createPawl({ url: cable.url, schema: home });
    await work(lost, { workflows: [job], queues: [queue], lease: "400ms" });
    const pawl = open();
    const run = await pawl.start(job);
    await begun.opened;
    await cable.close();

    await work(pawl, { workflows: [job], queues: [queue], lease: "2s" });
    expect(await run.result()).toBe(2);
    expect(calls).toEqual(["first", "second", "second"]);
    expect(await run.attempts()).toMatchObject([
      { attempt: 1, outcome: "crashed", errorCode: "WORKER_CRASHED", willRetry: true, pid: process.pid },
      { attempt: 2, outcome: "completed" },
    ]);
    await lost.close({ timeout: 0 });
  });
});
