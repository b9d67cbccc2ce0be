import { expect, test } from "vitest";
import type { PawlError } from "../../src/core/error.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { createEngine } from "./engine.ts";
import { createGate } from "./gate.ts";

function codeOf(error: unknown): string {
  return (error as PawlError).code;
}

const options = { version: 1, crashLimit: 1_000 } as const;

test("a cancelled wait rejects, the code cleans up, and no step starts any more", async () => {
  const engine = createEngine();
  const seen: string[] = [];
  const waiting = workflow({ ...options, name: "waiting" }, async (ctx) => {
    try {
      await ctx.waitForSignal("never");
    } catch (error) {
      seen.push(codeOf(error));
      await ctx
        .step("late", () => void seen.push("late step"))
        .catch((late: unknown) => seen.push(`late ${codeOf(late)}`));
      throw error;
    } finally {
      seen.push("finally");
    }
  });
  const id = await engine.start(waiting);
  await engine.idle();
  await engine.tell(id, "cancel", { reason: "enough" });
  await engine.idle();
  expect((await engine.store.getRun(id))?.status).toBe("cancelled");
  expect(seen).toEqual(["RUN_CANCELLED", "late RUN_CANCELLED", "finally"]);
  expect(await engine.facts(id)).toEqual(["cancel_requested", "cancelled"]);
  expect((await engine.history(id))[0]?.data?.json).toBe('{"reason":"enough"}');
});

test("a running step is told to stop, waited for and recorded, and the code gets what it did", async () => {
  const engine = createEngine();
  const gate = createGate();
  const seen: unknown[] = [];
  const working = workflow({ ...options, name: "working" }, async (ctx) => {
    const other = ctx.waitForSignal("never").catch((error: unknown) => seen.push(codeOf(error)));
    const charged = await ctx.step("charge", async ({ signal }) => {
      await gate.opened;
      return `charged, aborted: ${signal.aborted}`;
    });
    seen.push(charged);
    await other;
    await ctx.step("ship", () => void seen.push("shipped"));
  });
  const id = await engine.start(working);
  await engine.idle();
  await engine.tell(id, "cancel");
  await engine.idle();
  expect(seen).toEqual(["RUN_CANCELLED"]);
  expect((await engine.store.getRun(id))?.status).toBe("running");
  gate.open();
  await engine.idle();
  expect((await engine.store.getRun(id))?.status).toBe("cancelled");
  expect(seen).toEqual(["RUN_CANCELLED", "charged, aborted: true"]);
  expect(await engine.facts(id)).toEqual(["cancel_requested", "step_completed charge", "cancelled"]);
});

test("a run that returns although it was cancelled ends as cancelled", async () => {
  const engine = createEngine();
  const stubborn = workflow({ ...options, name: "stubborn" }, async (ctx) => {
    await ctx.sleep("1d").catch(() => {});
    return "done";
  });
  const id = await engine.start(stubborn);
  await engine.idle();
  await engine.tell(id, "cancel");
  await engine.idle();
  const run = await engine.store.getRun(id);
  expect([run?.status, run?.output]).toEqual(["cancelled", null]);
});

test("code that never ran is not begun only to be stopped", async () => {
  const engine = createEngine();
  let isCalled = false;
  const job = workflow({ ...options, name: "job" }, async () => void (isCalled = true));
  const id = await engine.start(job, undefined, { deadlineAt: engine.clock.now() });
  await engine.idle();
  await engine.store.sweep({ limit: 1, after: null });
  expect((await engine.store.getRun(id))?.status).toBe("timed_out");
  expect(isCalled).toBe(false);
});

test("cancelling a parent cancels the child it waits for", async () => {
  const engine = createEngine();
  const child = workflow({ ...options, name: "child" }, async (ctx) => ctx.sleep("1d"));
  const parent = workflow({ ...options, name: "parent" }, async (ctx) => ctx.call(child));
  engine.register(child);
  const id = await engine.start(parent);
  await engine.idle();
  await engine.tell(id, "cancel");
  await engine.idle();
  const runs = await engine.list();
  expect(runs.map((run) => [run.workflow, run.status])).toEqual([
    ["child", "cancelled"],
    ["parent", "cancelled"],
  ]);
});

