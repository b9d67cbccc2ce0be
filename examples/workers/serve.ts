import { createServer } from "node:http";
import { createPawl } from "pawl";
import { sendReport } from "./reports.ts";

const pawl = createPawl({ url: process.env.DATABASE_URL, log: console });
await pawl.migrate();
await pawl.worker({ workflows: [sendReport], queues: ["reports"], concurrency: 20 }).start();

// For readiness checks: it answers also when the database does not.
const server = createServer((_, response) => {
  void pawl.health().then((health) => {
    response.writeHead(health.ok ? 200 : 503, { "content-type": "application/json" });
    response.end(JSON.stringify(health));
  });
});
server.listen(Number(process.env.PORT ?? 8080), () => console.log("Ready", server.address()));

// The first signal lets running steps end, for 25 s at most: less than the 30 s until Kubernetes kills.
// The second does not wait. What is cut off goes on elsewhere.
let signals = 0;
const shutDown = (): void => {
  signals += 1;
  server.close();
  void pawl.close({ timeout: signals === 1 ? "25s" : 0 });
  if (signals === 2) server.closeAllConnections();
};
process.on("SIGTERM", shutDown);
process.on("SIGINT", shutDown);
