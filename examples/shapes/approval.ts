import { createPawl, workflow } from "pawl";
import { z } from "zod";

const refund = workflow(
  {
    name: "refund",
    version: 1,
    input: z.object({ amount: z.number() }),
    signals: { decision: z.object({ by: z.string(), approved: z.boolean() }) },
  },
  async (ctx, { amount }) => {
    await ctx.step("ask", () => console.log(`May we refund ${amount}?`));
    const decision = await ctx.waitForSignal("decision", { timeout: "3d" }); // null after three days
    if (decision === null) return "nobody answered";
    return decision.approved ? `approved by ${decision.by}` : `refused by ${decision.by}`;
  },
);

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [refund] }).start();
const { id } = await pawl.start(refund, { amount: 40 });

// Later and elsewhere, such as in the handler of a form: the id is enough. A form sent twice is one signal.
const run = pawl.handle(id, refund);
await run.signal("decision", { by: "Grace", approved: true }, { idempotencyKey: "form-12" });
await run.signal("decision", { by: "Grace", approved: true }, { idempotencyKey: "form-12" });
console.log(await run.result());
