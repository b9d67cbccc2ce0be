import { createPawl, workflow } from "pawl";
import { z } from "zod";

const importer = workflow(
  {
    name: "import",
    version: 1,
    published: { progress: z.object({ done: z.number(), of: z.number() }), report: z.string() },
  },
  async (ctx, files: readonly string[]) => {
    for (const [index, file] of files.entries()) {
      await ctx.step(`import ${file}`, () => {});
      await ctx.publish("progress", { done: index + 1, of: files.length });
    }
    await ctx.publish("report", `${files.join(" and ")} imported`);
    await ctx.waitForSignal("thanks");
  },
);

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
const run = await pawl.start(importer, ["customers.csv", "orders.csv"]);
console.log(await run.published("progress"));

await pawl.worker({ workflows: [importer] }).start();
while ((await run.published("report")) === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
console.log(await run.published("progress"));

await run.signal("thanks");
await run.result();
console.log(await run.published());
