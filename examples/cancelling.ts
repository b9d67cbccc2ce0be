import { setTimeout as pause } from "node:timers/promises";
import { createPawl, PawlError, workflow } from "pawl";

const started: string[] = [];

const rent = workflow({ name: "rent", version: 1 }, async (ctx) => {
  try {
    await ctx.step("hand over keys", () => "keys", { undo: (keys) => console.log(`Took back the ${keys}`) });
    // A signal that aborts: the step ends early, and says how far it came.
    const km = await ctx.step("drive", async ({ signal }) => {
      started.push("drive");
      await pause(60_000, undefined, { signal }).catch(() => {});
      const { details } = signal.reason as PawlError;
      console.log("Stopped, since", details["reason"]);
      return 12;
    });
    console.log(`Drove ${km} km`);
    await ctx.sleep("1d"); // throws: nothing begins any more
  } catch (error) {
    if (!PawlError.is(error, "RUN_CANCELLED")) throw error;
    console.log("The code hears of it");
    throw error;
  } finally {
    console.log("finally");
  }
});

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/cars" });
await pawl.migrate();
await pawl.worker({ workflows: [rent] }).start();

const run = await pawl.start(rent);
while (started.length === 0) await pause(10);
await run.cancel("it rains");
await run.result().catch((error: unknown) => console.log((error as PawlError).code));
for (const { kind, name } of await run.history()) console.log(kind, name ?? "");
