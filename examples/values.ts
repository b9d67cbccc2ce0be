import { aesGcmCodec, createPawl, workflow } from "pawl";

interface Order {
  readonly id: bigint;
  readonly placedAt: Date;
  readonly lines: ReadonlyMap<string, number>;
  readonly label: Uint8Array;
}

const invoice = workflow({ name: "invoice", version: 1 }, async (ctx, order: Order) => {
  const due = await ctx.step("set due date", () => new Date(order.placedAt.getTime() + 14 * 86_400_000));
  const articles = await ctx.step("list articles", () => new Set(order.lines.keys()));
  return { id: order.id, due, articles };
});

const order: Order = {
  id: 9_007_199_254_740_993n,
  placedAt: new Date("2026-11-15T09:30:00Z"),
  lines: new Map([["pen", 2]]),
  label: new Uint8Array([80, 97, 119, 108]),
};

const url = process.env.DATABASE_URL ?? "postgres://localhost/shop";
const key = process.env.PAWL_KEY ?? Buffer.alloc(32, "an example, not a secret").toString("base64");
const codec = aesGcmCodec({ keys: [{ id: "2026-11", key }] });

await using pawl = createPawl({ url });
await pawl.migrate();
const worker = pawl.worker({ workflows: [invoice] });
await worker.start();
const readable = await pawl.start(invoice, order, { key: "invoice:readable" });
console.log(await readable.result());
await worker.stop();

// The same, encrypted. What was stored before stays readable.
await using sealed = createPawl({ url, codec });
await sealed.worker({ workflows: [invoice] }).start();
const secret = await sealed.start(invoice, order, { key: "invoice:secret" });
console.log(await secret.result());
console.log((await sealed.get(readable.id))?.input);
