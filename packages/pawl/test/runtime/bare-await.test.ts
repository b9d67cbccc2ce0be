import { expect, test } from "vitest";
import { workflow } from "../../src/runtime/workflow.ts";
import { createEngine } from "./engine.ts";

const options = { version: 1, crashLimit: 1_000 } as const;
const warning =
  "The code awaits something other than its context, which makes replay slow: put that into a step.";

/** Longer than one turn of the event loop, so that the engine sees the code at rest. */
async function readFile(turns = 2): Promise<string> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
  return "content";
}

test("code that awaits something else between its requests is waited for", async () => {
  const engine = createEngine();
  const reading = workflow({ ...options, name: "reading" }, async (ctx) => {
    await ctx.step("a", () => 1);
    const content = await readFile();
    await ctx.step("b", () => 2);
    await readFile();
    await ctx.sleep("1h");
    await readFile();
    return content;
  });
  const id = await engine.start(reading);
  await engine.end(id);
  expect(await engine.output(id)).toBe("content");
  expect(await engine.facts(id)).toEqual([
    "step_completed a",
    "step_completed b",
    "timer_set sleep",
    "timer_fired sleep",
    "completed",
  ]);
  expect(engine.log.map(({ message }) => message)).toContain(warning);
});

test("replay waits for the chain whose record comes first, even if another chain is ready", async () => {
  const engine = createEngine();
  const winners: string[] = [];
  const racing = workflow({ ...options, name: "racing" }, async (ctx) => {
    const slow = async (): Promise<string> => {
      await ctx.step("a", () => 1);
      await readFile(winners.length === 0 ? 0 : 3);
      await ctx.step("b", () => 2);
      return "slow";
    };
    const fast = async (): Promise<string> => {
      await ctx.step("c", () => 3);
      await ctx.sleep("1m");
      return "fast";
    };
    const winner = await Promise.race([slow(), fast()]);
    winners.push(winner);
    await ctx.sleep("1h");
    return winner;
  });
  const id = await engine.start(racing);
  await engine.end(id);
  expect(await engine.output(id)).toBe("slow");
  expect(new Set(winners)).toEqual(new Set(["slow"]));
});

test("code that still works after a lost race is not parked under its feet", async () => {
  const engine = createEngine();
  const abandoned = workflow({ ...options, name: "abandoned" }, async (ctx) => {
    const first = await Promise.race([ctx.waitForSignal("never"), ctx.sleep("1m").then(() => "slept")]);
    await readFile();
    return ctx.step("after", () => first);
  });
  const id = await engine.start(abandoned);
  await engine.pass(60_000);
  expect(await engine.output(id)).toBe("slept");
});

test("a job without any request runs as long as it likes", async () => {
  const engine = createEngine();
  const job = workflow({ ...options, name: "job" }, async (_ctx, n: number) => {
    await readFile(8);
    return n + 1;
  });
  const id = await engine.start(job, 41);
  await engine.pass(60_000);
  await engine.end(id);
  expect(await engine.output(id)).toBe(42);
  expect(engine.calls).toEqual(["end"]);
});
