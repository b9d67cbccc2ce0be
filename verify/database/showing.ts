import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { workflow } from "../../packages/pawl/src/index.ts";
import { within, type Scene } from "./scene.ts";

const numbers = [1, 2, 3, 4, 5, 6];

const isEachOnce = (seen: readonly unknown[]): boolean =>
  seen.length === numbers.length && numbers.every((number) => seen.includes(number));

/** The run is taken up anew for each of them: nothing of it is kept in memory. */
const updatesAndStreams: Scene = {
  name: "each update is handled once, and what it writes to a stream is there once",
  invariant: "I10",
  async play(props, report) {
    const called: number[] = [];
    const counter = workflow({ name: "counter", version: 1 }, async (ctx) => {
      let total = 0;
      ctx.onUpdate("add", async (number: number, own) => {
        // The next one comes in meanwhile.
        await own.step("add", async () => {
          called.push(number);
          await pause(100);
        });
        total += number;
        await own.stream("added").write(number);
        return total;
      });
      await ctx.waitForSignal("done");
      return total;
    });
    await props.pawl.worker({ workflows: [counter], stickyRuns: 0 }).start();
    const run = await props.pawl.start(counter);
    const add = (number: number): Promise<unknown> =>
      within(props.pawl.update(run.id, "add", number, { idempotencyKey: `add ${number}` }));
    const answers = await Promise.all(
      numbers.map(async (number, index) => {
        await pause(40 * index);
        return add(number);
      }),
    );
    // A sender that has not heard the answer asks again.
    const repeated = await Promise.all(numbers.map(add));
    await run.signal("done");
    const total = await within(run.result());
    const items: unknown[] = [];
    for await (const { value } of run.stream("added")) items.push(value);
    const isRight =
      total === 21 && isDeepStrictEqual(answers, repeated) && isEachOnce(called) && isEachOnce(items);
    if (!isRight)
      report("I10", "an update was handled, answered or written down other than once", {
        total,
        answers,
        repeated,
        called,
        items,
      });
  },
};

/** The first one has no ear for it, and the second one is another run. */
const updateThatMovesOn: Scene = {
  name: "an update is answered by the run that the asked one goes on as",
  invariant: "I10",
  async play(props, report) {
    const relay = workflow({ name: "relay", version: 1 }, async (ctx, turn: number): Promise<string> => {
      if (turn === 1) {
        await ctx.waitForSignal("go");
        return ctx.continueAs(2);
      }
      ctx.onUpdate("ask", async (question: string) => `${question}!`);
      await ctx.waitForSignal("done");
      return "over";
    });
    await props.pawl.worker({ workflows: [relay] }).start();
    const run = await props.pawl.start(relay, 1);
    const answer = within(props.pawl.update(run.id, "ask", "well"));
    await pause(100);
    await run.signal("go");
    await run.signal("done", null, { idempotencyKey: "done" });
    const [answered, result] = [await answer, await within(run.result())];
    if (answered !== "well!" || result !== "over")
      report("I10", "an update was lost where its run went on as another", { answered, result });
  },
};

export const showing: readonly Scene[] = [updateThatMovesOn, updatesAndStreams];
