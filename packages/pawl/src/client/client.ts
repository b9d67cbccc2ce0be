import type { RunId } from "../core/ids.ts";
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
import { createByFilter, type CancelAllOptions, type LiveFilter, type RetryFilter } from "./by-filter.ts";
import { createChains } from "./chains.ts";
import { createConnection, type ClientDeps } from "./connection.ts";
import { createEndWatch } from "./end-watch.ts";
import type { ForkOptions } from "./fork-options.ts";
import { createForking } from "./forking.ts";
import { createOperating, type RescheduleOptions } from "./operating.ts";
import { readPatch, readPatchedWorkflow, type PatchView } from "./patch-view.ts";
import { createReading, type Backlog, type ListFilter, type RunCounts, type RunPage } from "./reading.ts";
import { createRetrying, type RunRetryOptions } from "./retrying.ts";
import type { ResultOptions, RunHandle, SignalName } from "./run-handle.ts";
import { assertRunId, assertText } from "./run-id.ts";
import { resultOf } from "./run-result.ts";
import type { Run } from "./run.ts";
import { createShowing } from "./showing.ts";
import { createSignalOrStart, type SignalOrStartTerms } from "./signal-or-start.ts";
import type { StartItem, StartManyOptions, StartOptions } from "./start-options.ts";
import { createStarting } from "./starting.ts";
import { createStreaming, type StreamItem, type StreamOptions } from "./streaming.ts";
import { createTell, createTelling, type CancelOptions, type SignalOptions } from "./telling.ts";
import { UntypedHandle } from "./untyped-handle.ts";
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
   * many runs the chunks before it started: with keys, the call can simply be repeated. Without keys two chunks are under way
   * at a time, and the one after it may have been started, too.
   * @throws {PawlError} as `start`
   */
  startMany<Ref extends WorkflowRef>(
    workflow: Ref,
    items: readonly StartItem<InputOf<Ref>>[],
    options?: StartManyOptions,
  ): Promise<readonly RunHandle<OutputOf<Ref>, SignalsOf<Ref>, PublishedOf<Ref>, UpdatesOf<Ref>>[]>;
  /**
   * Signals the run that has the key, or starts it with the signal in its inbox, as one: of two at once, one starts the run,
   * and it hears both. A run that is there keeps its input, version and options, whatever this call says.
   * @throws {PawlError} `RUN_ENDED` when the key's run has ended: keys are for ever; `KEY_CONFLICT` when it has another
   * workflow; `INVALID_NAME`, `INVALID_PAYLOAD`, `INVALID_OPTION`, `INVALID_TRANSACTION`, `STORE_UNAVAILABLE`
   */
  signalOrStart<Ref extends WorkflowRef, Name extends SignalName<SignalsOf<Ref>>>(
    workflow: Ref,
    options: SignalOrStartTerms<Ref, Name>,
  ): Promise<RunHandle<OutputOf<Ref>, SignalsOf<Ref>, PublishedOf<Ref>, UpdatesOf<Ref>>>;
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
  /**
   * Sends a signal to the run: see `RunHandle.signal`.
   * @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED`, `INVALID_PAYLOAD`, `INVALID_NAME`, `INVALID_OPTION`, `INVALID_TRANSACTION`
   */
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
  /** Lets a paused run go on where it was. @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  resume(runId: RunId): Promise<void>;
  /**
   * Changes the priority of a run that nobody executes, and the time of one that has not begun or waits to be tried again.
   * @throws {PawlError} `RUN_BEGUN` when it is too late for that; `RUN_ENDED`, `RUN_NOT_FOUND`, `INVALID_OPTION`
   */
  reschedule(runId: RunId, options: RescheduleOptions): Promise<void>;
  /**
   * Gives a run that ended otherwise than by completing another life. What it had finished is kept, what failed is tried
   * again, and its limits count from zero. With `from: "start"` it begins anew, also one that completed. Does nothing to a
   * run that lives, and so is safe to repeat.
   * @throws {PawlError} `RUN_ENDED` when it has completed; `RUN_NOT_FOUND`, `INVALID_OPTION`
   */
  retry(runId: RunId, options?: RunRetryOptions): Promise<void>;
  /** Retries all runs that fit, 500 at a time, and answers how many. Default: all dead letters that are no child runs. @throws {PawlError} `INVALID_OPTION` */
  retryAll(filter?: RetryFilter, options?: RunRetryOptions): Promise<number>;
  /** The same as `retry`, in the words of dead letters. */
  redrive(runId: RunId): Promise<void>;
  /** The same as `retryAll`, in the words of dead letters. */
  redriveAll(filter?: RetryFilter): Promise<number>;
  /**
   * Starts a new run that goes on where this one asked for a step, as if everything before it had happened there: nothing of
   * that runs again. Works on live and ended runs, which stay as they are. What had begun and not ended by then (other
   * steps, sleeps, children) begins anew. The fork has no parent, and as long to its deadline as its source had.
   * @throws {PawlError} `INVALID_OPTION`, which lists the steps, when there is none of this name; `RUN_NOT_FOUND`,
   * `KEY_CONFLICT`, `INVALID_PAYLOAD` when what came before is larger than 32 MB
   */
  fork(runId: RunId, options: ForkOptions): Promise<RunHandle>;
  /**
   * Asks all live runs that fit to stop, and answers how many it asked. Runs that end meanwhile are left out; those that are
   * started meanwhile may be. @throws {PawlError} `INVALID_OPTION`
   */
  cancelAll(filter: LiveFilter, options?: CancelAllOptions): Promise<number>;
  /** Pauses all live runs that fit, and answers how many. @throws {PawlError} `INVALID_OPTION` */
  pauseAll(filter: LiveFilter): Promise<number>;
  /** Resumes all paused runs that fit, and answers how many. @throws {PawlError} `INVALID_OPTION` */
  resumeAll(filter: LiveFilter): Promise<number>;
  /**
   * Which patches the runs of a workflow have come by, the oldest first, and whether the old side of each can go.
   * @throws {PawlError} `INVALID_OPTION`
   */
  patches(workflow: Pick<WorkflowRef, "name" | "version">): Promise<readonly PatchView[]>;
  /** Workers that are registered, and those that ended within the last hour; newest first, 1,000 at most. */
  workers(): Promise<readonly WorkerView[]>;
  /** Whoever still waits for a result gets `CLOSED`. The runs go on. */
  close(): Promise<void>;
}

