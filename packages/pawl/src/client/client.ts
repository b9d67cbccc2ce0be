import type { RunId } from "../core/ids.ts";
import { assertName } from "../core/name.ts";
import { checkOptions } from "../core/options.ts";
import {
  assertWorkflow,
  type InputOf,
  type OutputOf,
  type PublishedOf,
  type SignalsOf,
  type UpdatesOf,
  type WorkflowRef,
} from "../core/workflow-ref.ts";
import { checkAbortSignal } from "./abort-listeners.ts";
import { createConnection, type ClientDeps } from "./connection.ts";
import { createEndWatch } from "./end-watch.ts";
import { createOperating, type RedriveFilter, type RescheduleOptions } from "./operating.ts";
import { createReading, type Backlog, type ListFilter, type RunCounts, type RunPage } from "./reading.ts";
import type { RunHandle } from "./run-handle.ts";
import { assertRunId, assertText } from "./run-id.ts";
import { resultOf } from "./run-result.ts";
import type { Run } from "./run.ts";
import { createShowing } from "./showing.ts";
import type { StartItem, StartManyOptions, StartOptions } from "./start-options.ts";
import { createStarting } from "./starting.ts";
import { createStreaming, type StreamItem, type StreamOptions } from "./streaming.ts";
import { checkSignal, createTell, createTelling, type CancelOptions, type SignalOptions } from "./telling.ts";
import { createUpdating, type UpdateOptions } from "./updating.ts";
import { readWorker, type WorkerView } from "./worker-view.ts";

/** What `start` takes after the workflow: an input that may be undefined may be left out. */
export type StartArguments<Input> = undefined extends Input
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions];

