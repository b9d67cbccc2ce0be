import { hostname } from "node:os";
import type pg from "pg";
import { createClient, type Client } from "./client/client.ts";
import { checkHealth, type Health } from "./client/health.ts";
import { noProbe } from "./core/crash-point.ts";
import { PawlError } from "./core/error.ts";
import { createIds } from "./core/ids.ts";
import { guardLog, silentLog, type Log } from "./core/log.ts";
import { identifierFault, nameFault } from "./core/name.ts";
import {
  checkDuration,
  checkFlag,
  checkFunction,
  checkInteger,
  checkOptions,
  type Check,
  type Rule,
} from "./core/options.ts";
import { createEmit, type Emit, type PawlEvent } from "./core/pawl-event.ts";
import type { PayloadCodec } from "./core/payload-codec.ts";
import { createPayloads } from "./core/payloads.ts";
import { createMemoryStore } from "./memory/memory-store.ts";
import type { MigrateAnswer, MigrateOptions } from "./postgres/migrate.ts";
import { createPostgresStore, type PostgresStore } from "./postgres/postgres-store.ts";
import { schemaFault } from "./postgres/schema-name.ts";
import type { Audience } from "./store/audience.ts";
import { createStoreClock } from "./store/store-clock.ts";
import type { StoreReport } from "./store/store-report.ts";
import type { Store } from "./store/store.ts";
import type { Taker } from "./store/taker.ts";
import { startDevelopmentWatch, type DevelopmentWatch, type Warn } from "./system/development-watch.ts";
import { systemClock } from "./system/system-clock.ts";
import { startSystemLoad } from "./system/system-load.ts";
import { systemRandom } from "./system/system-random.ts";
import { systemSettle } from "./system/system-settle.ts";
import { systemTimers } from "./system/system-timers.ts";
import type { WorkerOptions } from "./worker/worker-options.ts";
import { createWorker, type StopOptions, type Worker } from "./worker/worker.ts";

