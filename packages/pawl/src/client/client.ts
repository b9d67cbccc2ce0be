import type { Clock } from "../core/clock.ts";
import { encode } from "../core/codec.ts";
import { PawlError } from "../core/error.ts";
import { isRunId, type Ids, type RunId } from "../core/ids.ts";
import type { LoopSeams } from "../core/loop.ts";
import { assertName } from "../core/name.ts";
import { checkInteger, checkOneOf, checkOptions, checkText, type Check } from "../core/options.ts";
import { retryUnavailable } from "../core/retry-unavailable.ts";
import { endStatuses, type RunStatus } from "../core/run-status.ts";
import { parseWith } from "../core/schema.ts";
import { assertTransaction, invalidTransaction, type Transaction } from "../core/transaction.ts";
import {
  assertWorkflow,
  type InputOf,
  type OutputOf,
  type SignalSchemas,
  type SignalsOf,
  type WorkflowRef,
} from "../core/workflow-ref.ts";
import type { CallersStore } from "../store/callers-store.ts";
import type { NewMessage, TellAnswer, Topic } from "../store/message.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { Store } from "../store/store.ts";
import { createEndWatch } from "./end-watch.ts";
import { describeRun, timeRun } from "./new-run.ts";
import type { CancelOptions, RunHandle, SignalOptions } from "./run-handle.ts";
import { resultOf } from "./run-result.ts";
import { readEvent, readRun, type Run } from "./run.ts";
import { checkStartOptions, type StartOptions } from "./start-options.ts";

export interface ClientDeps extends LoopSeams {
  readonly store: Store;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly ids: Ids;
  /** Awaited before every call to the store. Default: nothing is. */
  readonly ready?: () => Promise<void>;
  /** The store inside a caller's transaction. Default: it has none. */
  readonly within?: (tx: Transaction) => CallersStore;
}

interface Place extends Pick<Store, "createRuns" | "tell"> {
  learn(): Promise<void>;
}

/** What `start` takes after the workflow: an input that may be undefined may be left out. */
export type StartArguments<Input> = undefined extends Input
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions];

export interface ListFilter {
  readonly status?: RunStatus;
  readonly workflow?: string;
  readonly queue?: string;
  /** Only runs older than this one: the last of the page before. */
  readonly before?: RunId;
  /** Default 100, at most 1000. */
  readonly limit?: number;
}

/** Everything that can be asked of runs from outside. Calls that fail with `STORE_UNAVAILABLE` may have happened. */
export interface Client {
  /**
   * Starts a run. With a key it is idempotent: the second start answers the first one's run.
   * @throws {PawlError} `KEY_CONFLICT`, `INVALID_PAYLOAD`, `INVALID_OPTION`, `INVALID_TRANSACTION`, `STORE_UNAVAILABLE`
   */
  start<Ref extends WorkflowRef>(
    workflow: Ref,
    ...rest: StartArguments<InputOf<Ref>>
  ): Promise<RunHandle<OutputOf<Ref>, SignalsOf<Ref>>>;
  /** A handle to a run by its id alone. Does not look whether it exists. */
  handle<Ref extends WorkflowRef = WorkflowRef>(
    runId: RunId,
    workflow?: Ref,
  ): RunHandle<OutputOf<Ref>, SignalsOf<Ref>>;
  /** The run as it is now, or null where there is none. */
  get(runId: RunId): Promise<Run | null>;
  /** Newest first, a page at a time. */
  list(filter?: ListFilter): Promise<readonly Run[]>;
  /** @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  signal(runId: RunId, name: string, payload?: unknown, options?: SignalOptions): Promise<void>;
  /**
   * Asks the run to stop. Does nothing once it has ended. A step that ignores its `AbortSignal` is given up after 30 s.
   * @param options a text is the reason
   * @throws {PawlError} `RUN_NOT_FOUND`
   */
  cancel(runId: RunId, options?: string | CancelOptions): Promise<void>;
  /** Keeps the run from going on until it is resumed; a step in progress ends first. @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  pause(runId: RunId): Promise<void>;
  /** @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  resume(runId: RunId): Promise<void>;
  /** Whoever still waits for a result gets `CLOSED`. The runs go on. */
  close(): Promise<void>;
}

const checkRunId: Check = (value) =>
  typeof value === "string" && isRunId(value) ? null : "must be the id of a run";
const checkReason: Check = (value) => (typeof value === "string" ? null : "must be a text");
const checkAbortSignal: Check = (value) =>
  typeof value === "object" && value !== null && "aborted" in value ? null : "must be an AbortSignal";
const statuses: readonly RunStatus[] = ["pending", "running", "waiting", "paused", "blocked", ...endStatuses];

