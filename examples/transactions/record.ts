import { createPawl, workflow } from "pawl";
import pg from "pg";

const bank = { charge: async (orderId: number) => `payment-${orderId}` };

const checkout = workflow({ name: "checkout", version: 1 }, async (ctx, orderId: number) => {
  const payment = await ctx.step("charge", () => bank.charge(orderId));
  const left = await ctx.transaction("record", async (tx) => {
    await tx.query("insert into sale (id, payment) values ($1, $2)", [orderId, payment]);
    const { rows } = await tx.query<{ left: number }>(
      "update stock set left_over = left_over - 1 returning left_over as left",
    );
    return rows[0]?.left ?? 0;
  });
  return `${payment}, ${left} left`;
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
await pool.query("create table sale (id integer primary key, payment text)");
await pool.query("create table stock (left_over integer check (left_over >= 0))");
await pool.query("insert into stock values (1)");
await pawl.worker({ workflows: [checkout] }).start();

console.log(await (await pawl.start(checkout, 1)).result());

// The second finds nothing left: neither its sale nor a result of the step remains.
const sold = await pawl.start(checkout, 2, { retry: { attempts: 1 } });
await sold.result().catch((error: unknown) => console.log(String(error).replace(sold.id, "2")));
const { rows } = await pool.query("select id from sale");
console.log(rows);
await pool.end();
