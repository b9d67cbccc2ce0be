import { createPawl, workflow } from "pawl";

let isBankUp = false;

const order = workflow(
  { name: "order", version: 1, retry: { initial: "100ms" } },
  async (ctx, orderId: number) => {
    const seat = await ctx.step("reserve", () => {
      console.log(`reserve for order ${orderId}`);
      return { row: 7 };
    });
    await ctx.step("charge", () => {
      console.log("charge");
      if (!isBankUp) {
        isBankUp = true;
        throw new Error("The bank is down");
      }
    });
    await ctx.step("confirm", () => console.log(`confirm row ${seat.row}`));
    return seat.row;
  },
);

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [order] }).start();

const run = await pawl.start(order, 1);
await run.result();
const attempts = await run.attempts();
console.log(attempts.map(({ attempt, outcome }) => `attempt ${attempt} ${outcome}`).join(", "));