/** Everything that can be asked of runs from outside. Calls that fail with `STORE_UNAVAILABLE` may have happened. */
export interface Client {
  /**
   * Starts a run. With a key it is idempotent: the second start answers the first one's run.
   * @throws {PawlError} `KEY_CONFLICT`, `INVALID_PAYLOAD`, `INVALID_OPTION`, `INVALID_TRANSACTION`, `STORE_UNAVAILABLE`
   */
  start<Ref extends WorkflowRef>(
    workflow: Ref,
    ...rest: StartArguments<InputOf<Ref>>
  ): Promise<RunHandle<OutputOf<Ref>, SignalsOf<Ref>, PublishedOf<Ref>, UpdatesOf<Ref>>>;
  /**
   * Starts many runs of a workflow, 100,000 and more, and answers their handles in order. All inputs and options are
   * checked before anything is sent. Then they go in chunks of 1,000 (fewer where inputs are large), each of which is
   * started as a whole or not at all; with `tx` the transaction decides about all. An error's `details.started` says how
   * many runs the chunks before it started: with keys, the call can simply be repeated.
   * @throws {PawlError} as `start`
   */
  startMany<Ref extends WorkflowRef>(
    workflow: Ref,
    items: readonly StartItem<InputOf<Ref>>[],
    options?: StartManyOptions,
  ): Promise<readonly RunHandle<OutputOf<Ref>, SignalsOf<Ref>, PublishedOf<Ref>, UpdatesOf<Ref>>[]>;
  /** A handle to a run by its id alone. Does not look whether it exists. */
  handle<Ref extends WorkflowRef = WorkflowRef>(
    runId: RunId,
    workflow?: Ref,
  ): RunHandle<OutputOf<Ref>, SignalsOf<Ref>, PublishedOf<Ref>, UpdatesOf<Ref>>;
  /** The run as it is now, or null where there is none. @throws {PawlError} `INVALID_OPTION` */
  get(runId: RunId): Promise<Run | null>;
  /** Newest first, a page at a time. @throws {PawlError} `INVALID_OPTION` */
  list(filter?: ListFilter): Promise<RunPage>;
  /** The same, page after page, for as long as it is asked. `limit` is the size of a page. */
  listAll(filter?: ListFilter): AsyncIterableIterator<Run>;
  /** The runs that failed for good, newest first: `list` with the status `failed`. */
  deadLetters(filter?: Omit<ListFilter, "status">): Promise<RunPage>;
  /** How many runs there are, by status. Counts up to 10,000 of each, and estimates beyond. */
  counts(): Promise<RunCounts>;
  /** What waits to be claimed, by queue, workflow and version. What no worker knows shows here. */
  backlog(): Promise<readonly Backlog[]>;
  /** What the run writes to a stream: see `RunHandle.stream`. */
  stream<Value = unknown>(
    runId: RunId,
    name: string,
    options?: StreamOptions,
  ): AsyncGenerator<StreamItem<Value>, void>;
  /** The last value that the run published under this key; undefined: none yet. @throws {PawlError} `RUN_NOT_FOUND` */
  published(runId: RunId, key: string): Promise<unknown>;
  /** The last value under each key. @throws {PawlError} `RUN_NOT_FOUND` */
  published(runId: RunId): Promise<Readonly<Record<string, unknown>>>;
  /** @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED`, `INVALID_TRANSACTION` */
  signal(runId: RunId, name: string, payload?: unknown, options?: SignalOptions): Promise<void>;
  /**
   * Asks something of a running workflow, and answers what its handler returns: see `RunHandle.update`.
   * @throws {PawlError} `UPDATE_FAILED`, `INVALID_PAYLOAD`, `UPDATE_TIMED_OUT`, `RUN_ENDED`, `RUN_NOT_FOUND`, `KEY_CONFLICT`
   */
  update(runId: RunId, name: string, payload?: unknown, options?: UpdateOptions): Promise<unknown>;
  /**
   * Asks the run to stop. Does nothing once it has ended. A step that ignores its `AbortSignal` is given up after 30 s.
   * @param options a text is the reason: at most 1,000 characters, for whoever awaits the run or looks at it
   * @throws {PawlError} `RUN_NOT_FOUND`, `INVALID_OPTION`, `INVALID_PAYLOAD`, `INVALID_TRANSACTION`
   */
  cancel(runId: RunId, options?: string | CancelOptions): Promise<void>;
  /**
   * Ends the run at once as `cancelled`, without its code: no `finally`, no undo. Its holder, if it has one, finds its
   * lease gone. Its children are asked to stop. Does nothing once it has ended.
   * @throws {PawlError} `RUN_NOT_FOUND`, `INVALID_OPTION`
   */
  terminate(runId: RunId, reason?: string): Promise<void>;
  /** Keeps the run from going on until it is resumed; a step in progress ends first. @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  pause(runId: RunId): Promise<void>;
  /** @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  resume(runId: RunId): Promise<void>;
  /**
   * Changes the priority of a run that nobody executes, and the time of one that has not begun or waits to be tried again.
   * @throws {PawlError} `RUN_BEGUN` when it is too late for that; `RUN_ENDED`, `RUN_NOT_FOUND`, `INVALID_OPTION`
   */
  reschedule(runId: RunId, options: RescheduleOptions): Promise<void>;
  /**
   * Gives a run that ended otherwise than by completing another life. What it had finished is kept, what failed is tried
   * again, and its limits count from zero. Does nothing to a run that lives.
   * @throws {PawlError} `RUN_ENDED` when it has completed; `RUN_NOT_FOUND`
   */
  redrive(runId: RunId): Promise<void>;
  /** Redrives all runs that fit, 500 at a time, and answers how many. Default: all dead letters that are no child runs. @throws {PawlError} `INVALID_OPTION` */
  redriveAll(filter?: RedriveFilter): Promise<number>;
  /** Workers that are registered, and those that ended within the last hour; newest first, 1,000 at most. */
  workers(): Promise<readonly WorkerView[]>;
  /** Whoever still waits for a result gets `CLOSED`. The runs go on. */
  close(): Promise<void>;
}

