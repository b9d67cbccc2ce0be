import { expect, test } from "vitest";
import { workflow } from "../../src/runtime/workflow.ts";
import { endScenario, exploreCrashes } from "./crash-explorer.ts";
import { createEngine, type Engine } from "./engine.ts";
import { createGate } from "./gate.ts";

const options = { version: 1, crashLimit: 1_000, retry: { attempts: 3, initial: "1s" } } as const;

/** What was written, as `stream position value step/attempt`. */
function written(engine: Engine): readonly string[] {
  return engine.store
    .snapshot()
    .streams.map(({ name, position, data, step, attempt, isFirst, isClosing }) =>
      [
        name,
        position,
        isClosing ? "closed" : data?.value,
        step === null ? "code" : `${step}/${attempt}`,
        isFirst ? "first" : "",
      ]
        .join(" ")
        .trim(),
    );
}

test("what the code writes is written once, in order, whichever write a crash hits", async () => {
  const tell = workflow({ ...options, name: "tell" }, async (ctx) => {
    const out = ctx.stream<string>("words");
    await out.write("once");
    await ctx.step("pause", () => 1);
    await Promise.all([
      out.write("upon"),
      ctx.scope("inner", (inner) => inner.stream("words").write("a")),
      ctx.sleep("1h"),
    ]);
    await out.write("time");
    await out.close();
    return "told";
  });
  const expected = [
    "words 1 once code",
    "words 2 upon code",
    "words 3 a code",
    "words 4 time code",
    "words 5 closed code",
  ];
  let runs = 0;
  await exploreCrashes(async (engine) => {
    const id = await engine.start(tell);
    await engine.end(id);
    expect(written(engine)).toEqual(expected);
    runs += 1;
    return id;
  });
  expect(runs).toBeGreaterThan(12);
  const { facts } = await endScenario((engine) => engine.start(tell));
  expect(facts).toEqual([
    "stream_written stream:words",
    "step_completed pause",
    "stream_written stream:words#2",
    "stream_written inner/stream:words",
    "timer_set sleep",
    "timer_fired sleep",
    "stream_written stream:words#3",
    "stream_written close:words",
    "completed",
  ]);
});

test("a step writes as it goes, and a later attempt starts anew where readers can see it", async () => {
  const engine = createEngine();
  let attempts = 0;
  const ask = workflow({ ...options, name: "ask" }, async (ctx) => {
    await ctx.stream("answer").write("code first");
    await ctx.step("llm", async ({ stream }) => {
      const out = stream<string>("answer");
      attempts += 1;
      await out.write(`a${attempts}`);
      if (attempts === 1) throw new Error("cut off");
      await out.write(`b${attempts}`);
    });
    await ctx.stream("answer").close();
  });
  const id = await engine.start(ask);
  expect((await engine.end(id)).status).toBe("completed");
  expect(written(engine)).toEqual([
    "answer 1 code first code",
    "answer 2 a1 llm/1 first",
    "answer 3 a2 llm/2 first",
    "answer 4 b2 llm/2",
    "answer 5 closed code",
  ]);
  expect((await engine.facts(id)).filter((fact) => fact.startsWith("stream_written"))).toHaveLength(2);
});

test("a crash inside a step leaves what was written, and the next holder goes on behind it", async () => {
  const engine = createEngine();
  const gate = createGate();
  let calls = 0;
  const late: Promise<unknown>[] = [];
  const ask = workflow({ ...options, name: "ask" }, async (ctx) => {
    await ctx.step("llm", async ({ stream }) => {
      const out = stream("answer");
      const call = ++calls;
      await out.write(`first of call ${call}`);
      if (call > 1) return;
      await gate.opened;
      late.push(out.write("too late").catch((error: unknown) => (error as { code: string }).code));
    });
  });
  const id = await engine.start(ask);
  await engine.idle();
  expect(written(engine)).toEqual(["answer 1 first of call 1 llm/1 first"]);
  await engine.crash();
  await engine.end(id);
  gate.open();
  await engine.idle();
  expect(await Promise.all(late)).toEqual(["LEASE_LOST"]);
  expect(written(engine)).toEqual([
    "answer 1 first of call 1 llm/1 first",
    "answer 2 first of call 2 llm/1 first",
  ]);
});

