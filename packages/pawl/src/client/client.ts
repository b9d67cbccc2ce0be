import type { Clock } from "../core/clock.ts";
import { PawlError } from "../core/error.ts";
import { isRunId, type Ids, type RunId } from "../core/ids.ts";
import type { LoopSeams } from "../core/loop.ts";
import { assertName } from "../core/name.ts";
import {
  checkInteger,
  checkName,
  checkOneOf,
  checkOptions,
  checkRunId,
  invalidOption,
  type Check,
} from "../core/options.ts";
import type { Emit } from "../core/pawl-event.ts";
import { placeOfMessage } from "../core/payload-codec.ts";
import { plainPayloads, type Payloads } from "../core/payloads.ts";
import { retryUnavailable } from "../core/retry-unavailable.ts";
import { endStatuses, type RunStatus } from "../core/run-status.ts";
import { parseWith } from "../core/schema.ts";
import {
  assertWorkflow,
  type InputOf,
  type OutputOf,
  type SignalSchemas,
  type SignalsOf,
  type WorkflowRef,
} from "../core/workflow-ref.ts";
import type { NewMessage, TellAnswer, Topic } from "../store/message.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { Store } from "../store/store.ts";
import { createEndWatch } from "./end-watch.ts";
import { describeRun, sealRun, timeRun } from "./new-run.ts";
import type { RunHandle, SignalOptions } from "./run-handle.ts";
import { resultOf } from "./run-result.ts";
import { readHistory, readRun, type Run } from "./run.ts";
import { readStartOptions, type StartOptions } from "./start-options.ts";
import { readWorker, type WorkerView } from "./worker-view.ts";

export interface ClientDeps extends LoopSeams {
  readonly store: Store;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly ids: Ids;
  /** Default: without a codec, up to 1 MiB. */
  readonly payloads?: Payloads;
  /** Awaited before every call to the store. Default: nothing is. */
  readonly ready?: () => Promise<void>;
  /** Is told what happens. Default: nobody is. */
  readonly emit?: Emit | undefined;
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
   * @throws {PawlError} `KEY_CONFLICT`, `INVALID_PAYLOAD`, `INVALID_OPTION`, `STORE_UNAVAILABLE`
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
  /** The run as it is now, or null where there is none. @throws {PawlError} `INVALID_OPTION` */
  get(runId: RunId): Promise<Run | null>;
  /** Newest first, a page at a time. */
  list(filter?: ListFilter): Promise<readonly Run[]>;
  /** @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  signal(runId: RunId, name: string, payload?: unknown, options?: SignalOptions): Promise<void>;
  /**
   * Asks the run to stop. Does nothing once it has ended. A step that ignores its `AbortSignal` is given up after 30 s.
   * @param reason at most 1,000 characters, for whoever awaits the run or looks at it
   * @throws {PawlError} `RUN_NOT_FOUND`, `INVALID_OPTION`, `INVALID_PAYLOAD`
   */
  cancel(runId: RunId, reason?: string): Promise<void>;
  /** Keeps the run from going on until it is resumed; a step in progress ends first. @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  pause(runId: RunId): Promise<void>;
  /** @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  resume(runId: RunId): Promise<void>;
  /** Workers that are registered, and those that ended within the last hour; newest first, 1,000 at most. */
  workers(): Promise<readonly WorkerView[]>;
  /** Whoever still waits for a result gets `CLOSED`. The runs go on. */
  close(): Promise<void>;
}

