import { createPawl, workflow } from "pawl";

const charge = (currency: string) => () => console.log(`Charged in ${currency}.`);
const order = { name: "order", version: 1 } as const;

/** What was deployed first. */
const before = workflow(order, async (ctx) => {
  await ctx.sleep("200ms");
  await ctx.step("charge", charge("dollars"));
  await ctx.waitForSignal("shipped", { timeout: "7d" });
});

/** What is deployed now, under the same name and version. */
const after = workflow(order, async (ctx) => {
  await ctx.sleep("200ms");
  if (ctx.patch("charge-in-euros")) await ctx.step("charge-euros", charge("euros"));
  else await ctx.step("charge", charge("dollars"));
  await ctx.waitForSignal("shipped", { timeout: "7d" });
});

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/shop" });
await pawl.migrate();

const old = await pawl.start(before);
await pawl.worker({ workflows: [before] }).runUntilIdle({ linger: "5s" });

const fresh = await pawl.start(after);
await pawl.worker({ workflows: [after] }).runUntilIdle({ linger: "5s" });

for (const run of [old, fresh]) await run.signal("shipped");
const [shown] = await pawl.patches(after);
console.log(shown?.id, { runs: shown?.runs, olderRuns: shown?.olderRuns, isRetirable: shown?.isRetirable });

await pawl.worker({ workflows: [after] }).runUntilIdle();
const [later] = await pawl.patches(after);
console.log(later?.id, { runs: later?.runs, olderRuns: later?.olderRuns, isRetirable: later?.isRetirable });
