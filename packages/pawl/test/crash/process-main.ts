// A process of its own, as a user would write it: it works when told, stops on SIGTERM, hurries on the second one.
import pg from "pg";
import { withPg } from "../../src/adapters/index.ts";
import { createPawl, PawlError, type Log, type Worker } from "../../src/index.ts";
import { createLedger } from "./ledger.ts";
import type { Boundary, Command, Doom, LogLine, ProcessSettings, Report } from "./messages.ts";
import { createProbedWorker, probeForeign } from "./probed-worker.ts";
import { chain, createWorkflows } from "./workflows.ts";

const settings = JSON.parse(process.argv[2]!) as ProcessSettings;

// After kill -9 of the parent there is nobody left to talk to.
const report = (message: Report): void => void (process.connected && process.send?.(message));

const logAs =
  (level: LogLine["level"]) =>
  (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    const { error } = fields;
    report({
      kind: "log",
      level,
      message,
      fields: error instanceof Error ? { ...fields, error: String(error) } : fields,
    });
  };
const log: Log = { debug: logAs("debug"), info: logAs("info"), warn: logAs("warn"), error: logAs("error") };

const ledgerPool = new pg.Pool({ connectionString: settings.ledgerUrl, max: 4 });
// Whoever is in a transaction may write to the ledger: on the same connections they would wait for each other.
const foreignPool = new pg.Pool({ connectionString: settings.ledgerUrl, max: 4 });
for (const pool of [ledgerPool, foreignPool]) pool.on("error", () => {});
const pawl = createPawl({ url: settings.url, schema: settings.schema, connections: 6, log });

let doom: Doom | null = null;
const passed = new Map<Boundary, number>();
/** Dies where it is told to: with whatever is under way, as a process does whose machine is gone. */
const pass = (boundary: Boundary): void => {
  const times = (passed.get(boundary) ?? 0) + 1;
  passed.set(boundary, times);
  if (doom?.at === boundary && doom.nth === times) process.kill(process.pid, "SIGKILL");
};

const workflows = createWorkflows({
  ledger: createLedger(ledgerPool),
  entered: (runId) => report({ kind: "entered", runId }),
  aboutToWait: (runId) => report({ kind: "aboutToWait", runId }),
  buying: (runId, step) => report({ kind: "buying", runId, step }),
  tell: (runId, name, payload, idempotencyKey) => pawl.signal(runId, name, payload, { idempotencyKey }),
  pass,
  foreign: probeForeign(withPg(foreignPool, { foreign: true }), pass),
});
/** By the queue they work on. */
const probedOn = new Map<string, Worker>();
const worker = pawl.worker({ ...settings.worker, workflows });

/** Whoever looks after a service starts it again, until its database is there. */
async function insistOnStart(starting: Worker): Promise<void> {
  for (;;) {
    try {
      return await starting.start();
    } catch (error) {
      if (!PawlError.is(error, "STORE_UNAVAILABLE")) throw error;
    }
  }
}

async function obey(command: Command): Promise<void> {
  switch (command.kind) {
    case "work":
      await insistOnStart(worker);
      return report({ kind: "working" });
    case "probe": {
      doom = command.doom;
      const { url, schema } = settings;
      const { queue, stickyRuns } = command;
      const options = { ...settings.worker, queues: [queue], stickyRuns, workflows };
      const probed = createProbedWorker({ url, schema, log, pass }, options);
      probedOn.set(queue, probed);
      await insistOnStart(probed);
      return report({ kind: "working" });
    }
    case "leave":
      return probedOn.get(command.queue)?.stop();
    case "count":
      return report({ kind: "counted", passed: [...passed] });
    case "start": {
      const input = { steps: 2, stepMs: 20 };
      const starts = Array.from({ length: command.times }, () =>
        pawl.start(chain, input, { key: command.key }),
      );
      const runs = await Promise.all(starts);
      return report({ kind: "started", runIds: runs.map((run) => run.id) });
    }
    default:
      return command satisfies never;
  }
}

async function leave(): Promise<void> {
  await worker.stop();
  report({ kind: "stopped" });
  await pawl.close();
  await Promise.all([ledgerPool.end(), foreignPool.end()]);
  if (process.connected) process.disconnect();
}

process.on("message", (command: Command) => void obey(command));
process.once("disconnect", () => process.exit());
process.once("SIGTERM", () => {
  void leave();
  process.once("SIGTERM", () => void worker.stop({ timeout: 0 }));
  report({ kind: "stopping" });
});
report({ kind: "up" });