/** What the types of a workflow make of it is left to `RunHandle`. */
interface UntypedHandle extends Omit<RunHandle, "published" | "update"> {
  update(name: string, payload?: unknown, options?: UpdateOptions): Promise<unknown>;
  published(key?: string): Promise<unknown>;
}

export function createClient(deps: ClientDeps): Client {
  const connection = createConnection(deps);
  const { store, payloads, call } = connection;
  const ends = createEndWatch(deps);
  const starting = createStarting(connection);
  const tell = createTell(connection);
  const telling = createTelling(tell);
  const updating = createUpdating(deps, connection, tell);
  const reading = createReading(connection);
  const operating = createOperating(connection, reading);
  const showing = createShowing(connection);
  const streaming = createStreaming(deps, connection);

  const untypedHandle = (runId: RunId, workflow?: WorkflowRef): UntypedHandle => ({
    id: runId,
    status: () => reading.status(runId),
    async result(options = {}) {
      const { signal: abort } = checkOptions("result", options, { signal: checkAbortSignal });
      assertRunId(runId);
      // The watch asks the store by itself, and for ever.
      await call(() => Promise.resolve());
      return resultOf(runId, await ends.wait(runId, abort), payloads);
    },
    async signal(name, payload, options) {
      assertName("signal", name);
      await checkSignal(workflow?.signalSchemas ?? null, name, payload);
      await telling.signal(runId, name, payload, options);
    },
    update: (name, payload, options) => updating.update(runId, name, payload, options, workflow),
    cancel: (options) => telling.cancel(runId, options),
    terminate: (reason) => operating.terminate(runId, reason),
    pause: () => telling.pause(runId),
    resume: () => telling.resume(runId),
    reschedule: (options) => operating.reschedule(runId, options),
    redrive: () => operating.redrive(runId),
    attempts: () => reading.attempts(runId),
    history: () => reading.history(runId),
    published: (key?: string) => showing.published(runId, key, workflow),
    stream: (name, options) => streaming.read(runId, name, options),
  });

  /** The types are the caller's word: nothing can check at run time what a run will return. */
  const handle = <Ref extends WorkflowRef>(runId: RunId, workflow?: Ref) => {
    assertText(runId);
    if (workflow !== undefined) assertWorkflow("handle", workflow);
    return untypedHandle(runId, workflow) as unknown as RunHandle<
      OutputOf<Ref>,
      SignalsOf<Ref>,
      PublishedOf<Ref>,
      UpdatesOf<Ref>
    >;
  };

  return {
    async start(workflow, ...[input, options]) {
      return handle(await starting.start(workflow, input, options), workflow);
    },
    async startMany(workflow, items, options) {
      const runIds = await starting.startMany(workflow, items, options);
      return runIds.map((runId) => handle(runId, workflow));
    },
    handle,
    get: (runId) => reading.get(runId),
    list: (filter) => reading.list(filter),
    async *listAll(filter = {}) {
      for (let before = filter.before; ;) {
        const page = await reading.list(before === undefined ? filter : { ...filter, before });
        yield* page.runs;
        if (page.next === null) return;
        before = page.next;
      }
    },
    deadLetters: (filter) => reading.deadLetters(filter),
    counts: () => reading.counts(),
    backlog: () => reading.backlog(),
    ...telling,
    ...operating,
    update: (runId, name, payload, options) => updating.update(runId, name, payload, options),
    stream: (runId, name, options) => streaming.read(runId, name, options),
    published: ((runId: RunId, key?: string) => showing.published(runId, key)) as Client["published"],
    async workers() {
      const filter = { endedWithinMs: 3_600_000, limit: 1_000 };
      return (await call(() => store.listWorkers(filter))).map(readWorker);
    },
    async close() {
      connection.close();
      await Promise.all([ends.close(), updating.close(), streaming.close()]);
    },
  };
}
