import { expect, test } from "vitest";
import type { RunId } from "../../src/core/ids.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { createEngine, type Engine } from "./engine.ts";

const options = { version: 1, retry: { attempts: 1 } } as const;

/** The ways in which a run ends that its code has no part in. */
const stops: readonly (readonly [how: string, stop: (engine: Engine, id: RunId) => Promise<unknown>])[] = [
  ["was cancelled", (engine, id) => engine.tell(id, "cancel")],
  ["was terminated", (engine, id) => engine.store.terminate(id, null)],
  ["has timed out", (engine) => engine.pass(1_000)],
  ["crashed its worker", (engine) => engine.crash()],
];

for (const [how, stop] of stops) {
  test(`a run that ${how} and lives again keeps a failure that it had dealt with`, async () => {
    const engine = createEngine();
    let calls = 0;
    const catching = workflow({ ...options, name: "catching", crashLimit: 1 }, async (ctx) => {
      const seen: unknown[] = [];
      try {
        await ctx.step("first", () => {
          if (++calls === 1) throw new Error("once");
        });
        seen.push(await ctx.step("second", () => "not reached"));
      } catch {
        seen.push("caught");
      }
      seen.push(await ctx.step("second", () => "after the catch"));
      if (how === "crashed its worker" && calls === 1) await ctx.step("hang", () => new Promise(() => {}));
      else await ctx.waitForSignal("go");
      return seen;
    });
    const deadlineAt = engine.clock.now() + 500;
    const id = await engine.start(catching, null, how === "has timed out" ? { deadlineAt } : {});
    await engine.idle();
    await stop(engine, id);
    await engine.idle();
    await engine.store.redrive([id]);
    calls += 1;
    await engine.idle();
    await engine.tell(id, "signal:go");
    expect((await engine.end(id)).status).toBe("completed");
    expect(await engine.output(id)).toEqual(["caught", "after the catch"]);
  });
}

test("a step that failed because its run was cancelled is tried again in the next life", async () => {
  const engine = createEngine();
  let calls = 0;
  const heeding = workflow({ ...options, name: "heeding" }, async (ctx) => {
    await ctx.step("before", () => {});
    return ctx.step("long", async ({ signal }) => {
      const aborted = new Promise<never>((_, reject) =>
        signal.addEventListener("abort", () => reject(new Error("aborted"))),
      );
      aborted.catch(() => {});
      return ++calls > 1 ? "done" : aborted;
    });
  });
  const id = await engine.start(heeding);
  await engine.idle();
  await engine.tell(id, "cancel");
  await engine.idle();
  expect((await engine.store.getRun(id))?.status).toBe("cancelled");
  await engine.store.redrive([id]);
  expect((await engine.end(id)).status).toBe("completed");
  expect(await engine.output(id)).toBe("done");
});

test("a failure that nothing came after is tried again in the next life", async () => {
  const engine = createEngine();
  let calls = 0;
  const pausing = workflow({ ...options, name: "pausing" }, async (ctx) =>
    ctx.step("only", () => {
      if (++calls === 1) throw new Error("once");
      return "done";
    }),
  );
  const id = await engine.start(pausing);
  await engine.idle();
  await engine.store.redrive([id]);
  expect((await engine.end(id)).status).toBe("completed");
  expect(await engine.output(id)).toBe("done");
});

test("a failure that the code had dealt with stands in the next life, though the step was undone", async () => {
  const engine = createEngine();
  let calls = 0;
  let undone = 0;
  const saga = workflow({ ...options, name: "saga" }, async (ctx) => {
    const seen: unknown[] = [];
    const undo = (): void => void (undone += 1);
    const reserve = (): Promise<string> | string => {
      calls += 1;
      if (calls === 1) return new Promise(() => {});
      if (calls === 2) throw new Error("sold out");
      return "reserved";
    };
    try {
      seen.push(await ctx.step("reserve", reserve, { undo }));
      seen.push(await ctx.step("note", () => "not reached"));
    } catch {
      seen.push("caught");
    }
    seen.push(await ctx.step("note", () => "after the catch"));
    if (undone === 0) throw new Error("no money");
    return seen;
  });
  const id = await engine.start(saga);
  await engine.idle();
  await engine.store.terminate(id, null);
  await engine.idle();
  // It may have been done in the first life, and fails in the second, which is undone.
  await engine.store.redrive([id]);
  expect((await engine.end(id)).status).toBe("failed");
  expect(undone).toBe(1);
  await engine.store.redrive([id]);
  expect((await engine.end(id)).status).toBe("completed");
  expect(await engine.output(id)).toEqual(["caught", "after the catch"]);
  expect(calls).toBe(2);
});
