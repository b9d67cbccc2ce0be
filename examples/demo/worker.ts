import { createPawl } from "pawl";
import { order } from "./workflows.ts";

// One worker process of the demo. It stops cleanly when its parent goes away; the demo kills one before that.
const pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.worker({ workflows: [order], concurrency: 3, lease: "2s" }).start();
process.send?.("up");
process.once("disconnect", () => void pawl.close());
process.on("SIGINT", () => {});
