import { startPostgres } from "@pawl/embedded";
import { createPawl, workflow } from "pawl";
import { z } from "zod";

const bank = { charge: async (id: number, key: string) => console.log(`Charge order ${id}, key ${key}`) };
const mail = { send: async (text: string) => console.log(text) };

const checkout = workflow(
  {
    name: "checkout",
    version: 1,
    input: z.object({ orderId: z.number() }), // any Standard Schema; types flow from it
    signals: { shipped: z.object({ carrier: z.string() }) },
  },
  async (ctx, { orderId }) => {
    await ctx.step("charge", ({ idempotencyKey }) => bank.charge(orderId, idempotencyKey));
    const shipped = await ctx.waitForSignal("shipped", { timeout: "7d" }); // null when nobody sends one
    await ctx.sleep("10s"); // or "30d": it holds no memory, no connection, no process
    await ctx.step("mail", () => mail.send(`How was order ${orderId}?`));
    return { orderId, carrier: shipped?.carrier ?? null };
  },
);

// A Postgres in a folder, to try it out. Yours is as good: createPawl({ url: process.env.DATABASE_URL }).
await using postgres = await startPostgres({ dir: ".pawl/postgres" });
await using pawl = createPawl({ url: postgres.url });
await pawl.migrate();
await pawl.worker({ workflows: [checkout] }).start();

// One run per key, however often the program is started. A signal's key makes it one signal.
const run = await pawl.start(checkout, { orderId: 9182 }, { key: "checkout:9182" });
await run.signal("shipped", { carrier: "dhl" }, { idempotencyKey: "webhook-77" });
console.log(await run.result());
