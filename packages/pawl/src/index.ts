import { hostname } from "node:os";
import type pg from "pg";
import { createClient, type Client } from "./client/client.ts";
import { noProbe } from "./core/crash-point.ts";
import { PawlError } from "./core/error.ts";
import { createIds } from "./core/ids.ts";
import { silentLog, type Log } from "./core/log.ts";
import { checkFlag, checkInteger, checkObject, checkOptions, checkText, type Check } from "./core/options.ts";
import { createMemoryStore } from "./memory/memory-store.ts";
import type { MigrateAnswer, MigrateOptions } from "./postgres/migrate.ts";
import { createPostgresStore, type PostgresStore } from "./postgres/postgres-store.ts";
import { createStoreClock } from "./store/store-clock.ts";
import type { Store } from "./store/store.ts";
import { systemClock } from "./system/system-clock.ts";
import { systemRandom } from "./system/system-random.ts";
import { systemSettle } from "./system/system-settle.ts";
import { systemTimers } from "./system/system-timers.ts";
import type { WorkerOptions } from "./worker/worker-options.ts";
import { createWorker, type Worker } from "./worker/worker.ts";

export type { Client, ListFilter, StartArguments } from "./client/client.ts";
export { ref, type RefOptions } from "./client/ref.ts";
export type {
  CancelOptions,
  ResultOptions,
  RunHandle,
  SignalArguments,
  SignalName,
  SignalOptions,
  SignalPayload,
} from "./client/run-handle.ts";
export type { HistoryEvent, Run } from "./client/run.ts";
export type { StartOptions } from "./client/start-options.ts";
export type { Duration } from "./core/duration.ts";
export { PawlError, type ErrorCode } from "./core/error.ts";
export type { EventKind } from "./core/event.ts";
export type { RunId } from "./core/ids.ts";
export type { Log } from "./core/log.ts";
export { NonRetryableError, type RetryOptions } from "./core/retry.ts";
export type { EndStatus, RunStatus } from "./core/run-status.ts";
export type { Transaction } from "./core/transaction.ts";
export type { InputOf, OutputOf, SignalSchemas, SignalsOf, WorkflowRef } from "./core/workflow-ref.ts";
export type { MigrateAnswer, MigrateOptions } from "./postgres/migrate.ts";
export type { CallOptions, Context, RunIdentity, TimeoutOption } from "./runtime/context.ts";
export type { StepContext } from "./runtime/step-context.ts";
export {
  workflow,
  type ParsedWorkflowOptions,
  type Workflow,
  type WorkflowOptions,
} from "./runtime/workflow.ts";
export type { WorkerOptions } from "./worker/worker-options.ts";
export type { StopOptions, Worker } from "./worker/worker.ts";

