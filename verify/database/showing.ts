import { workflow } from "../../packages/pawl/src/index.ts";
import { within, type Scene } from "./scene.ts";

const numbers = [1, 2, 3, 4, 5, 6];

/** The run is taken up anew for each of them: nothing of it is kept in memory. */
const updatesAndStreams: Scene = {
  name: "each update is handled once, and what it writes to a stream is there once",
  invariant: "I10",
  async play(props, report) {
    const called: number[] = [];
    const counter = workflow({ name: "counter", version: 1 }, async (ctx) => {
      let total = 0;
      ctx.onUpdate("add", async (number: number, own) => {
        await own.step("add", () => void called.push(number));
        total += number;
        await own.stream("added").write(number);
        return total;
      });
      await ctx.waitForSignal("done");
      return total;
    });
    await props.pawl.worker({ workflows: [counter], stickyRuns: 0 }).start();
    const run = await props.pawl.start(counter);
    const answers: unknown[] = [];
    for (const number of numbers) {
      const add = () => within(props.pawl.update(run.id, "add", number, { idempotencyKey: `add ${number}` }));
      // A sender that has not heard the answer asks again.
      answers.push(await add(), await add());
    }
    await run.signal("done");
    const total = await within(run.result());
    const items: unknown[] = [];
    for await (const { value } of run.stream("added")) items.push(value);
    const expected = numbers.flatMap((number) =>
      Array.from({ length: 2 }, () => (number * (number + 1)) / 2),
    );
    const seen = [total, answers, called, items];
    if (JSON.stringify(seen) !== JSON.stringify([21, expected, numbers, numbers]))
      report("I10", "an update was handled, answered or written down other than once", {
        total,
        answers,
        called,
        items,
      });
  },
};

export const showing: readonly Scene[] = [updatesAndStreams];