export type { Attempt } from "./client/attempt.ts";
export type { Client, StartArguments } from "./client/client.ts";
export type { Health } from "./client/health.ts";
export type { CancelAllOptions, LiveFilter, RetryFilter } from "./client/by-filter.ts";
export type { ForkOptions } from "./client/fork-options.ts";
export type { NodeView } from "./client/node-view.ts";
export type { RescheduleOptions } from "./client/operating.ts";
export type { PatchView } from "./client/patch-view.ts";
export type { Backlog, ListFilter, RunCount, RunCounts, RunPage } from "./client/reading.ts";
export { ref, type RefOptions } from "./client/ref.ts";
export type { RunRetryOptions } from "./client/retrying.ts";
export type {
  PublishedValue,
  ResultOptions,
  RunHandle,
  SignalArguments,
  SignalName,
  SignalPayload,
  UpdateArguments,
  UpdateOutput,
  UpdatePayload,
} from "./client/run-handle.ts";
export type { HistoryEvent, Run } from "./client/run.ts";
export type { SignalOrStartTerms } from "./client/signal-or-start.ts";
export type { StartItem, StartManyOptions, StartOptions } from "./client/start-options.ts";
export { aesGcmCodec, type AesGcmKey, type AesGcmOptions } from "./codec/aes-gcm-codec.ts";
export type { CancelOptions, SignalOptions } from "./client/telling.ts";
export type { StreamItem, StreamOptions } from "./client/streaming.ts";
export type { UpdateOptions } from "./client/updating.ts";
export type { LongStepView, WorkerView } from "./client/worker-view.ts";
export { dag, type DagOptions, type ParsedDagOptions } from "./dag/dag.ts";
export type { OnError } from "./dag/drive.ts";
export type { Graph, SuccessCase } from "./dag/graph.ts";
export type { EachOptions, Join, NodeOptions } from "./dag/node-options.ts";
export {
  quorum,
  settled,
  type InputReference,
  type Node,
  type Quorum,
  type Settled,
  type SettledNode,
} from "./dag/reference.ts";
export type { Duration } from "./core/duration.ts";
export { PawlError, type ErrorCode } from "./core/error.ts";
export type { EventKind } from "./core/event.ts";
export type { NodeState } from "./core/graph-state.ts";
export type { RunId } from "./core/ids.ts";
export type { Log } from "./core/log.ts";
export type { PawlEvent, StepPlace } from "./core/pawl-event.ts";
export type { PayloadCodec, PayloadPlace } from "./core/payload-codec.ts";
export type { RecordedError } from "./core/recorded-error.ts";
export { NonRetryableError, RetryAfterError, type RetryAfterOptions } from "./core/retry-error.ts";
export type { RetryOptions, WorkflowRetryOptions } from "./core/retry.ts";
export type { EndStatus, LiveStatus, RunStatus } from "./core/run-status.ts";
export type { Transaction } from "./core/transaction.ts";
export type { BeginOptions, Completions, Isolation, Transactor } from "./core/transactor.ts";
export type {
  InputOf,
  OutputOf,
  PublishedOf,
  PublishedSchemas,
  SignalSchemas,
  SignalsOf,
  UpdateSchemas,
  UpdatesOf,
  WorkflowRef,
} from "./core/workflow-ref.ts";
export type { MachineGraph, StepGraph } from "./machine/graph.ts";
export type {
  HandlerContext,
  Outcomes,
  SignalPayloads,
  UndoHandlerContext,
  WaitOptions,
} from "./machine/handler.ts";
export { machine, type Machine, type MachineOptions, type MachinePublished } from "./machine/machine.ts";
export { toMermaid } from "./machine/mermaid.ts";
export type { Outcome } from "./machine/outcome.ts";
export type { MachineStep } from "./machine/step.ts";
export type { Wake } from "./machine/wake.ts";
export type { MigrateAnswer, MigrateOptions } from "./postgres/migrate.ts";
export type {
  CallOptions,
  ChildHandle,
  Context,
  MapOptions,
  RaceResult,
  Racer,
  RunIdentity,
  StartChildOptions,
  StreamWriter,
  TimeoutOption,
} from "./runtime/context.ts";
export type { ContinueOptions } from "./runtime/continue-as.ts";
export type { StepContext, StepStreamWriter, UndoContext } from "./runtime/step-context.ts";
export type { StepOptions } from "./runtime/step-options.ts";
export type { TransactionOptions } from "./runtime/transaction-options.ts";
export type { OwnTransaction } from "./store/holder-transactions.ts";
export {
  workflow,
  type ParsedWorkflowOptions,
  type Workflow,
  type WorkflowOptions,
} from "./runtime/workflow.ts";
export type { WorkerOptions } from "./worker/worker-options.ts";
export type { IdleSummary } from "./worker/until-idle.ts";
export type { StopOptions, UntilIdleOptions, Worker } from "./worker/worker.ts";