test("a child that was cancelled rejects in its parent", async () => {
  const engine = createEngine();
  const child = workflow({ ...options, name: "child" }, async (ctx) => ctx.sleep("1d"));
  const parent = workflow({ ...options, name: "parent" }, async (ctx) =>
    ctx.call(child).catch((error: unknown) => [codeOf(error), (error as PawlError).details["runId"]]),
  );
  engine.register(child);
  const id = await engine.start(parent);
  await engine.idle();
  const [childRun] = await engine.list("child");
  await engine.tell(childRun!.id, "cancel");
  await engine.idle();
  expect(await engine.output(id)).toEqual(["RUN_CANCELLED", childRun!.id]);
});

/** Cancels after the n-th write, with and without a crash right after it. */
test("a cancel at any moment ends the run as cancelled, and no step starts once the store has said so", async () => {
  const ends = new Set<string | undefined>();
  for (let moment = 0; moment <= 8; moment++) {
    for (const crashesToo of [false, true]) {
      let cancelledAt: number | null = null;
      const engine = createEngine({
        crashAt: (call, when) => crashesToo && call === moment + 1 && when === "after",
      });
      const cleaned: string[] = [];
      const trip = workflow({ ...options, name: "trip" }, async (ctx) => {
        const book = (name: string): Promise<string> =>
          ctx.step(name, () => {
            const isKnown = engine.store.snapshot().events.some(({ kind }) => kind === "cancel_requested");
            expect(isKnown, `step ${name} starts after the cancel`).toBe(false);
            return name;
          });
        try {
          await Promise.all([book("flight"), book("hotel")]);
          await ctx.sleep("1h");
          await book("car");
          await ctx.waitForSignal("pay", { timeout: "1h" });
          return await book("train");
        } finally {
          cleaned.push("cleaned");
        }
      });
      const id = await engine.start(trip);
      for (let turns = 0; turns < 100 && engine.writes() < moment; turns++) {
        await engine.pass(engine.store.snapshot().parked.length > 0 ? 3_600_000 : 0);
      }
      await engine.tell(id, "cancel");
      cancelledAt = engine.writes();
      const run = await engine.end(id);
      ends.add(run.status);
      const facts = await engine.facts(id);
      if (run.status === "cancelled") {
        expect(
          facts.filter((fact) => fact === "cancel_requested"),
          `moment ${moment}, writes ${cancelledAt}`,
        ).toHaveLength(1);
        expect(facts.at(-1)).toBe("cancelled");
        if (facts.length > 2) expect(cleaned.at(-1)).toBe("cleaned");
      }
    }
  }
  expect(ends).toContain("cancelled");
});

test("a run past its deadline times out", async () => {
  const engine = createEngine();
  const seen: string[] = [];
  const slow = workflow({ ...options, name: "slow" }, async (ctx) => {
    try {
      await ctx.step("work", () => 1);
      await ctx.sleep("1d");
    } catch (error) {
      seen.push(codeOf(error));
      throw error;
    }
  });
  const id = await engine.start(slow, undefined, { deadlineAt: engine.clock.now() + 60_000 });
  await engine.pass(59_999);
  expect((await engine.store.getRun(id))?.status).toBe("waiting");
  await engine.pass(1);
  expect((await engine.store.getRun(id))?.status).toBe("timed_out");
  expect(seen).toEqual(["RUN_TIMED_OUT"]);
  expect((await engine.facts(id)).slice(-2)).toEqual(["cancel_requested deadline", "timed_out"]);
});

