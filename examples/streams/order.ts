import { createPawl, PawlError, workflow } from "pawl";
import { z } from "zod";

const order = workflow(
  {
    name: "order",
    version: 1,
    updates: {
      setAddress: { input: z.object({ city: z.string().min(1) }), output: z.object({ days: z.number() }) },
    },
  },
  async (ctx) => {
    let city = "Ulm";
    let isShipped = false;
    ctx.onUpdate("setAddress", async (address, inner) => {
      if (isShipped) throw new Error("It is on its way");
      const days = await inner.step("ask the carrier", () => address.city.length);
      city = address.city;
      return { days };
    });
    await ctx.waitForSignal("paid");
    isShipped = true;
    await ctx.waitForSignal("delivered");
    return city;
  },
);

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [order] }).start();
const run = await pawl.start(order);

async function move(city: string): Promise<void> {
  try {
    const { days } = await run.update("setAddress", { city }, { timeout: "10s" });
    console.log(`${city}: in ${days} days`);
  } catch (error) {
    if (!PawlError.is(error)) throw error;
    const { message } = (error.cause ?? error) as Error;
    console.log(`${error.code}: ${message.replace(run.id, "…")}`);
  }
}

await move("Bonn");
await move("");
await run.signal("paid");
await move("Trier");
await run.signal("delivered");
console.log(`delivered to ${await run.result()}`);
await move("Kiel");
