import { createPawl, workflow } from "pawl";

const order = { name: "order", version: 1 } as const;
const say = (text: string) => () => console.log(text);

const before = workflow(order, async (ctx) => {
  await ctx.step("reserve", say("Reserved."));
  await ctx.waitForSignal("paid");
  await ctx.step("ship", say("Shipped."));
});

/** A step was put before one that runs have done already. */
const mistaken = workflow(order, async (ctx) => {
  await ctx.step("check", say("This is never said."));
  await ctx.step("reserve", say("Reserved."));
  await ctx.waitForSignal("paid");
  await ctx.step("ship", say("Shipped."));
});

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/shop" });
await pawl.migrate();

const run = await pawl.start(before);
await pawl.worker({ workflows: [before] }).runUntilIdle();

await run.signal("paid");
await pawl.worker({ workflows: [mistaken] }).runUntilIdle();
console.log(await run.status());
const last = (await run.history()).at(-1);
const message = (last?.data as { readonly message: string } | undefined)?.message ?? "";
console.log(message.split(". ").slice(0, 2).join(".\n"));

await pawl.worker({ workflows: [before] }).runUntilIdle();
console.log(await run.status());
