import { createPawl, workflow } from "pawl";
import pg from "pg";

const ship = workflow({ name: "ship", version: 1 }, async (ctx, orderId: number) => {
  await ctx.step("label", () => console.log(`Order ${orderId} is shipped.`));
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [ship] }).start();

const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
await client.query("create table if not exists sale (id integer primary key)");

// Both or neither: no sale without its run, no run without its sale.
await client.query("begin");
await client.query("insert into sale (id) values (1)");
const run = await pawl.start(ship, 1, { tx: client, key: "ship:1" });
await client.query("commit");
await run.result();

await client.query("begin");
await pawl.start(ship, 2, { tx: client, key: "ship:2" });
await client.query("rollback");
console.log(`Runs: ${(await pawl.list({ workflow: "ship" })).runs.length}`);
await client.end();