export function createClient(deps: ClientDeps): Client {
  const connection = createConnection(deps);
  const { store, payloads, call } = connection;
  const ends = createEndWatch(deps, deps.takers);
  deps.audiences?.add(ends);
  const starting = createStarting(connection);
  const chains = createChains(connection);
  const tell = createTell(connection, chains);
  const telling = createTelling(tell);
  const updating = createUpdating(deps, connection, tell);
  const reading = createReading(connection, chains);
  const operating = createOperating(connection, chains);
  const retry = createRetrying(connection, chains);
  const fork = createForking(connection);
  const signalOrStart = createSignalOrStart(connection);
  const showing = createShowing(connection);
  const streaming = createStreaming(deps, connection);

  /** Waits for the end of the run, or of the last one that goes on from it. */
  const awaitResult = async (runId: RunId, options: ResultOptions): Promise<unknown> => {
    const { signal } = checkOptions("result", options, { signal: checkAbortSignal });
    assertRunId(runId);
    // The watch asks the store by itself, and for ever.
    await connection.open();
    for (let at = runId; ;) {
      const end = await ends.wait(at, signal);
      if (end.chainEnd === undefined) return resultOf(at, end, payloads);
      at = end.chainEnd;
    }
  };

  const handleParts = { awaitResult, reading, telling, operating, updating, showing, streaming, retry, fork };
  /** The types are the caller's word: nothing can check at run time what a run will return. */
  const makeHandle = <Ref extends WorkflowRef>(runId: RunId, workflow?: Ref) =>
    new UntypedHandle(runId, workflow, handleParts) as unknown as RunHandle<
      OutputOf<Ref>,
      SignalsOf<Ref>,
      PublishedOf<Ref>,
      UpdatesOf<Ref>
    >;
  const handle = <Ref extends WorkflowRef>(runId: RunId, workflow?: Ref) => {
    assertText(runId);
    if (workflow !== undefined) assertWorkflow("handle", workflow);
    return makeHandle(runId, workflow);
  };

  return {
    async start(workflow, ...[input, options]) {
      return makeHandle(await starting.start(workflow, input, options), workflow);
    },
    async startMany(workflow, items, options) {
      const runIds = await starting.startMany(workflow, items, options);
      return runIds.map((runId) => makeHandle(runId, workflow));
    },
    async signalOrStart(workflow, options) {
      return makeHandle(await signalOrStart(workflow, options), workflow);
    },
    handle,
    get: (runId) => reading.get(runId),
    list: (filter) => reading.list(filter),
    async *listAll(filter = {}) {
      for (let before: RunId | undefined; ;) {
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
    ...createByFilter(connection, reading.find, tell),
    retry,
    redrive: (runId) => retry(runId),
    fork: async (runId, options) => makeHandle(await fork(runId, options)),
    update: (runId, name, payload, options) => updating.update(runId, name, payload, options),
    stream: (runId, name, options) => streaming.read(runId, name, options),
    published: ((runId: RunId, key?: string) => showing.published(runId, key)) as Client["published"],
    async patches(workflow) {
      const { name, version } = readPatchedWorkflow(workflow);
      return (await call(() => store.listPatches(name, version))).map(readPatch);
    },
    async workers() {
      const filter = { endedWithinMs: 3_600_000, limit: 1_000 };
      return (await call(() => store.listWorkers(filter))).map((record) => readWorker(record, payloads));
    },
    async close() {
      connection.close();
      await Promise.all([ends.close(), updating.close(), streaming.close()]);
    },
  };
}
