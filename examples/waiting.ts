import { createPawl, PawlError, workflow } from "pawl";
import { z } from "zod";

const order = workflow(
  {
    name: "order",
    version: 1,
    signals: { paid: z.object({ cents: z.number() }), note: z.string() },
  },
  async (ctx, id: number) => {
    // The first of several: the others are withdrawn, and take no more signals.
    const first = await ctx.race({
      paid: ctx.waitForSignal("paid"),
      late: ctx.sleep("3d"),
    });
    if (first.winner === "late") return { id, shipped: false };

    // Buffered: it was sent before anybody waited for it. Null when the time is over first.
    const note = await ctx.waitForSignal("note", { timeout: "1s" });
    const second = await ctx.waitForSignal("note", { timeout: "100ms" });
    await ctx.sleep("100ms"); // or "30d": no process is held meanwhile
    return { id, cents: first.value.cents, note, second, shipped: true };
  },
);

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/shop" });
await pawl.migrate();
await pawl.worker({ workflows: [order] }).start();

const run = await pawl.start(order, 9182, { key: "order:9182" });
await run.signal("note", "ring twice", { idempotencyKey: "form-1" });
await run.signal("note", "ring twice", { idempotencyKey: "form-1" }); // the sender's retry is the same signal
await run.signal("paid", { cents: 4_200 });
console.log(await run.result());

try {
  await run.signal("paid", { cents: 1 });
} catch (error) {
  console.log(PawlError.is(error) && error.code);
}
