import { createPawl, workflow } from "pawl";
import { installCompletionTable, withPg } from "pawl/adapters";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.SHOP_DATABASE_URL ?? process.env.DATABASE_URL });
const shop = withPg(pool, { foreign: true });

const checkout = workflow({ name: "checkout", version: 1 }, async (ctx, orderId: number) => {
  await ctx.transaction(
    "record",
    async (client) => {
      await client.query("insert into sale (id) values ($1)", [orderId]);
    },
    { on: shop },
  );
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await installCompletionTable(shop); // or completionTableSql() in a migration of your own
await pool.query("create table sale (id integer primary key)");
await pawl.worker({ workflows: [checkout] }).start();

await (await pawl.start(checkout, 1)).result();
const { rows } = await pool.query("select step, state from pawl_completion");
console.log(rows);
await pool.end();
