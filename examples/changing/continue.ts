import { createPawl, workflow } from "pawl";

interface Cart {
  readonly items: readonly string[];
  readonly turns: number;
}

/** Lives for as long as its customer does, with a short history at any time. */
const cart = workflow(
  { name: "cart", version: 1 },
  async (ctx, { items, turns }: Cart): Promise<readonly string[]> => {
    const item = await ctx.waitForSignal<string | null>("add");
    if (item === null) return items;
    return ctx.continueAs({ items: [...items, item], turns: turns + 1 });
  },
);

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/shop" });
await pawl.migrate();
await pawl.worker({ workflows: [cart] }).start();

const run = await pawl.start(cart, { items: [], turns: 0 }, { key: "cart:ada" });
for (const item of ["tea", "milk", null]) await run.signal("add", item);
console.log(await run.result());

const { runs } = await pawl.list({ workflow: "cart" });
console.log(runs.length, "runs, each with", (await run.history()).length, "events");