const checkAbortSignal: Check = (value) => {
  const { aborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function"
    ? null
    : "must be an AbortSignal";
};
const statuses: readonly RunStatus[] = ["pending", "running", "waiting", "paused", "blocked", ...endStatuses];

export function createClient(deps: ClientDeps): Client {
  const { store, storeClock, ids, payloads = plainPayloads } = deps;
  const ends = createEndWatch(deps);
  let isClosed = false;

  const call = <Answer>(act: () => Promise<Answer>): Promise<Answer> => {
    if (isClosed) return Promise.reject(new PawlError("CLOSED", "This Pawl is closed; make a new one."));
    return retryUnavailable(deps, async () => {
      await deps.ready?.();
      return act();
    });
  };

  const start = async (workflow: WorkflowRef, input: unknown, given: StartOptions = {}): Promise<RunId> => {
    assertWorkflow("start", workflow);
    const options = readStartOptions(given);
    const described = await describeRun(workflow, input, options, payloads);
    await call(() => storeClock.learn());
    // Made once: however often the call is repeated, it creates one run.
    const run = sealRun(timeRun(described, ids.next(), storeClock.now(), workflow, options), payloads);
    const [answer] = await call(() => store.createRuns([run]));
    if (answer === undefined)
      throw new PawlError("INTERNAL", "The store did not answer for a new run. Please report this.");
    if (answer.kind === "created") {
      const { id: runId, workflow: name, version, queue, key } = run;
      const at = new Date(storeClock.now());
      deps.emit?.({ kind: "run.started", at, runId, workflow: name, version, queue, key });
      return answer.id;
    }
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
    idempotencyKey?: string,
  ): Promise<TellAnswer> => {
    assertRunId(runId);
    const payload = payloads.encode(data, placeOfMessage(runId, topic), `The payload of ${topic}`);
    await call(() => storeClock.learn());
    const message: NewMessage = {
      id: ids.next(),
      runId,
      topic,
      data: payload,
      idempotencyKey: idempotencyKey ?? null,
    };
    const answer = await call(() => store.tell(message));
    if (answer === "missing") throw notFound(runId);
    return answer;
  };

  const tellLive = async (
    runId: RunId,
    topic: Topic,
    data?: unknown,
    idempotencyKey?: string,
  ): Promise<void> => {
    const answer = await tell(runId, topic, data, idempotencyKey);
    if (answer === "ended")
      throw new PawlError("RUN_ENDED", `Run ${runId} has ended and takes no more messages.`, { runId });
  };

  const signal: Client["signal"] = async (runId, name, payload, options = {}) => {
    assertName("signal", name);
    const { idempotencyKey } = checkOptions("signal", options, { idempotencyKey: checkName });
    await tellLive(runId, `signal:${name}`, payload, idempotencyKey);
  };

  const cancel: Client["cancel"] = async (runId, reason) => {
    checkReason(reason);
    await tell(runId, "cancel", { reason: reason ?? null });
  };

  const get: Client["get"] = async (runId) => {
    assertText(runId);
    const record = isRunId(runId) ? await call(() => store.getRun(runId)) : null;
    return record === null ? null : readRun(record, payloads);
  };

  const untypedHandle = (runId: RunId, workflow?: WorkflowRef): RunHandle => ({
    id: runId,
    async status() {
      const record = isRunId(runId) ? await call(() => store.getRun(runId)) : null;
      if (record === null) throw notFound(runId);
      return record.status;
    },
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
      await signal(runId, name, payload, options);
    },
    cancel: (reason) => cancel(runId, reason),
    async history() {
      assertRunId(runId);
      const events = await call(() => store.loadHistory(runId, 0));
      if (events.length === 0 && (await call(() => store.getRun(runId))) === null) throw notFound(runId);
      return readHistory(runId, events, payloads);
    },
  });

  /** The types are the caller's word: nothing can check at run time what a run will return. */
  const handle = <Ref extends WorkflowRef>(runId: RunId, workflow?: Ref) => {
    assertText(runId);
    if (workflow !== undefined) assertWorkflow("handle", workflow);
    return untypedHandle(runId, workflow) as unknown as RunHandle<OutputOf<Ref>, SignalsOf<Ref>>;
  };

  return {
    async start(workflow, ...[input, options]) {
      return handle(await start(workflow, input, options), workflow);
    },
    handle,
    get,
    async list(filter = {}) {
      const given = checkOptions("list", filter, {
        status: checkOneOf(...statuses),
        workflow: checkName,
        queue: checkName,
        before: checkRunId,
        limit: checkInteger(1, 1_000),
      });
      const page = await call(() => store.listRuns({ limit: 100, look: 10_000, ...given }));
      return page.runs.map((record) => readRun(record, payloads));
    },
    signal,
    cancel,
    pause: (runId) => tellLive(runId, "pause"),
    resume: (runId) => tellLive(runId, "resume"),
    async workers() {
      const filter = { endedWithinMs: 3_600_000, limit: 1_000 };
      return (await call(() => store.listWorkers(filter))).map(readWorker);
    },
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

/** Whatever else it may be, a text can be the id of a run that is not there. */
function assertText(runId: unknown): asserts runId is string {
  if (typeof runId !== "string")
    throw new PawlError("INVALID_OPTION", "The id of a run must be a string, such as a handle's id.");
}

function assertRunId(runId: unknown): asserts runId is RunId {
  assertText(runId);
  if (!isRunId(runId)) throw notFound(runId);
}

const longestReason = 1_000;

function checkReason(reason: unknown): void {
  if (reason === undefined) return;
  if (typeof reason !== "string" || reason.length > longestReason)
    throw invalidOption("cancel", "reason", `must be a text of at most ${longestReason} characters`);
}

function notFound(text: string): PawlError {
  const runId = text.slice(0, 80);
  return new PawlError("RUN_NOT_FOUND", `There is no run ${runId}.`, { runId });
}
