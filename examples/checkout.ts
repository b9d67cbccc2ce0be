import { createPawl, workflow } from "pawl";
import { z } from "zod";

const bank = { charge: async (orderId: number, key: string) => ({ id: `payment-${orderId}`, key }) };
const mail = { send: async (orderId: number) => console.log(`How was order ${orderId}?`) };

const askForReview = workflow(
  { name: "ask-for-review", version: 1 },
  async (ctx, input: { readonly orderId: number }) => {
    await ctx.step("mail", () => mail.send(input.orderId));
  },
);

const checkout = workflow(
  {
    name: "checkout",
    version: 1,
    input: z.object({ orderId: z.number() }), // any Standard Schema; types flow from it
    signals: { shipped: z.object({ carrier: z.string() }) },
  },
  async (ctx, { orderId }) => {
    const paid = await ctx.step("charge", ({ idempotencyKey }) => bank.charge(orderId, idempotencyKey));
    const shipped = await ctx.waitForSignal("shipped", { timeout: "7d" }); // null when it times out
    await ctx.sleep("3d"); // holds no memory, no connection, no process
    await ctx.call(askForReview, { orderId }); // a run of its own, on any worker
    return { payment: paid.id, carrier: shipped?.carrier ?? null };
  },
);

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/shop" });
await pawl.migrate();
await pawl.worker({ workflows: [checkout, askForReview] }).start();

const run = await pawl.start(checkout, { orderId: 9182 }, { key: "checkout:9182" }); // once, however often called
await run.signal("shipped", { carrier: "dhl" }, { idempotencyKey: "webhook-77" });
console.log(await run.result());
