import { createPawl, workflow } from "pawl";
import pg from "pg";

const mail = { send: async (text: string) => console.log(text) };

const confirmOrder = workflow(
  { name: "confirm-order", version: 1 },
  async (ctx, order: { readonly id: number }) => {
    await ctx.step("mail", () => mail.send(`Thank you for order ${order.id}.`));
  },
);

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const pawl = createPawl({ url: process.env.DATABASE_URL });

/** Stores the order and starts its run, or does neither. */
async function placeOrder(id: number, total: number) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const run = await pawl.start(confirmOrder, { id }, { tx: client, key: `confirm-order:${id}` });
    await client.query("insert into orders (id, total) values ($1, $2)", [id, total]);
    await client.query("commit");
    return run;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

await pawl.migrate();
await pool.query(
  "create table if not exists orders (id integer primary key, total integer check (total > 0))",
);
await pawl.worker({ workflows: [confirmOrder] }).start();

const run = await placeOrder(1, 100);
await run.result(); // after the commit: before, nobody else can see the run
console.log(`Order 1: ${await run.status()}.`);

await placeOrder(2, -5).catch((error: unknown) => console.log(`Order 2: ${String(error)}.`));
console.log(`Runs: ${(await pawl.list({ workflow: "confirm-order" })).runs.length}.`); // no run without its order

await pawl.close();
await pool.end();