export function createClient(deps: ClientDeps): Client {
  const { store, storeClock, ids } = deps;
  const ends = createEndWatch(deps);
  let isClosed = false;

  const call = <Answer>(act: () => Promise<Answer>): Promise<Answer> => {
    if (isClosed) return Promise.reject(new PawlError("CLOSED", "This Pawl is closed; make a new one."));
    return retryUnavailable(deps, async () => {
      await deps.ready?.();
      return act();
    });
  };

  /** Where a call goes: to the store, or into the caller's transaction, where nothing can be tried again. */
  const placeOf = (tx: Transaction | undefined): Place => {
    if (tx === undefined)
      return {
        learn: () => call(() => storeClock.learn()),
        createRuns: (runs) => call(() => store.createRuns(runs)),
        tell: (message) => call(() => store.tell(message)),
      };
    if (deps.within === undefined)
      throw invalidTransaction("There are no transactions in memory: leave tx out, or use a Postgres.");
    const within = deps.within(tx);
    return {
      async learn() {
        await call(() => Promise.resolve());
        await storeClock.learn(() => within.now());
      },
      createRuns: (runs) => within.createRuns(runs),
      tell: (message) => within.tell(message),
    };
  };

  const start = async (workflow: WorkflowRef, input: unknown, options: StartOptions = {}): Promise<RunId> => {
    assertWorkflow("start", workflow);
    checkStartOptions(options);
    const described = await describeRun(workflow, input, options);
    const place = placeOf(options.tx);
    await place.learn();
    // Made once: however often the call is repeated, it creates one run.
    const run = timeRun(described, ids.next(), storeClock.now(), workflow, options);
    const [answer] = await place.createRuns([run]);
    if (answer === undefined)
      throw new PawlError("INTERNAL", "The store did not answer for a new run. Please report this.");
    if (answer.kind === "created") return answer.id;
    if (answer.kind === "existing" && options.onConflict !== "reject") return answer.id;
    const difference = answer.kind === "existing" ? "" : ", which has another workflow, version or input";
    throw new PawlError(
      "KEY_CONFLICT",
      `The key "${options.key}" belongs to run ${answer.id}${difference}.`,
      {
        key: options.key,
        runId: answer.id,
      },
    );
  };

  const tell = async (
    runId: RunId,
    topic: Topic,
    data: unknown,
    { idempotencyKey, tx }: SignalOptions = {},
  ): Promise<TellAnswer> => {
    if (tx !== undefined) assertTransaction(topic === "cancel" ? "cancel" : "signal", tx);
    if (!isRunId(runId)) throw notFound(runId);
    if (idempotencyKey !== undefined) assertName("idempotency key", idempotencyKey);
    const payload = encode(data);
    const place = placeOf(tx);
    await place.learn();
    const message: NewMessage = {
      id: ids.next(),
      runId,
      topic,
      data: payload,
      idempotencyKey: idempotencyKey ?? null,
    };
    const answer = await place.tell(message);
    if (answer === "missing") throw notFound(runId);
    return answer;
  };

  const tellLive = async (
    runId: RunId,
    topic: Topic,
    data?: unknown,
    options?: SignalOptions,
  ): Promise<void> => {
    const answer = await tell(runId, topic, data, options);
    if (answer === "ended")
      throw new PawlError("RUN_ENDED", `Run ${runId} has ended and takes no more messages.`, { runId });
  };

  const signal: Client["signal"] = async (runId, name, payload, options = {}) => {
    assertName("signal", name);
    checkOptions("signal", options, { idempotencyKey: checkText, tx: () => null });
    await tellLive(runId, `signal:${name}`, payload, options);
  };

  const cancel: Client["cancel"] = async (runId, options = {}) => {
    const given: CancelOptions = typeof options === "string" ? { reason: options } : options;
    checkOptions("cancel", given, { reason: checkReason, tx: () => null });
    const { reason, tx } = given;
    await tell(runId, "cancel", { reason: reason ?? null }, tx === undefined ? {} : { tx });
  };

  const get: Client["get"] = async (runId) => {
    const record = isRunId(runId) ? await call(() => store.getRun(runId)) : null;
    return record === null ? null : readRun(record);
  };

  const untypedHandle = (runId: RunId, workflow?: WorkflowRef): RunHandle => ({
    id: runId,
    async status() {
      const run = await get(runId);
      if (run === null) throw notFound(runId);
      return run.status;
    },
    async result(options = {}) {
      checkOptions("result", options, { signal: checkAbortSignal });
      if (!isRunId(runId)) throw notFound(runId);
      // The watch asks the store by itself, and for ever.
      await call(() => Promise.resolve());
      return resultOf(runId, await ends.wait(runId, options.signal));
    },
    async signal(name, payload, options) {
      await checkSignal(workflow?.signalSchemas ?? null, name, payload);
      await signal(runId, name, payload, options);
    },
    cancel: (options) => cancel(runId, options),
    async history() {
      if (!isRunId(runId)) throw notFound(runId);
      const events = await call(() => store.loadHistory(runId, 0));
      if (events.length === 0 && (await get(runId)) === null) throw notFound(runId);
      return events.map(readEvent);
    },
  });

  /** The types are the caller's word: nothing can check at run time what a run will return. */
  const handle = <Ref extends WorkflowRef>(runId: RunId, workflow?: Ref) =>
    untypedHandle(runId, workflow) as unknown as RunHandle<OutputOf<Ref>, SignalsOf<Ref>>;

  return {
    async start(workflow, ...[input, options]) {
      return handle(await start(workflow, input, options), workflow);
    },
    handle,
    get,
    async list(filter = {}) {
      checkOptions("list", filter, {
        status: checkOneOf(...statuses),
        workflow: checkText,
        queue: checkText,
        before: checkRunId,
        limit: checkInteger(1, 1_000),
      });
      const records = await call(() => store.listRuns({ limit: 100, ...filter }));
      return records.map(readRun);
    },
    signal,
    cancel,
    pause: (runId) => tellLive(runId, "pause"),
    resume: (runId) => tellLive(runId, "resume"),
    async close() {
      isClosed = true;
      await ends.close();
    },
  };
}

/** The run parses what it receives, whoever sent it; this only tells the sender early. */
async function checkSignal(schemas: SignalSchemas | null, name: string, payload: unknown): Promise<void> {
  if (schemas === null) return;
  const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
  if (schema === undefined) {
    throw new PawlError("INVALID_NAME", `The workflow declares no signal "${name}".`, {
      name,
      known: Object.keys(schemas),
    });
  }
  await parseWith(schema, payload, `signal "${name}"`);
}

function notFound(runId: RunId): PawlError {
  return new PawlError("RUN_NOT_FOUND", `There is no run ${runId}.`, { runId });
}
