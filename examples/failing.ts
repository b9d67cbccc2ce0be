import { createPawl, NonRetryableError, PawlError, RetryAfterError, workflow } from "pawl";

/** A bank that is busy at first, then breaks down once, and never takes more than 1,000. */
const answers = [429, 503, 200];
const bank = {
  async charge(amount: number): Promise<{ readonly status: number; readonly retryAfter: number }> {
    return { status: amount > 1_000 ? 402 : (answers.shift() ?? 200), retryAfter: 200 };
  },
};

const charge = workflow(
  {
    name: "charge",
    version: 1,
    retry: {
      delays: ["100ms", "1s", "10s"], // four attempts; the pauses are random within their upper half
      retryIf: (error) => (error as Error).name !== "TypeError", // a bug does not go away by itself
    },
  },
  async (ctx, amount: number) => {
    await ctx.step("charge", async () => {
      const { status, retryAfter } = await bank.charge(amount);
      if (status === 402) throw new NonRetryableError(`The bank refuses ${amount}`);
      if (status === 429) throw new RetryAfterError("The bank is busy", { after: retryAfter });
      if (status !== 200) throw new Error(`The bank answered ${status}`);
    });
    return { amount, attempts: ctx.run.attempt };
  },
);

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/shop" });
await pawl.migrate();
await pawl.worker({ workflows: [charge] }).start();

for (const amount of [100, 5_000]) {
  const run = await pawl.start(charge, amount);
  try {
    console.log(await run.result());
  } catch (error) {
    if (!PawlError.is(error, "RUN_FAILED")) throw error;
    console.log(error.message);
    console.log((error.cause as Error).name);
  }
}
