import { createPawl, PawlError, workflow, type RunHandle } from "pawl";

let isBroken = true;

const order = workflow(
  { name: "order", version: 1, retry: { attempts: 1 } },
  async (ctx, input: { readonly amount: number }) => {
    await ctx.step("reserve", () => console.log("reserve"));
    const paid = await ctx.step("charge", () => {
      console.log(`charge ${input.amount}`);
      if (isBroken) throw new Error("The bank is closed");
      return input.amount;
    });
    return `paid ${paid}`;
  },
);

/** A basket of a customer: whoever adds the first thing starts it. */
const basket = workflow({ name: "basket", version: 1 }, async (ctx) => {
  const things: string[] = [];
  while (things.length < 3) things.push(await ctx.waitForSignal<string>("add"));
  return things.join(", ");
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [order, basket] }).start();

async function tellEnd(run: RunHandle): Promise<void> {
  try {
    console.log(await run.result());
  } catch (error) {
    if (!PawlError.is(error)) throw error;
    console.log(error.code, (error.cause as Error | undefined)?.message ?? "");
  }
}

// What failed is tried again, what was finished is kept.
const run = await pawl.start(order, { amount: 10 });
await tellEnd(run);
isBroken = false;
await run.retry();
await tellEnd(run);

// The same run once more, from its first line.
await run.retry({ from: "start" });
await tellEnd(run);

// Another run, which goes on from a step of this one.
const fork = await run.fork({ from: "charge", input: { amount: 12 } });
await tellEnd(fork);

// All that fit.
await pawl.startMany(order, [{ input: { amount: 1 } }, { input: { amount: 2 } }], {
  tags: ["later"],
  delay: "1d",
});
console.log(`Paused: ${await pawl.pauseAll({ tags: ["later"] })}`);
console.log(`Resumed: ${await pawl.resumeAll({ tags: ["later"] })}`);
console.log(`Cancelled: ${await pawl.cancelAll({ tags: ["later"] }, { reason: "Not today" })}`);

// Whoever comes first starts the run, and every signal arrives.
const [first] = await Promise.all(
  ["apple", "pear", "plum"].map((thing) =>
    pawl.signalOrStart(basket, { key: "basket:7", signal: "add", payload: thing, idempotencyKey: thing }),
  ),
);
console.log((await first!.result()).split(", ").toSorted().join(", "));
