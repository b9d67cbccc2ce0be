import { createPawl, workflow } from "../../src/index.ts";

/** A process that counts the rejections nobody handles, while steps leave some behind. */
const unhandled: string[] = [];
process.on("unhandledRejection", (reason) => void unhandled.push(String(reason)));

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const outcomes: string[] = [];

const careless = workflow(
  { name: "careless", version: 1, retry: { attempts: 1 } },
  async (ctx, how: string) =>
    ctx.step("leave", async () => {
      const left = turn().then(() => {
        throw new Error(how);
      });
      if (how === "throws") throw new Error("the step's own");
      if (how === "returns") return "done";
      return left;
    }),
);
/** Asks for more than it waits for: what it has lost interest in fails later. */
const hasty = workflow({ name: "hasty", version: 1, retry: { attempts: 1 } }, async (ctx) => {
  void ctx.step("lost", async () => {
    await turn();
    throw new Error("lost");
  });
  void ctx.sleep("never" as never);
  void ctx.call(undefined as never);
  const first = Promise.race([
    ctx.step("won", () => "won"),
    ctx.step("late", () => Promise.reject(new Error("late"))),
  ]);
  return first;
});

/** Asks for something when it has long returned, in every way there is. */
const late = workflow({ name: "late", version: 1 }, async (ctx, turns: number) => {
  const ask = async (): Promise<void> => {
    for (let left = turns; left > 0; left--) await turn();
    void ctx.step("late", () => "late");
    void ctx.race({ one: () => ctx.sleep("1ms"), other: () => ctx.sleep("1ms") });
    void ctx.continueAs(turns);
    ctx.patch("late");
  };
  void ask();
  return "returned";
});

const pawl = createPawl({ memory: true });
await pawl.worker({ workflows: [careless, hasty, late] }).start();
for (const how of ["throws", "returns", "awaits"]) {
  const run = await pawl.start(careless, how);
  outcomes.push(
    await run.result().then(
      (output) => `completed ${output}`,
      (error: unknown) => ((error as Error).cause as Error).message,
    ),
  );
}
outcomes.push(await (await pawl.start(hasty)).result());
for (const turns of [1, 2, 3, 5, 20]) outcomes.push(await (await pawl.start(late, turns)).result());
for (let left = 50; left > 0; left--) await turn();
await pawl.close();
await turn();
console.log(JSON.stringify({ outcomes, unhandled: unhandled.toSorted() }));
