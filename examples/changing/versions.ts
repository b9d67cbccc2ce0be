import { createPawl, workflow } from "pawl";

const mail = (version: number) =>
  workflow({ name: "mail", version }, async (ctx, to: string) => {
    await ctx.waitForSignal("send");
    return `version ${version} wrote to ${to}`;
  });
const [first, second] = [mail(1), mail(2)];

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/shop" });
await pawl.migrate();

const old = await pawl.start(first, "ada");
const fresh = await pawl.start(second, "bob");
await pawl.worker({ workflows: [first, second] }).start();

for (const run of [old, fresh]) await run.signal("send");
for (const run of [old, fresh]) console.log(await run.result());
