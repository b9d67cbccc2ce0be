import { describe, expect, test } from "vitest";
import { workflow, type Workflow } from "../../src/runtime/workflow.ts";
import { createEngine, type Engine } from "./engine.ts";
import { createGate } from "./gate.ts";

const once = { version: 1, crashLimit: 1, retry: { attempts: 1 } } as const;

/** Lets a run that has ended live again, to its next end. */
async function redrive(engine: Engine, id: string): Promise<string> {
  expect(await engine.store.redrive([id])).toEqual(new Map([[id, "redriven"]]));
  return (await engine.end(id)).status;
}

describe("a failure that the code dealt with stays dealt with", () => {
  /** Charges another card when the first one is refused, and then waits. */
  const paying = (charged: string[]): Workflow =>
    workflow({ ...once, name: "paying" }, async (ctx) => {
      const charge = (card: string) =>
        ctx.step(card, () => {
          charged.push(card);
          if (card === "first" && charged.length === 1) throw new Error("refused");
          return card;
        });
      const card = await charge("first").catch(() => charge("second"));
      await ctx.waitForSignal("shipped");
      return card;
    });

  for (const [how, stop] of [
    ["was terminated", (engine: Engine, id: string) => engine.store.terminate(id, null)],
    ["was cancelled", (engine: Engine, id: string) => engine.tell(id, "cancel")],
    [
      "crashed its workers",
      async (engine: Engine, id: string) => {
        await engine.tell(id, "signal:shipped");
        engine.executions.at(-1)?.drop();
      },
    ],
  ] as const) {
    test(`when the run ${how} and was redriven`, async () => {
      let isCrashing = false;
      const engine = createEngine({ crashAt: (_, when) => isCrashing && when === "before" });
      const charged: string[] = [];
      const id = await engine.start(paying(charged));
      await engine.pass(1_000);
      expect(charged).toEqual(["first", "second"]);
      isCrashing = how === "crashed its workers";
      await stop(engine, id);
      expect((await engine.end(id)).status).toMatch(/cancelled|failed/);
      isCrashing = false;
      await engine.store.redrive([id]);
      await engine.tell(id, "signal:shipped");
      await engine.end(id);
      expect(charged).toEqual(["first", "second"]);
      expect(await engine.output(id)).toBe("second");
    });
  }
});

test("a step that a cancel stopped is tried again", async () => {
  const engine = createEngine();
  const gate = createGate();
  const tries: string[] = [];
  const working = workflow({ ...once, name: "working" }, (ctx) =>
    ctx.step("long", async ({ signal }) => {
      tries.push("try");
      await gate.opened;
      if (tries.length === 1) throw signal.reason;
      return "done";
    }),
  );
  const id = await engine.start(working);
  await engine.idle();
  await engine.tell(id, "cancel");
  await engine.idle();
  gate.open();
  expect((await engine.end(id)).status).toBe("cancelled");
  expect(await redrive(engine, id)).toBe("completed");
  expect(tries).toEqual(["try", "try"]);
});

test("children that the run's own cancel stopped are started again", async () => {
  const engine = createEngine();
  let isFirst = true;
  const child = workflow({ ...once, name: "child" }, async (ctx) => {
    if (isFirst) await ctx.waitForSignal("never");
    return "grown";
  });
  const parent = workflow({ ...once, name: "parent" }, (ctx) => ctx.call(child));
  engine.register(child);
  const id = await engine.start(parent);
  await engine.idle();
  await engine.tell(id, "cancel");
  await engine.pass(1_000);
  expect((await engine.list()).map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
  isFirst = false;
  expect(await redrive(engine, id)).toBe("completed");
  expect(await engine.output(id)).toBe("grown");
});
