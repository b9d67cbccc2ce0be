import { createPawl, PawlError, workflow } from "pawl";

/** Hotels, flights and cars, which remember what is booked under which key. */
const booked = new Map<string, string>();
const agency = {
  async book(what: string, key: string): Promise<{ readonly id: string }> {
    if (what === "car") throw new Error("No car is left");
    booked.set(key, what);
    console.log(`Booked: ${what}`);
    return { id: key };
  },
  async cancel(id: string): Promise<void> {
    console.log(`Cancelled: ${booked.get(id)}`);
    booked.delete(id);
  },
};

const trip = workflow({ name: "trip", version: 1, retry: { attempts: 1 } }, async (ctx) => {
  const book = (what: string) =>
    ctx.step(what, ({ idempotencyKey }) => agency.book(what, idempotencyKey), {
      timeout: "30s",
      undo: async (booking, { inDoubt, idempotencyKey }) => {
        // Nobody knows whether it was booked: the key tells.
        if (inDoubt && !booked.has(idempotencyKey)) return;
        await agency.cancel(inDoubt ? idempotencyKey : booking.id);
      },
      undoRetry: { attempts: 10, initial: "1s", max: "1h" },
    });

  await book("flight");
  await book("hotel");
  await ctx.step("print", () => "a ticket", {
    undo: () => {
      throw new Error("The ticket is printed");
    },
    undoRetry: { attempts: 1 },
  });
  await book("car");
});

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/travel" });
await pawl.migrate();
await pawl.worker({ workflows: [trip] }).start();

const run = await pawl.start(trip);
try {
  await run.result();
} catch (error) {
  if (!PawlError.is(error, "RUN_FAILED")) throw error;
  console.log((error.cause as Error).message);
  console.log("Not undone:", error.details["notUndone"]);
}
const history = await run.history();
for (const { kind, name } of history) if (kind.startsWith("undo")) console.log(kind, name ?? "");
