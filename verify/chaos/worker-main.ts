// A worker in a process of its own, as a user would write it, that executes programs and tells the ledger of every call.
import pg from "pg";
import { withPg } from "../../packages/pawl/src/adapters/index.ts";
import type { Transaction } from "../../packages/pawl/src/core/transaction.ts";
import type { Transactor } from "../../packages/pawl/src/core/transactor.ts";
import { createPawl, PawlError, type Log, type Pawl } from "../../packages/pawl/src/index.ts";
import { createProgramWorkflows, type Execution, type ProgramHost } from "../gen/program-workflow.ts";
import type { Database, StepOp } from "../gen/program.ts";
import { job } from "./job.ts";
import type { CallNote, Command, Place, Report, WorkerSettings } from "./messages.ts";
import { monotonicMs } from "./monotonic.ts";

const settings = JSON.parse(process.argv[2] ?? "{}") as WorkerSettings;

function shiftClock(skewMs: number): void {
  const now = Date.now.bind(Date);
  Date.now = () => now() + skewMs;
  Object.defineProperty(performance, "timeOrigin", { value: performance.timeOrigin + skewMs });
}

// After kill -9 of the parent there is nobody left to talk to.
const report = (message: Report): void => void (process.connected && process.send?.(message));
const complain = (what: string, error: unknown): void =>
  report({
    kind: "trouble",
    what: `${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  });
process.on("unhandledRejection", (error) => complain("a rejection that nobody handled", error));
process.on("uncaughtException", (error) => complain("an exception that nobody caught", error));

const logAs =
  (level: "warn" | "error") =>
  (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    const { error } = fields;
    report({
      kind: "log",
      level,
      message,
      fields:
        error === undefined
          ? fields
          : { ...fields, error: error instanceof Error ? (error.stack ?? error.message) : error },
    });
  };
const log: Log = { debug: () => {}, info: () => {}, warn: logAs("warn"), error: logAs("error") };

const noted = new Map<number, (answer: Command & { kind: "noted" }) => void>();
let calls = 0;

/** Waits until the ledger has written it down: what a step does to the world outside is there before its result is. */
function note(call: CallNote): Promise<Command & { kind: "noted" }> {
  const id = calls++;
  return new Promise((resolve) => {
    noted.set(id, resolve);
    report({ kind: "call", id, at: monotonicMs(), note: call });
  });
}

const plain = { transaction: null, inDoubt: false, result: null };

async function begin(call: CallNote, mark: string): ReturnType<typeof beginStep> {
  const { number, fails } = await note(call);
  const token = `${call.step}#${mark}${number}`;
  const type = fails ? "fail" : "ok";
  return { token, fails, end: () => report({ kind: "called", at: monotonicMs(), token, type, note: call }) };
}

async function beginStep(
  { run, attempt }: Execution,
  { path, failures, undo, transaction }: StepOp,
  { key, attempt: tries }: Parameters<ProgramHost["beginStep"]>[2],
): Promise<{ token: string; fails: boolean; end(): void }> {
  const who = { by: "step", run, step: path, attempt, key, tries } as const;
  return begin({ ...plain, ...who, isUndoable: undo !== null, transaction, failures }, "");
}

const poolTo = (connectionString: string): pg.Pool => {
  const pool = new pg.Pool({
    connectionString,
    max: settings.connections,
    connectionTimeoutMillis: 5_000,
    // As a user should: a connection that is half open never answers.
    query_timeout: 10_000,
  });
  pool.on("error", () => {});
  return pool;
};
const transactors = new Map<Database, Transactor<Transaction>>();

function transactorOf(database: Database): Transactor<Transaction> {
  const transactor = transactors.get(database);
  if (transactor === undefined) throw new Error("It does not work yet.");
  return transactor;
}

const host: ProgramHost = {
  beginStep,
  beginUndo({ run, attempt }, { path, undo }, { key, attempt: tries, inDoubt, result }) {
    const who = { by: "undo", run, step: path, attempt, key, tries } as const;
    return begin(
      { ...plain, ...who, isUndoable: true, inDoubt, result, failures: undo?.failures ?? 0 },
      "undo",
    );
  },
  work: (ms) =>
    new Promise((resolve) => {
      setTimeout(resolve, ms);
    }),
  patched: ({ run }, id, isNew) => report({ kind: "patched", at: monotonicMs(), run, id, isNew }),
  transactorOf,
  writeEffect: (tx, { run, step, key, token }) =>
    tx
      .query("insert into effect (run, step, key, token) values ($1, $2, $3, $4)", [run, step, key, token])
      .catch(tryAgain),
  asked: ({ run }, step, waitMs) => report({ kind: "asked", at: monotonicMs(), run, step, waitMs }),
  delivered: ({ run }, step, given) => report({ kind: "delivered", at: monotonicMs(), run, step, ...given }),
};

/** Its own statement was cancelled by the nemesis: like a conflict, that passes. */
function tryAgain(error: unknown): never {
  const isCancelled = (error as { readonly code?: unknown }).code === "57014";
  throw isCancelled ? Object.assign(new Error("cancelled", { cause: error }), { code: "40001" }) : error;
}

let pawl: Pawl | null = null;

/** Whoever looks after a service starts it again, until its database is there. */
async function work({ url, foreignUrl, concurrency, skewMs }: Place): Promise<void> {
  if (skewMs !== 0) shiftClock(skewMs);
  transactors.set("library", withPg(poolTo(url)));
  transactors.set("foreign", withPg(poolTo(foreignUrl), { foreign: true }));
  const { schema, connections, leaseMs, pollMs } = settings;
  pawl = createPawl({
    url,
    schema,
    connections,
    log,
    onEvent(event) {
      const isLoss = event.kind === "lease.lost" || (event.kind === "worker.expired" && event.held > 0);
      if (isLoss) report({ kind: "lost", at: monotonicMs() });
    },
  });
  const workflows = [...createProgramWorkflows(host, settings).values(), job];
  const worker = pawl.worker({ workflows, lease: leaseMs, concurrency, pollInterval: pollMs });
  for (;;) {
    try {
      return await worker.start();
    } catch (error) {
      if (!PawlError.is(error, "STORE_UNAVAILABLE")) throw error;
    }
  }
}

async function obey(command: Command): Promise<void> {
  switch (command.kind) {
    case "work":
      await work(command.place);
      return report({ kind: "working" });
    case "noted": {
      const resolve = noted.get(command.id);
      noted.delete(command.id);
      return resolve?.(command);
    }
    case "report":
      process.report.writeReport(command.file);
      return;
    case "leave":
      await pawl?.close();
      process.disconnect();
      return;
    default:
      return command satisfies never;
  }
}

process.on("message", (command: Command) => void obey(command));
process.once("disconnect", () => process.exit());
report({ kind: "up" });