test("a deadline that passes while a step runs aborts the step", async () => {
  const engine = createEngine();
  const reasons: string[] = [];
  const slow = workflow({ ...options, name: "slow" }, async (ctx) =>
    ctx.step("work", ({ signal }) => {
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          reasons.push(codeOf(signal.reason));
          reject(signal.reason);
        });
      });
    }),
  );
  const id = await engine.start(slow, undefined, { deadlineAt: engine.clock.now() + 60_000 });
  await engine.pass(60_000);
  expect((await engine.store.getRun(id))?.status).toBe("timed_out");
  expect(reasons).toEqual(["RUN_TIMED_OUT"]);
});

test("a child gets the earlier of its own and its parent's deadline", async () => {
  const engine = createEngine();
  const quick = workflow({ ...options, name: "quick", timeout: "1m" }, async (ctx) => ctx.sleep("1d"));
  const patient = workflow({ ...options, name: "patient", timeout: "9d" }, async (ctx) => ctx.sleep("1d"));
  const parent = workflow({ ...options, name: "parent" }, async (ctx) => {
    const codes = [quick, patient].map((child) => ctx.call(child).catch(codeOf));
    return Promise.all(codes);
  });
  engine.register(quick, patient);
  const startedAt = engine.clock.now();
  const id = await engine.start(parent, undefined, { deadlineAt: startedAt + 3_600_000 });
  await engine.idle();
  const deadlines = engine.store.snapshot().runs.map((run) => [run.workflow, run.deadlineAt! - startedAt]);
  expect(Object.fromEntries(deadlines)).toEqual({ parent: 3_600_000, quick: 60_000, patient: 3_600_000 });
  await engine.end(id);
  expect((await engine.store.getRun(id))?.status).toBe("timed_out");
});

test("a run that is cancelled between two attempts does not begin the next", async () => {
  const engine = createEngine();
  let calls = 0;
  const job = workflow({ ...options, name: "job" }, async () => {
    calls += 1;
    throw new Error("not yet");
  });
  const id = await engine.start(job);
  await engine.idle();
  await engine.tell(id, "cancel");
  await engine.idle();
  expect([(await engine.store.getRun(id))?.status, calls]).toEqual(["cancelled", 1]);
});

test("a step that does not heed its signal is given up after a while, and so is code that never returns", async () => {
  const engine = createEngine();
  const deafStep = workflow({ ...options, name: "deaf-step" }, async (ctx) => {
    await ctx.step("deaf", () => new Promise(() => {}));
  });
  const deafCode = workflow({ ...options, name: "deaf-code" }, async () => {
    await new Promise(() => {});
  });
  for (const tested of [deafStep, deafCode]) {
    const id = await engine.start(tested);
    await engine.idle();
    await engine.tell(id, "cancel");
    await engine.idle();
    expect((await engine.store.getRun(id))?.status).toBe("running");
    await engine.pass(31_000);
    expect((await engine.store.getRun(id))?.status).toBe("cancelled");
    expect(await engine.facts(id)).toEqual(["cancel_requested", "cancelled"]);
  }
});

test("a run whose code has failed while a step runs on can still be cancelled, and times out", async () => {
  for (const status of ["cancelled", "timed_out"] as const) {
    const engine = createEngine();
    const gate = createGate();
    const failing = workflow({ ...options, name: "failing" }, async (ctx) => {
      const long = ctx.step("long", async () => {
        await gate.opened;
        throw new Error("stopped");
      });
      await Promise.all([long, ctx.step("short", () => Promise.reject(new Error("no")))]);
    });
    const id = await engine.start(failing, undefined, { deadlineAt: engine.clock.now() + 10_000 });
    await engine.pass(1_000);
    expect((await engine.store.getRun(id))?.status).toBe("running");
    if (status === "cancelled") await engine.tell(id, "cancel", { reason: "enough" });
    await engine.pass(status === "cancelled" ? 1_000 : 9_000);
    gate.open();
    await engine.idle();
    expect((await engine.store.getRun(id))?.status).toBe(status);
    expect(await engine.facts(id)).toEqual([
      "step_failed short",
      status === "cancelled" ? "cancel_requested" : "cancel_requested deadline",
      "step_failed long",
      status,
    ]);
  }
});
