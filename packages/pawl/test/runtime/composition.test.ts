import { expect, test } from "vitest";
import type { ChildHandle, Context } from "../../src/runtime/context.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { createEngine, type Engine } from "./engine.ts";
import { createGate } from "./gate.ts";

const options = { version: 1, crashLimit: 1_000, retry: { attempts: 1 } } as const;

const slow = workflow({ ...options, name: "slow" }, async (ctx, n: number) => {
  await ctx.sleep("1d");
  return n;
});

test("a wait that lost a race takes no signal any more, and the next wait gets it", async () => {
  const engine = createEngine();
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const first = await ctx.race({ go: ctx.waitForSignal("go"), late: ctx.sleep("1m") });
    return [first.winner, await ctx.waitForSignal("go")];
  });
  const id = await engine.start(tested);
  await engine.pass(61_000);
  await engine.tell(id, "signal:go", "mine");
  await engine.end(id);
  expect(await engine.output(id)).toEqual(["late", "mine"]);
});

test("a signal and a timer that come at the same time have one winner, and the signal is not lost", async () => {
  const engine = createEngine();
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const first = await ctx.race({
      late: ctx.sleep("1m"),
      go: ctx.waitForSignal("go"),
      other: ctx.waitForSignal("other"),
    });
    const rest = await ctx.waitForSignal("other", { timeout: "1m" });
    return [first, rest];
  });
  const id = await engine.start(tested);
  await engine.idle();
  await engine.crash();
  await engine.tell(id, "signal:go", 1);
  await engine.tell(id, "signal:other", 2);
  engine.clock.advance(60_000);
  await engine.end(id);
  expect(await engine.output(id)).toEqual([{ winner: "go", value: 1 }, 2]);
});

test("a race that is lost cancels the child that ran in it", async () => {
  const engine = createEngine();
  engine.register(slow);
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const first = await ctx.race({ child: ctx.call(slow, 1), late: ctx.sleep("1m") });
    await ctx.sleep("1s");
    return first.winner;
  });
  const id = await engine.start(tested);
  await engine.end(id);
  await engine.idle();
  const [child] = await engine.list("slow");
  expect([await engine.output(id), child?.status]).toEqual(["late", "cancelled"]);
  expect(await engine.facts(id)).toContain("withdrawn slow");
});

test("a race that is lost in a second life cancels the child, though the first life had asked it to stop, too", async () => {
  const engine = createEngine();
  let isStopped = false;
  engine.register(slow);
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const step = ctx.step("step", async ({ signal }) => {
      if (!isStopped) await new Promise((_, reject) => signal.addEventListener("abort", reject));
    });
    const first = await ctx.race({ child: ctx.call(slow, 1), step });
    return first.winner;
  });
  const id = await engine.start(tested);
  await engine.idle();
  await engine.tell(id, "cancel");
  await engine.end(id);
  isStopped = true;
  await engine.idle();
  const [child] = await engine.list("slow");
  expect(child?.status).toBe("cancelled");
  await engine.store.redrive([child!.id, id]);
  await engine.end(id);
  expect(await engine.output(id)).toBe("step");
  expect((await engine.end(child!.id)).status).toBe("cancelled");
});

test("a race with which the run ends cancels the child that lost it, whatever write the worker dies at", async () => {
  const drive = async (engine: Engine): Promise<unknown> => {
    const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
      const first = await ctx.race({ child: ctx.call(slow, 1), late: ctx.sleep("1m") });
      return first.winner;
    });
    engine.register(slow, tested);
    const id = await engine.start(tested);
    await engine.end(id);
    const [child] = await engine.list("slow");
    return [await engine.output(id), (await engine.end(child!.id)).status];
  };
  const calm = createEngine();
  expect(await drive(calm)).toEqual(["late", "cancelled"]);
  for (let number = 1; number <= calm.writes(); number++) {
    for (const when of ["before", "after"] as const) {
      const engine = createEngine({ crashAt: (call, at) => call === number && at === when });
      expect(await drive(engine), `${when} write ${number}`).toEqual(["late", "cancelled"]);
    }
  }
});

test("a race tells the step that lost to stop", async () => {
  const engine = createEngine();
  const stopped: unknown[] = [];
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const first = await ctx.race({
      late: ctx.sleep("1m"),
      work: ctx.step("work", async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        stopped.push((signal.reason as { code: string }).code);
      }),
    });
    return [first.winner, await ctx.step("after", () => stopped.length)];
  });
  const id = await engine.start(tested);
  await engine.end(id);
  expect(await engine.output(id)).toEqual(["late", 1]);
  expect(stopped).toEqual(["WITHDRAWN"]);
});

test("a race that is lost inside a branch of another is withdrawn with it", async () => {
  const engine = createEngine();
  const seen: string[] = [];
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const first = await ctx.race({
      inner: async (outer) => {
        try {
          await outer.race({ a: outer.waitForSignal("go"), b: (deep) => deep.sleep("2d") });
        } catch (error) {
          seen.push((error as { code: string }).code);
          await outer.step("never", () => seen.push("never")).catch(() => seen.push("refused"));
        }
      },
      late: ctx.sleep("1m"),
    });
    return [first.winner, await ctx.waitForSignal("go")];
  });
  const id = await engine.start(tested);
  await engine.pass(120_000);
  await engine.tell(id, "signal:go", 7);
  await engine.end(id);
  expect(await engine.output(id)).toEqual(["late", 7]);
  expect(seen.slice(-2)).toEqual(["WITHDRAWN", "refused"]);
});

