import { createPawl, PawlError } from "pawl";
import { bookTrip } from "./trip.ts";

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();

const run = await pawl.start(bookTrip, { city: "Oslo" }, { key: "trip:oslo:ada" });
await run.signal("approved", { by: "Grace" }, { idempotencyKey: "form-12" });
try {
  console.log(await run.result());
} catch (error) {
  if (!PawlError.is(error, "RUN_FAILED")) throw error;
  console.error(`Run ${run.id} failed:`, error.cause);
}
