import { describe, expect, test } from "vitest";
import { workflow } from "../../src/runtime/workflow.ts";
import { plainRun } from "../../src/store/run-record.ts";
import { createEngine } from "./engine.ts";
import { createGate } from "./gate.ts";

const once = { version: 1, retry: { attempts: 1 } } as const;

describe("a run that is redriven", () => {
  test("keeps what it had finished, and tries again what failed", async () => {
    const engine = createEngine();
    const calls: string[] = [];
    let isBroken = true;
    const job = workflow({ ...once, name: "job" }, async (ctx) => {
      const first = await ctx.step("first", () => calls.push("first"));
      const second = await ctx.step("second", () => {
        calls.push("second");
        if (isBroken) throw new Error("no");
        return 2;
      });
      return [first, second];
    });
    const id = await engine.start(job);
    await engine.idle();
    expect((await engine.store.getRun(id))?.status).toBe("failed");
    isBroken = false;
    await engine.store.redrive([id]);
    await engine.end(id);
    expect(await engine.output(id)).toEqual([1, 2]);
    expect(calls).toEqual(["first", "second", "second"]);
    expect(await engine.store.getRun(id)).toMatchObject({ status: "completed", attempt: 2 });
  });

  test("has its attempts anew, and fails anew", async () => {
    const engine = createEngine();
    let attempts = 0;
    const job = workflow({ name: "job", version: 1, retry: { attempts: 2, initial: 0 } }, () => {
      attempts += 1;
      throw new Error("never");
    });
    const id = await engine.start(job);
    await engine.end(id);
    expect(attempts).toBe(2);
    await engine.store.redrive([id]);
    await engine.end(id);
    expect(attempts).toBe(4);
    const facts = await engine.facts(id);
    expect(facts).toEqual(["attempt_failed", "failed", "redriven", "attempt_failed", "failed"]);
    const lives = (await engine.store.listAttempts(id)).map(({ attempt, willRetry }) => [attempt, willRetry]);
    expect(lives).toEqual([
      [1, true],
      [2, false],
      [3, true],
      [4, false],
    ]);
  });

  test("keeps a failure that its code had dealt with", async () => {
    const engine = createEngine();
    let optional = 0;
    let isBroken = true;
    const job = workflow({ ...once, name: "job" }, async (ctx) => {
      try {
        await ctx.step("optional", () => {
          optional += 1;
          throw new Error("not today");
        });
      } catch {
        await ctx.step("instead", () => "instead");
      }
      await ctx.step("needed", () => {
        if (isBroken) throw new Error("no");
      });
      return "done";
    });
    const id = await engine.start(job);
    await engine.idle();
    isBroken = false;
    await engine.store.redrive([id]);
    await engine.end(id);
    expect(await engine.output(id)).toBe("done");
    expect(optional).toBe(1);
  });

  test("tries again in its next attempt what it failed of in this one, whichever life that is from", async () => {
    const engine = createEngine();
    const gate = createGate();
    let flaky = 0;
    const job = workflow({ name: "job", version: 1, retry: { attempts: 2, initial: 0 } }, async (ctx) => {
      const first = ctx.step("flaky", () => {
        flaky += 1;
        if (flaky === 1) throw new Error("once");
        return "fine";
      });
      await Promise.all([
        first,
        ctx.step("after it", () => engine.delay(10)),
        ctx.step("slow", () => gate.opened),
      ]);
      return first;
    });
    const id = await engine.start(job);
    await engine.pass(1_000);
    await engine.store.terminate(id, null);
    gate.open();
    await engine.pass(1_000);
    await engine.store.redrive([id]);
    await engine.end(id);
    expect(await engine.output(id)).toBe("fine");
    expect(flaky).toBe(2);
  });

  test("has forgotten that it was cancelled", async () => {
    const engine = createEngine();
    const job = workflow({ ...once, name: "job" }, async (ctx) => {
      await ctx.step("before", () => 1);
      return ctx.waitForSignal("go");
    });
    const id = await engine.start(job);
    await engine.idle();
    await engine.tell(id, "cancel", { reason: "too early" });
    await engine.idle();
    expect((await engine.store.getRun(id))?.status).toBe("cancelled");
    await engine.store.redrive([id]);
    await engine.idle();
    await engine.tell(id, "signal:go", "gone");
    await engine.end(id);
    expect(await engine.output(id)).toBe("gone");
  });

  test("starts a child anew that was stopped with it", async () => {
    const engine = createEngine();
    let isBroken = true;
    const child = workflow({ ...once, name: "child" }, async (ctx) => {
      await ctx.sleep("1m");
      return "of the child";
    });
    const parent = workflow({ ...once, name: "parent" }, async (ctx) => {
      const [answer] = await Promise.all([
        ctx.call(child),
        ctx.step("beside", () => {
          if (isBroken) throw new Error("no");
        }),
      ]);
      return answer;
    });
    engine.register(child);
    const id = await engine.start(parent);
    await engine.idle();
    expect((await engine.store.getRun(id))?.status).toBe("failed");
    await engine.pass(61_000);
    isBroken = false;
    await engine.store.redrive([id]);
    await engine.end(id);
    expect(await engine.output(id)).toBe("of the child");
    expect((await engine.list("child")).map(({ status }) => status)).toEqual(["completed", "cancelled"]);
  });
});

describe("an input that came from SQL", () => {
  test("is parsed once, by the first holder, and what became of it is a fact", async () => {
    const engine = createEngine();
    let parses = 0;
    const schema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value: unknown) => {
          parses += 1;
          return typeof value === "number" ? { value: value + 1 } : { issues: [{ message: "no number" }] };
        },
      },
    } as const;
    const job = workflow({ ...once, name: "job", input: schema }, async (ctx, input) => {
      await ctx.sleep("1m");
      return input;
    });
    engine.register(job);
    const start = async (json: string): Promise<string> => {
      const id = engine.nextId();
      const run = { ...plainRun, id, workflow: "job", version: 1, queue: "default" };
      await engine.store.createRuns([{ ...run, isRaw: true, input: { json, notes: null } }]);
      return id;
    };
    const good = await start("1");
    await engine.end(good);
    expect(await engine.output(good)).toBe(2);
    expect(parses).toBe(1);
    expect(await engine.facts(good)).toContain("input_parsed");
    const bad = await start('"x"');
    await engine.end(bad);
    const run = await engine.store.getRun(bad);
    expect([run?.status, run?.error?.json]).toEqual(["failed", expect.stringContaining("INVALID_PAYLOAD")]);
  });
});