/** A pool of the `pg` package. */
export interface PostgresPool {
  connect(): Promise<unknown>;
  query(text: string, values?: unknown[]): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** Exactly one of `url`, `pool` and `memory` says where runs live. */
export interface PawlOptions {
  /** A Postgres connection string. Pawl makes and closes its own pool. Default: none. */
  readonly url?: string | undefined;
  /** The caller's own pool, which Pawl never closes. Default: none. */
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
  /** Larger payloads are refused: inputs, results, outputs, signals and all others. Default 1 MiB, at most 64 MiB. */
  readonly maxPayloadBytes?: number;
  /** Encrypts payloads, as `aesGcmCodec` does. What was stored without it stays readable. Default: none. */
  readonly codec?: PayloadCodec;
  /** Default: silent. */
  readonly log?: Log;
  /**
   * Warns, once for each place, of what makes a workflow's code take another course when it is replayed: `Date.now()`,
   * `Math.random()`, `crypto.randomUUID()`, timers, awaits other than the context's, and requests inside a step. It says so to
   * `log`, or as a warning of the process where there is none. From the first worker until `close`, those globals are
   * wrapped; they do what they did. Default: true where `NODE_ENV` is `development`.
   */
  readonly development?: boolean;
  /**
   * Is told what this process does, for metrics and alerts: called at once, after it is in the database. What it throws
   * is logged and changes nothing; it should be quick. Default: nobody is told.
   */
  readonly onEvent?: (event: PawlEvent) => unknown;
}

const mostPayloadBytes = 64 * 1024 * 1024;

/** The way in: starts runs, looks at them, and makes the workers that execute them. */
export interface Pawl extends Omit<Client, "close"> {
  /**
   * A worker for these workflows. It takes runs once it is started.
   * @throws {PawlError} `INVALID_OPTION`
   */
  worker(options: WorkerOptions): Worker;
  /** Brings the schema up to date. Safe to call from many processes at once. @throws {PawlError} `INVALID_OPTION`, `CLOSED` */
  migrate(options?: MigrateOptions): Promise<MigrateAnswer>;
  /** How the database, its schema and the connections to it are doing. Never rejects: for readiness checks. */
  health(): Promise<Health>;
  /**
   * Stops its workers as their `stop` does, then lets go of the database. Runs go on elsewhere, or when a worker is next
   * started. A second call with a shorter timeout shortens the wait. @throws {PawlError} `INVALID_OPTION`
   */
  close(options?: StopOptions): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Connects to where runs live. Does nothing until it is used.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * await using pawl = createPawl({ url: process.env.DATABASE_URL });
 * await pawl.migrate();
 */
export function createPawl(given: PawlOptions): Pawl {
  const options = readPawlOptions(given);
  const log = options.log === undefined ? silentLog : guardLog(options.log);
  const emit = options.onEvent && createEmit(options.onEvent, log);
  const store = options.memory === true ? createMemory() : createPostgres(options, log, emit);
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
    payloads: createPayloads({ maxBytes: options.maxPayloadBytes, codec: options.codec }),
    emit,
  };
  const workers = new Set<Worker>();
  const isDevelopment = options.development ?? process.env["NODE_ENV"] === "development";
  let watch: DevelopmentWatch | null = null;
  const warn: Warn = (message, fields) => {
    if (options.log === undefined) process.emitWarning(message, "PawlWarning");
    else log.warn(message, fields);
  };
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
  // What a client and the workers of this process do without a detour over the store.
  const nearby = { takers: new Set<Taker>(), audiences: new Set<Audience>() };
  const client = createClient({
    ...seams,
    ...nearby,
    ready,
    settle: systemSettle,
    ...(within !== undefined && { within }),
  });

  const stopWorkers = async (stopOptions?: StopOptions): Promise<void> => {
    await Promise.all([...workers].map((worker) => worker.stop(stopOptions)));
  };
  const shutDown = async (stopOptions?: StopOptions): Promise<void> => {
    await stopWorkers(stopOptions);
    watch?.stop();
    await client.close();
    await store.close();
  };
  const close = async (stopOptions: StopOptions = {}): Promise<void> => {
    checkOptions("close", stopOptions, { timeout: checkDuration });
    if (closing !== null) await stopWorkers(stopOptions);
    await (closing ??= shutDown(stopOptions));
  };

  let isPoolerReported = false;
  const reportPooler = (): void => {
    if (isPoolerReported || !store.isPooled()) return;
    isPoolerReported = true;
    log.info("A transaction pooler is between this worker and the database: statements are not prepared.");
  };

