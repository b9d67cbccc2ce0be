import { createPawl, workflow } from "pawl";

const remind = workflow({ name: "remind", version: 1 }, async (ctx, wait: number) => {
  await ctx.step("invoice", () => console.log("The invoice is sent."));
  await ctx.sleep(wait); // `"30d"` works the same: it is a row with a time
  await ctx.step("remind", () => console.log("It is still open."));
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
const run = await pawl.start(remind, 2_000);

// One worker sends the invoice, and ends. Nobody holds the run while it sleeps.
const { parked } = await pawl.worker({ workflows: [remind] }).runUntilIdle();
console.log(`Runs that sleep: ${parked}. Status: ${await run.status()}.`);

// Another one, in any process, goes on when it is due.
await pawl.worker({ workflows: [remind] }).start();
await run.result();
