import { createPawl } from "pawl";
import { bookFlight, bookTrip } from "./trip.ts";

// A process that executes runs until it is told to end. Start as many as you like.
const pawl = createPawl({ url: process.env.DATABASE_URL, log: console });
await pawl.migrate();
await pawl.worker({ workflows: [bookTrip, bookFlight] }).start();

// Finishes or hands over what it holds, then lets the process end. Waits 30 s at most.
process.once("SIGTERM", () => void pawl.close());
process.once("SIGINT", () => void pawl.close());