test("a race fails if its first branch to end does", async () => {
  const engine = createEngine();
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const broken = ctx.step("broken", () => {
      throw new Error("no");
    });
    return ctx.race({ broken, late: ctx.sleep("1m") }).catch((error: unknown) => (error as Error).message);
  });
  const id = await engine.start(tested);
  await engine.end(id);
  expect(await engine.output(id)).toBe("no");
});

test("a race says what it needs", async () => {
  const engine = createEngine();
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const wrong = [
      () => ctx.race({}),
      () => ctx.race(null as never),
      () => ctx.race({ a: Promise.resolve(1) }),
      () => ctx.race({ a: 7 as never }),
      () => ctx.map("m", 3 as never, () => 1),
      () => ctx.map("m", [1], () => 1, { concurrency: 0 }),
      () => ctx.map("m", [1], () => 1, { concurency: 2 } as never),
      () => ctx.scope("", () => 1),
      () => ctx.scope("s", 1 as never),
      () => ctx.start(slow, 1, { detatched: true } as never),
      () => ctx.call(slow, 1, { detached: true } as never),
    ];
    const messages: string[] = [];
    for (const ask of wrong)
      messages.push(
        await ask().then(
          () => "?",
          (error: unknown) => (error as Error).message,
        ),
      );
    return messages;
  });
  const id = await engine.start(tested);
  await engine.end(id);
  expect(await engine.output(id)).toEqual([
    expect.stringContaining("race needs an object of branches"),
    expect.stringContaining("race needs an object of branches"),
    expect.stringContaining('The branch "a" of a race must be'),
    expect.stringContaining('The branch "a" of a race must be'),
    expect.stringContaining("needs an array of items"),
    expect.stringContaining("concurrency"),
    expect.stringContaining('"concurrency"'),
    expect.any(String),
    expect.stringContaining("needs a function"),
    expect.stringContaining('"detached"'),
    expect.stringContaining("detached"),
  ]);
});

test("a map begins no more than it may, and nothing once an item has failed", async () => {
  const engine = createEngine();
  const begun: number[] = [];
  let most = 0;
  let now = 0;
  const tested = workflow({ ...options, name: "tested" }, async (ctx) =>
    ctx
      .map(
        "items",
        [0, 1, 2, 3, 4, 5, 6, 7],
        (item, inner) =>
          inner.step("work", async () => {
            begun.push(item);
            most = Math.max(most, ++now);
            await engine.delay(1_000);
            now -= 1;
            if (item === 3) throw new Error("three");
            return item;
          }),
        { concurrency: 2 },
      )
      .catch((error: unknown) => (error as Error).message),
  );
  const id = await engine.start(tested);
  await engine.end(id);
  expect(await engine.output(id)).toBe("three");
  expect([begun.length <= 5, most]).toEqual([true, 2]);
});

test("a child that failed is started again by the next attempt, whether it was called or started", async () => {
  const engine = createEngine();
  let starts = 0;
  const flaky = workflow({ ...options, name: "flaky" }, async () => {
    starts += 1;
    if (starts <= 2) throw new Error("not yet");
    return starts;
  });
  engine.register(flaky);
  const tested = workflow(
    { ...options, name: "tested", retry: { attempts: 3, initial: 1 } },
    async (ctx): Promise<number> => {
      const handle: ChildHandle<number> = await ctx.start(flaky);
      await ctx.sleep("1m");
      return handle.result();
    },
  );
  const id = await engine.start(tested);
  await engine.end(id);
  expect([await engine.output(id), starts]).toEqual([3, 3]);
});

test("only the failure that ended an attempt is tried again, though others were caught before it", async () => {
  const engine = createEngine();
  const calls: string[] = [];
  const step = (ctx: Context, name: string, works: boolean): Promise<unknown> =>
    ctx.step(name, () => {
      calls.push(name);
      if (!works) throw new Error(name);
    });
  const tested = workflow({ ...options, name: "tested", retry: { attempts: 2, initial: 1 } }, async (ctx) => {
    await Promise.allSettled([step(ctx, "settled", false), step(ctx, "neighbour", true)]);
    try {
      await step(ctx, "fatal", calls.includes("fatal"));
    } catch (error) {
      await step(ctx, "clean up", true);
      throw new Error("it was fatal", { cause: error });
    }
  });
  const id = await engine.start(tested);
  expect((await engine.end(id)).status).toBe("completed");
  expect(calls).toEqual(["settled", "neighbour", "fatal", "clean up", "fatal"]);
});

test("a step whose function uses the workflow's context fails, and says why", async () => {
  const engine = createEngine();
  let calls = 0;
  const tested = workflow({ ...options, name: "tested", retry: { attempts: 3, initial: 1 } }, async (ctx) =>
    ctx.step("outer", () => {
      calls += 1;
      return ctx.step("inner", () => 1);
    }),
  );
  const run = await engine.end(await engine.start(tested));
  expect([run.status, calls]).toEqual(["failed", 1]);
  expect(JSON.parse(run.error?.json ?? "{}")).toMatchObject({
    code: "NESTED_REQUEST",
    message: expect.stringContaining('step "outer" asks for step "inner"'),
  });
});

test("nothing begins any more if the code comes to its end while a child that lost is being cancelled", async () => {
  const engine = createEngine();
  engine.register(slow);
  const called: string[] = [];
  const gate = createGate();
  const store = { ...engine.store };
  Object.assign(engine.store, {
    tell: async (...args: Parameters<typeof store.tell>) => {
      gate.open();
      await store.now();
      return store.tell(...args);
    },
  });
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    await ctx.race({ child: ctx.call(slow, 1), late: ctx.sleep("1m") });
    void ctx.step("forgotten", () => called.push("forgotten"));
    await gate.opened;
    return "over";
  });
  const id = await engine.start(tested);
  await engine.end(id);
  expect([await engine.output(id), called]).toEqual(["over", []]);
});
