import { createPawl, type PawlEvent } from "pawl";
import { sendReport } from "./reports.ts";

const counts = new Map<string, number>();
const stepMs: number[] = [];

/** Called for everything that happens, in the process where it happens: count here, and do the rest later. */
function onEvent(event: PawlEvent): void {
  counts.set(event.kind, (counts.get(event.kind) ?? 0) + 1);
  if (event.kind === "step.completed") stepMs.push(event.durationMs);
  if (event.kind === "run.failed")
    console.error(`${event.workflow} ${event.runId} failed: ${event.error?.message}`);
  if (event.kind === "worker.blocked_loop")
    console.error(`Blocked for ${event.blockedMs} ms by one of`, event.steps);
}

await using pawl = createPawl({ url: process.env.DATABASE_URL, onEvent });
await pawl.migrate();
await pawl.worker({ workflows: [sendReport], queues: ["reports"] }).start();
const run = await pawl.start(sendReport, 7);
await run.result();
for (const { host, pid, isAlive, workflows } of await pawl.workers())
  console.log(host, pid, isAlive, workflows);
await pawl.close();
console.log(Object.fromEntries(counts), `longest step: ${Math.max(...stepMs)} ms`);