  return {
    ...client,
    worker(workerOptions) {
      if (closing !== null) throw closed();
      const place = { host: hostname(), pid: process.pid, platform: `node ${process.versions.node}` };
      if (isDevelopment) watch ??= startDevelopmentWatch(warn);
      const worker = createWorker(
        {
          ...seams,
          ...nearby,
          transactions: store.transactions,
          ...place,
          watch: watch ?? undefined,
          probe: noProbe,
          settle: systemSettle,
          startLoad: startSystemLoad,
        },
        workerOptions,
      );
      workers.add(worker);
      return {
        async start() {
          await ready();
          await worker.start();
          reportPooler();
        },
        async runUntilIdle(idleOptions) {
          await ready();
          const summary = await worker.runUntilIdle(idleOptions);
          workers.delete(worker);
          return summary;
        },
        async stop(stopOptions) {
          await worker.stop(stopOptions);
          workers.delete(worker);
        },
      };
    },
    async migrate(migrateOptions = {}) {
      const checked = checkOptions("migrate", migrateOptions, {
        verifyOnly: checkFlag,
        grantTo: checkIdentifier,
      });
      if (closing !== null) throw closed();
      return store.migrate(checked);
    },
    health: () => checkHealth({ ...seams, examine: () => store.examine() }),
    close,
    [Symbol.asyncDispose]: () => close(),
  };
}

function closed(): PawlError {
  return new PawlError("CLOSED", "This Pawl is closed; make a new one.");
}

type OwnedStore = Store &
  Pick<PostgresStore, "migrate" | "isPooled" | "examine" | "close"> &
  Partial<Pick<PostgresStore, "within" | "transactions">>;

function createMemory(): OwnedStore {
  const store = createMemoryStore({ clock: systemClock });
  const examine = async (): Promise<StoreReport> => {
    const workers = await store.listWorkers({ endedWithinMs: 0, limit: Number.MAX_SAFE_INTEGER });
    const aliveWorkers = workers.filter(({ isAlive }) => isAlive).length;
    const schema = { version: 0, wantedVersion: 0, isFit: true, unsafeSettings: [] };
    return { now: await store.now(), ...schema, aliveWorkers, isPooled: false, listening: "live" };
  };
  return {
    ...store,
    examine,
    isPooled: () => false,
    migrate: () => Promise.resolve({ applied: [], version: 0 }),
    close: () => Promise.resolve(),
  };
}

function createPostgres(options: PawlOptions, log: Log, emit: Emit | undefined): OwnedStore {
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
    onListenChange: (state) => {
      const at = new Date();
      if (state === "live") emit?.({ kind: "listen.restored", at });
      else emit?.({ kind: "listen.lost", at, isPooled: state === "pooled" });
    },
  });
}

const checkIdentifier: Check = (value) => identifierFault(value);

/** Without the protocol it would be read as the name of a database. The error keeps the password to itself. */
const checkUrl: Check = (value) => {
  if (typeof value !== "string" || !/^postgres(?:ql)?:\/\//.test(value)) return "must begin with postgres://";
  // As the driver reads it: with spaces, and without a host before the socket's path.
  const url = value.replaceAll(" ", "%20").replace("@/", "@host/");
  return URL.canParse(url) ? null : "is no url that can be understood";
};

const checkPool: Check = (value) => {
  const { connect, query, on } = (value ?? {}) as Partial<PostgresPool>;
  return [connect, query, on].every((method) => typeof method === "function")
    ? null
    : "must be a pool of the pg package";
};

const checkCodec: Check = (value) => {
  const { name, encode, decode, digest } = (value ?? {}) as Partial<PayloadCodec>;
  const fault = nameFault(name);
  if (fault !== null) return `must have a name, which ${fault}`;
  return [encode, decode, digest].every((method) => typeof method === "function")
    ? null
    : "must have the methods encode, decode and digest";
};

const checkLog: Check = (value) => {
  const { debug, info, warn, error } = (value ?? {}) as Partial<Log>;
  return [debug, info, warn, error].every((method) => typeof method === "function")
    ? null
    : "must have the functions debug, info, warn and error";
};

const needsPlace = "createPawl needs one of url, pool and { memory: true }.";

const onePlace: Rule = {
  of: ["url", "pool", "memory"],
  check({ url, pool, memory }, names) {
    const places = [Boolean(url), pool !== undefined, memory === true].filter(Boolean);
    if (places.length === 1) return null;
    const isUnset = names.includes("url") && !url;
    const hint = isUnset
      ? ` The url given is ${url === "" ? "empty" : "undefined"}: is the variable it comes from set?`
      : "";
    return { kind: "said", option: "url", message: needsPlace + hint };
  },
};

function readPawlOptions(options: PawlOptions): PawlOptions {
  if (typeof options === "string")
    throw new PawlError("INVALID_OPTION", "createPawl takes its options in an object: createPawl({ url }).");
  return checkOptions(
    "createPawl",
    options,
    {
      url: (value) => (value === "" ? null : checkUrl(value)),
      pool: checkPool,
      memory: checkFlag,
      schema: (value) => schemaFault(value),
      listenUrl: checkUrl,
      listen: checkFlag,
      connections: checkInteger(1, 10_000),
      autoMigrate: checkFlag,
      maxPayloadBytes: checkInteger(1, mostPayloadBytes),
      codec: checkCodec,
      log: checkLog,
      development: checkFlag,
      onEvent: checkFunction,
    },
    { rules: [onePlace] },
  );
}
