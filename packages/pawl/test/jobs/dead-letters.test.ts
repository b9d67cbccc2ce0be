import { hostname } from "node:os";
import { describe, expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { eventually, places, test, upTo, work } from "./job-test.ts";

class CodedError extends Error {
  readonly code: string | number;
  constructor(message: string, code: string | number) {
    super(message);
    this.code = code;
  }
}

/** A workflow that fails until it is repaired. */
function createBroken(queue: string) {
  const state = { isRepaired: false, calls: [] as string[] };
  const broken = workflow(
    { name: "broken", version: 1, queue, retry: { attempts: 1 } },
    async (ctx, input: number) => {
      await ctx.step("prepare", () => state.calls.push(`prepare ${input}`));
      return ctx.step("charge", () => {
        state.calls.push(`charge ${input}`);
        if (!state.isRepaired) throw new CodedError(`card ${input}`, input % 2 === 0 ? "DECLINED" : 402);
        return input * 10;
      });
    },
  );
  return { broken, state };
}

describe.each(places)("dead letters in %s", (place) => {
  test("are listed newest first, with input, error and code", async ({ open, queue }) => {
    const pawl = open(place);
    const { broken } = createBroken(queue);
    const runs = [];
    for (const input of upTo(4)) runs.push(await pawl.start(broken, input));
    const fine = workflow({ name: "fine", version: 1, queue }, async () => {});
    await pawl.start(fine);
    await pawl.worker({ workflows: [broken, fine], queues: [queue] }).runUntilIdle();
    const { runs: dead, next } = await pawl.deadLetters({ queue });
    expect(next).toBeNull();
    expect(dead.map(({ id }) => id)).toEqual(runs.map(({ id }) => id).reverse());
    expect(dead[3]).toMatchObject({
      status: "failed",
      input: 0,
      error: { message: "card 0", code: "DECLINED" },
      endedAt: expect.any(Date),
    });
    const declined = await pawl.deadLetters({ queue, errorCode: "DECLINED" });
    expect(declined.runs.map(({ input }) => input)).toEqual([2, 0]);
    const numbered = await pawl.deadLetters({ queue, errorCode: "402" });
    expect(numbered.runs.map(({ input }) => input)).toEqual([3, 1]);
    expect((await pawl.deadLetters({ queue, errorCode: "OTHER" })).runs).toEqual([]);
  });

  test("say where each attempt was made", async ({ open, queue }) => {
    const pawl = open(place);
    const failing = workflow(
      { name: "failing", version: 1, queue, retry: { attempts: 2, initial: 0 } },
      async () => {
        throw new CodedError("no", "E_NO");
      },
    );
    const run = await pawl.start(failing);
    await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle({ linger: "1s" });
    const attempts = await run.attempts();
    expect(attempts).toHaveLength(2);
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({
        host: hostname(),
        pid: process.pid,
        errorCode: "E_NO",
        workerId: expect.any(String),
        beganAt: expect.any(Date),
      });
      expect(attempt.endedAt.getTime()).toBeGreaterThanOrEqual(attempt.beganAt!.getTime());
    }
  });

  test("live again when they are redriven, keep what they had finished, and count from zero", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const { broken, state } = createBroken(queue);
    const run = await pawl.start(broken, 7, { priority: 3, tags: ["kept"], key: queue });
    await pawl.worker({ workflows: [broken], queues: [queue] }).runUntilIdle();
    state.isRepaired = true;
    await run.redrive();
    expect(await pawl.get(run.id)).toMatchObject({
      id: run.id,
      status: "pending",
      input: 7,
      priority: 3,
      tags: ["kept"],
      key: queue,
      error: null,
      endedAt: null,
    });
    expect((await pawl.deadLetters({ queue })).runs).toEqual([]);
    await pawl.worker({ workflows: [broken], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toBe(70);
    expect(state.calls).toEqual(["prepare 7", "charge 7", "charge 7"]);
    expect((await run.attempts()).map(({ outcome }) => outcome)).toEqual(["failed", "completed"]);
    expect((await run.history()).map(({ kind }) => kind)).toContain("redriven");
  });

  test("are redriven once, however often that is asked for", async ({ open, queue }) => {
    const pawl = open(place);
    const { broken, state } = createBroken(queue);
    const run = await pawl.start(broken, 1);
    await pawl.worker({ workflows: [broken], queues: [queue] }).runUntilIdle();
    state.isRepaired = true;
    await Promise.all(upTo(5).map(() => run.redrive()));
    await run.redrive();
    await pawl.worker({ workflows: [broken], queues: [queue] }).runUntilIdle();
    expect(state.calls.filter((call) => call === "charge 1")).toHaveLength(2);
    await expect(run.redrive()).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  test("that fail again are dead letters again", async ({ open, queue }) => {
    const pawl = open(place);
    const { broken } = createBroken(queue);
    const run = await pawl.start(broken, 1);
    for (const lives of [1, 2, 3]) {
      await pawl.worker({ workflows: [broken], queues: [queue] }).runUntilIdle();
      expect((await pawl.deadLetters({ queue })).runs.map(({ id }) => id)).toEqual([run.id]);
      expect(await run.attempts()).toHaveLength(lives);
      await run.redrive();
    }
  });

  test("have all their attempts again", async ({ open, queue }) => {
    const pawl = open(place);
    let calls = 0;
    const failing = workflow(
      { name: "failing", version: 1, queue, retry: { attempts: 3, initial: 0 } },
      async () => {
        calls += 1;
        throw new Error("no");
      },
    );
    const run = await pawl.start(failing);
    await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle({ linger: "1s" });
    await run.redrive();
    await pawl.worker({ workflows: [failing], queues: [queue] }).runUntilIdle({ linger: "1s" });
    expect(calls).toBe(6);
    expect((await run.attempts()).map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("are redriven by what they have in common, more than fit one call", async ({ open, queue }) => {
    const pawl = open(place);
    const { broken, state } = createBroken(queue);
    await pawl.startMany(
      broken,
      upTo(613).map((input) => ({ input, tags: [input < 3 ? "few" : "many"] })),
    );
    await pawl.worker({ workflows: [broken], queues: [queue] }).runUntilIdle();
    state.isRepaired = true;
    expect(await pawl.redriveAll({ queue, tags: ["few"] })).toBe(3);
    expect(await pawl.redriveAll({ queue, errorCode: "DECLINED", limit: 10 })).toBe(10);
    expect(await pawl.redriveAll({ queue, workflow: "another" })).toBe(0);
    expect(await pawl.redriveAll({ queue })).toBe(600);
    expect(await pawl.redriveAll({ queue })).toBe(0);
    const summary = await pawl.worker({ workflows: [broken], queues: [queue] }).runUntilIdle();
    expect(summary).toMatchObject({ completed: 613, failed: 0 });
  });

  test("of other ends are redriven too, when asked for by their status", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => "done");
    const cancelled = await pawl.start(job);
    await cancelled.terminate();
    const expired = await pawl.start(job, undefined, { expiresAt: new Date(0) });
    const late = await pawl.start(job, undefined, { deadline: new Date(0) });
    await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle();
    expect(await Promise.all([cancelled, expired, late].map((run) => run.status()))).toEqual([
      "cancelled",
      "expired",
      "timed_out",
    ]);
    expect(await pawl.redriveAll({ queue })).toBe(0);
    for (const status of ["cancelled", "expired", "timed_out"] as const)
      expect(await pawl.redriveAll({ queue, status })).toBe(1);
    await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle();
    expect(await Promise.all([cancelled, expired, late].map((run) => run.result()))).toEqual(
      upTo(3).map(() => "done"),
    );
  });

  test("can be waited for after they were redriven", async ({ open, queue }) => {
    const pawl = open(place);
    const { broken, state } = createBroken(queue);
    const run = await pawl.start(broken, 2);
    await work(pawl, { workflows: [broken], queues: [queue] });
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    state.isRepaired = true;
    await run.redrive();
    expect(await run.result()).toBe(20);
    await eventually(() => run.status()).toBe("completed");
  });

  test("of what completed there are none, and it cannot be redriven", async ({ open, queue }) => {
    const pawl = open(place);
    const job = workflow({ name: "job", version: 1, queue }, async () => "done");
    const run = await pawl.start(job);
    await run.redrive();
    await pawl.worker({ workflows: [job], queues: [queue] }).runUntilIdle();
    await expect(run.redrive()).rejects.toMatchObject({ code: "RUN_ENDED" });
    expect((await pawl.deadLetters({ queue })).runs).toEqual([]);
    await expect(pawl.redriveAll({ stat: "failed" } as never)).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
    await expect(pawl.redriveAll({ status: "completed" } as never)).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
  });
});
