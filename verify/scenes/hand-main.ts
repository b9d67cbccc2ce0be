// A worker as a user would write it: it works until SIGTERM.
import pg from "pg";
import { createPawl, PawlError, type Log } from "../../packages/pawl/src/index.ts";
import type { HandLine, HandSettings } from "./hand.ts";
import { writeLedger } from "./ledger.ts";
import { createWorkflows } from "./workflows.ts";

const settings = JSON.parse(process.argv[2]!) as HandSettings;
const say = (message: HandLine | "working"): void => void (process.connected && process.send?.(message));
const logAs =
  (level: HandLine["level"]): Log["warn"] =>
  (message, fields = {}) => {
    const { error } = fields;
    say({ level, message: error instanceof Error ? `${message} ${error.message}` : message });
  };
const log: Log = { debug() {}, info: logAs("info"), warn: logAs("warn"), error: logAs("error") };

const ledger = new pg.Pool({ connectionString: settings.ledgerUrl, max: 4 });
ledger.on("error", () => {});
const pawl = createPawl({ url: settings.url, connections: 6, log });
const workflows = createWorkflows(settings.build, (runId, step) => writeLedger(ledger, runId, step));
const worker = pawl.worker({ ...settings.worker, workflows });

process.once("disconnect", () => process.exit());
process.once("SIGTERM", () => void leave());

async function leave(): Promise<void> {
  await pawl.close();
  await ledger.end();
  if (process.connected) process.disconnect();
}

/** Whoever looks after a service starts it again, until its database is there. */
for (;;) {
  try {
    await worker.start();
    break;
  } catch (error) {
    if (!PawlError.is(error, "STORE_UNAVAILABLE")) throw error;
  }
}
say("working");
