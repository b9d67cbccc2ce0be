import { workflow } from "../../packages/pawl/src/index.ts";
import { comesTrue, within, type Scene } from "./scene.ts";

const megabyte = "x".repeat(1_000_000);
const steps = 10;

/** Longer than what the database answers at once. */
const longHistory: Scene = {
  name: "a history of many megabytes is read whole",
  invariant: "I14",
  async play(props, report) {
    const called: string[] = [];
    const collect = workflow({ name: "collect", version: 1 }, async (ctx) => {
      let characters = 0;
      for (let number = 0; number < steps; number++) {
        const text = await ctx.step(`fetch-${number}`, () => {
          called.push(`fetch-${number}`);
          return megabyte;
        });
        characters += text.length;
      }
      await ctx.waitForSignal("go");
      return characters;
    });
    // Nothing is kept in memory: the next to take the run reads what happened before.
    await props.pawl.worker({ workflows: [collect], stickyRuns: 0 }).start();
    const run = await props.pawl.start(collect);
    await comesTrue(async () => (await run.status()) === "waiting", 20_000);
    await run.signal("go");
    const characters = await within(run.result());
    if (characters !== steps * megabyte.length || called.length !== steps)
      report("I14", "a run with a long history was not replayed as it was", { characters, called });
  },
};

const inputs = 12;

/** More than one claim answers: the rest is fetched run by run. */
const largeInputs: Scene = {
  name: "many large inputs come with their runs",
  invariant: "I1",
  async play(props, report) {
    const options = { name: "measure", version: 1, retry: { attempts: 1 } };
    const measure = workflow(options, async (_, text: string) => text.length);
    const texts = Array.from({ length: inputs }, (_, index) => megabyte.slice(index));
    const runs = await props.pawl.startMany(
      measure,
      texts.map((input) => ({ input })),
    );
    await props.pawl.worker({ workflows: [measure], concurrency: inputs }).start();
    const lengths = await Promise.all(runs.map((run) => within(run.result())));
    if (lengths.some((length, index) => length !== texts[index]?.length))
      report("I1", "a run was not given its input", lengths);
  },
};

export const histories: readonly Scene[] = [longHistory, largeInputs];