test("many small writes that are not awaited one by one cost a few transitions", async () => {
  const engine = createEngine();
  const ask = workflow({ ...options, name: "ask" }, async (ctx) => {
    await ctx.step("llm", async ({ stream }) => {
      const out = stream("tokens");
      let last = Promise.resolve();
      for (let n = 1; n <= 1_000; n++) {
        last = out.write(n);
        if (n % 100 === 0) await new Promise<void>((resolve) => void setImmediate(resolve));
      }
      await last;
    });
    const code = ctx.stream("numbers");
    await Promise.all(Array.from({ length: 1_000 }, (_, n) => code.write(n)));
  });
  const id = await engine.start(ask);
  await engine.end(id);
  expect(engine.store.snapshot().streams).toHaveLength(2_000);
  expect(written(engine).at(-1)).toBe("tokens 1000 1000 llm/1");
  expect(engine.writes()).toBeLessThan(30);
  expect(engine.calls.filter((call) => call === "lastPositions")).toHaveLength(2);
});

test("writes come out in order and without gaps, though the store fails now and then", async () => {
  for (const when of ["before", "after"] as const) {
    const engine = createEngine({ failAt: (call, at) => at === when && call % 2 === 1 });
    const ask = workflow({ ...options, name: "ask" }, async (ctx) => {
      await ctx.step("llm", async ({ stream }) => {
        for (let n = 1; n <= 3; n++) await stream("tokens").write(n);
      });
      for (let n = 4; n <= 5; n++) await ctx.stream("tokens").write(n);
    });
    const id = await engine.start(ask);
    await engine.end(id);
    expect(engine.store.snapshot().streams.map(({ position, data }) => [position, data?.value])).toEqual(
      [1, 2, 3, 4, 5].map((n) => [n, n]),
    );
  }
});

test("a closed stream takes nothing more, and a replay knows that it did not", async () => {
  const scenario = (engine: Engine): Promise<string> => engine.start(stubborn);
  const stubborn = workflow({ ...options, name: "stubborn" }, async (ctx) => {
    const out = ctx.stream("a");
    const codeOf = (error: unknown): string => (error as { code: string }).code;
    await out.write(1);
    await out.close();
    const again = await out.write(2).catch(codeOf);
    const twice = await ctx.scope("inner", (inner) => inner.stream("a").close().catch(codeOf));
    const inStep = await ctx.step("late", ({ stream }) => stream("a").write(3).catch(codeOf));
    await ctx.sleep("1h");
    return [again, twice, inStep];
  });
  await exploreCrashes(scenario);
  const { engine, output } = await endScenario(scenario);
  expect(output).toEqual(["STREAM_CLOSED", "STREAM_CLOSED", "STREAM_CLOSED"]);
  expect(written(engine)).toEqual(["a 1 1 code", "a 2 closed code"]);
});

test("mistakes reject, also where nobody awaits them, and the run goes on", async () => {
  const engine = createEngine();
  const wrong = workflow({ ...options, name: "wrong" }, async (ctx) => {
    const codeOf = (error: unknown): string => (error as { code: string }).code;
    void ctx.stream("a").write(() => 1);
    const codes = [await ctx.stream("a").write(Symbol("no")).catch(codeOf)];
    const inside = await ctx.step("inside", async ({ stream }) => {
      void stream("a").write(() => 1);
      return stream("a")
        .write(() => 1)
        .catch(codeOf);
    });
    codes.push(inside);
    for (const name of ["", "x".repeat(256), 7 as never])
      try {
        ctx.stream(name);
      } catch (error) {
        codes.push(codeOf(error));
      }
    return codes;
  });
  const id = await engine.start(wrong);
  await engine.end(id);
  expect(await engine.output(id)).toEqual([
    "INVALID_PAYLOAD",
    "INVALID_PAYLOAD",
    "INVALID_NAME",
    "INVALID_NAME",
    "INVALID_NAME",
  ]);
  expect(written(engine)).toEqual([]);
});