/** A pool of the `pg` package. */
export interface PostgresPool {
  connect(): Promise<unknown>;
  query(text: string, values?: unknown[]): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** Exactly one of `url`, `pool` and `memory` says where runs live. */
export interface PawlOptions {
  /** A Postgres connection string. Pawl makes and closes its own pool. */
  readonly url?: string | undefined;
  /** The caller's own pool, which Pawl never closes. */
  readonly pool?: PostgresPool | undefined;
  /** Keeps everything in this process, for tests. Default false. */
  readonly memory?: boolean;
  /** The schema that holds Pawl's tables. Default `"pawl"`. */
  readonly schema?: string;
  /** A direct connection string for notifications, where `url` goes through a transaction pooler. Default: as `url`. */
  readonly listenUrl?: string;
  /** False looks for work by polling alone. Default true. */
  readonly listen?: boolean;
  /** Connections in Pawl's own pool. Default 10. */
  readonly connections?: number;
  /** Brings the schema up to date before the first use. Default false: call `migrate` when you deploy. */
  readonly autoMigrate?: boolean;
  /** Default: silent. */
  readonly log?: Log;
}

/** The way in: starts runs, looks at them, and makes the workers that execute them. */
export interface Pawl extends Omit<Client, "close"> {
  /**
   * A worker for these workflows. It takes runs once it is started.
   * @throws {PawlError} `INVALID_OPTION`
   */
  worker(options: WorkerOptions): Worker;
  /** Brings the schema up to date. Safe to call from many processes at once. @throws {PawlError} `INVALID_OPTION`, `CLOSED` */
  migrate(options?: MigrateOptions): Promise<MigrateAnswer>;
  /** Stops its workers, then lets go of the database. Runs go on elsewhere, or when a worker is next started. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Connects to where runs live. Does nothing until it is used.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * await using pawl = createPawl({ url: process.env.DATABASE_URL });
 * await pawl.migrate();
 */
export function createPawl(options: PawlOptions): Pawl {
  checkPawlOptions(options);
  const { log = silentLog } = options;
  const store = options.memory === true ? createMemory() : createPostgres(options, log);
  const storeClock = createStoreClock(systemClock, store);
  const ids = createIds(() => storeClock.now(), systemRandom);
  const seams = {
    store,
    storeClock,
    clock: systemClock,
    timers: systemTimers,
    random: systemRandom,
    ids,
    log,
  };
  const workers = new Set<Worker>();
  let migrated: Promise<unknown> | null = null;
  let closing: Promise<void> | null = null;

  const ready = async (): Promise<void> => {
    if (options.autoMigrate !== true || closing !== null) return;
    migrated ??= store.migrate().catch((error: unknown) => {
      migrated = null;
      throw error;
    });
    await migrated;
  };

  const { within } = store;
  const client = createClient({ ...seams, ready, ...(within !== undefined && { within }) });

  const shutDown = async (): Promise<void> => {
    await Promise.all([...workers].map((worker) => worker.stop()));
    await client.close();
    await store.close();
  };
  const close = (): Promise<void> => (closing ??= shutDown());

  return {
    ...client,
    worker(workerOptions) {
      if (closing !== null) throw closed();
      const place = { host: hostname(), pid: process.pid };
      const worker = createWorker(
        { ...seams, ...place, probe: noProbe, settle: systemSettle },
        workerOptions,
      );
      workers.add(worker);
      return {
        start: () => ready().then(() => worker.start()),
        async stop(stopOptions) {
          await worker.stop(stopOptions);
          workers.delete(worker);
        },
      };
    },
    async migrate(migrateOptions = {}) {
      checkOptions("migrate", migrateOptions, { verifyOnly: checkFlag, grantTo: checkText });
      if (closing !== null) throw closed();
      return store.migrate(migrateOptions);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function closed(): PawlError {
  return new PawlError("CLOSED", "This Pawl is closed; make a new one.");
}

type OwnedStore = Store & Pick<PostgresStore, "migrate" | "close"> & Partial<Pick<PostgresStore, "within">>;

function createMemory(): OwnedStore {
  return {
    ...createMemoryStore({ clock: systemClock }),
    migrate: () => Promise.resolve({ applied: [], version: 0 }),
    close: () => Promise.resolve(),
  };
}

function createPostgres(options: PawlOptions, log: Log): OwnedStore {
  const { url, pool, schema, connections, listenUrl, listen } = options;
  return createPostgresStore({
    ...(url !== undefined && url !== "" && { url }),
    ...(pool !== undefined && { pool: pool as unknown as pg.Pool }),
    ...(schema !== undefined && { schema }),
    ...(connections !== undefined && { connections }),
    ...(listenUrl !== undefined && { listenUrl }),
    ...(listen !== undefined && { listen }),
    timers: systemTimers,
    random: systemRandom,
    log,
  });
}

/** Without the protocol it would be read as the name of a database. */
const checkUrl: Check = (value) =>
  typeof value === "string" && /^postgres(?:ql)?:\/\//.test(value) ? null : "must begin with postgres://";

function checkPawlOptions(options: PawlOptions): void {
  if (typeof options === "string")
    throw new PawlError("INVALID_OPTION", "createPawl takes its options in an object: createPawl({ url }).");
  checkOptions("createPawl", options, {
    url: (value) => (value === "" ? null : checkUrl(value)),
    pool: checkObject,
    memory: checkFlag,
    schema: checkText,
    listenUrl: checkUrl,
    listen: checkFlag,
    connections: checkInteger(1),
    autoMigrate: checkFlag,
    log: checkObject,
  });
  const places = [Boolean(options.url), options.pool !== undefined, options.memory === true];
  if (places.filter(Boolean).length === 1) return;
  const hint =
    "url" in options && !options.url
      ? ` The url given is ${options.url === "" ? "empty" : "undefined"}: is the variable it comes from set?`
      : "";
  throw new PawlError("INVALID_OPTION", `createPawl needs one of url, pool and { memory: true }.${hint}`);
}
