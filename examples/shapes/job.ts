import { createPawl, workflow } from "pawl";

interface Letter {
  readonly to: string;
  /** Whoever sends the letter sends one only, whatever reaches it twice. */
  readonly key: string;
}
const mail = { send: async ({ to }: Letter) => console.log(`Welcome, ${to}!`) };

/** A job is a workflow with one step. */
const welcome = workflow({ name: "welcome", version: 1 }, async (ctx, to: string) => {
  await ctx.step("mail", ({ idempotencyKey }) => mail.send({ to, key: idempotencyKey }));
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [welcome] }).start();

// The key makes it one mail, however often this line runs.
const run = await pawl.start(welcome, "ada@example.org", { key: "welcome:ada@example.org" });
await run.result(); // only if you want to wait
