import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Duration } from "../core/duration.ts";
import type { RunId } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { PublishedSchemas, SignalSchemas, UpdateSchemas, WorkflowRef } from "../core/workflow-ref.ts";
import type { StepContext } from "./step-context.ts";

/** Which run the code is in. */
export interface RunIdentity {
  readonly id: RunId;
  readonly workflow: string;
  readonly version: number;
  /** Number of this execution, from 1: one more after each failed or crashed attempt. */
  readonly attempt: number;
  readonly key: string | null;
  readonly parentId: RunId | null;
}

export interface CallOptions {
  /** Default: the child workflow's own queue. */
  readonly queue?: string;
  /** Lower goes first. Default 0. */
  readonly priority?: number;
}

export interface TimeoutOption {
  /** Gives up after this long. */
  readonly timeout: Duration;
}

/**
 * What a workflow's code asks of Pawl. Every request is durable: once answered, it is answered the same way in every
 * later execution of the run. Use `Promise.all`, `race` and `allSettled` over requests as you like, but await nothing
 * else that takes time: put that into a step. Await every request: a run that returns does not wait for the others.
 */
export interface Context<
  Signals extends SignalSchemas = SignalSchemas,
  Published extends PublishedSchemas = PublishedSchemas,
  Updates extends UpdateSchemas = UpdateSchemas,
> {
  readonly run: RunIdentity;
  /** Says nothing while a history is replayed. */
  readonly log: Log;
  /**
   * Calls the function and records what it returns, or throws. A recorded result is final: that step never runs again.
   * The result may be JSON, `undefined`, `bigint`, `NaN`, `-0`, a `Date`, `Map`, `Set`, `Uint8Array`, `Buffer` or `Error`,
   * nested as you like, of at most 1 MiB unless `createPawl` says otherwise. What the code gets is a copy read back from
   * the record; an error that is thrown keeps its name, message, stack, code and cause, but not its class.
   * @throws {PawlError} `INVALID_PAYLOAD` if the result cannot be recorded exactly; it is not tried again
   */
  step<T>(name: string, call: (step: StepContext) => T | Promise<T>): Promise<T>;
  /** Waits, without a process if it takes long. */
  sleep(duration: Duration): Promise<void>;
  /** Waits until this instant (a date, or ms since 1970); one in the past is over at once. */
  sleepUntil(instant: Date | number): Promise<void>;
  /** Takes the oldest signal of this name that nobody has taken; null when the timeout is over first. */
  readonly waitForSignal: WaitForSignal<Signals>;
  /**
   * Starts a child run and waits for its output.
   * @throws {PawlError} `RUN_FAILED` with the child's error as `cause`; `RUN_CANCELLED`, `RUN_TIMED_OUT`, `RUN_EXPIRED`
   */
  call<Input, Output>(workflow: WorkflowRef<Input, Output>, ...args: CallArguments<Input>): Promise<Output>;
  /**
   * Calls the function with a context of its own, in which requests are named and numbered apart from all others. Chains
   * that run in parallel and use the same names each need one, so that every request keeps its name whichever is faster.
   */
  scope<T>(name: string, call: (ctx: Context<Signals, Published, Updates>) => Promise<T> | T): Promise<T>;
  /**
   * Shows a value to whoever asks with `run.published(key)`, also after the run has ended. A later value under the same
   * key, from whatever scope, replaces it.
   * @throws {PawlError} `INVALID_PAYLOAD` if its schema refuses it, or it cannot be recorded exactly; `INVALID_NAME`
   */
  readonly publish: Publish<Published>;
  /**
   * A stream of the run, which others read with `run.stream(name)` while it is written, and after. What the code writes is
   * written once, however often the run crashes. In a step, use the `stream` that its function is given.
   * @throws {PawlError} `INVALID_NAME`
   */
  stream<Value = unknown>(name: string): StreamWriter<Value>;
  /**
   * From now on calls the handler for each update of this name that others send with `run.update`, in the order sent, and
   * gives them what it returns or throws. Handlers run beside the code, and beside each other: each call has a context of its
   * own, in which requests are named apart, and uses that one alone. Updates wait until a handler is registered: do it
   * first. A run that returns first lets the handlers that have begun come to their end; updates that it has not received
   * by then are refused with `RUN_ENDED`.
   * @throws {PawlError} `INVALID_NAME`; `INVALID_OPTION` where the update has a handler already
   */
  readonly onUpdate: OnUpdate<Signals, Published, Updates>;
  /** The time of the last record the code was given, in ms: use it instead of `Date.now()`. */
  now(): number;
  /** In [0, 1), the same in every execution of the run: use it instead of `Math.random()`. */
  random(): number;
  /** A uuid v4, the same in every execution of the run. */
  uuid(): string;
}

/** Writes to a stream from the workflow's code. */
export interface StreamWriter<Value = unknown> {
  /** Resolves when it is stored. @throws {PawlError} `INVALID_PAYLOAD`, `STREAM_CLOSED` */
  write(value: Value): Promise<void>;
  /** Ends the stream for its readers, and for good. It also ends with its run. @throws {PawlError} `STREAM_CLOSED` */
  close(): Promise<void>;
}

/** The input may be left out where `undefined` is one. */
type CallArguments<Input> = undefined extends Input
  ? [input?: Input, options?: CallOptions]
  : [input: Input, options?: CallOptions];

type Publish<Published extends PublishedSchemas> = string extends keyof Published
  ? (key: string, value: unknown) => Promise<void>
  : <Key extends keyof Published & string>(
      key: Key,
      value: StandardSchemaV1.InferInput<Published[Key]>,
    ) => Promise<void>;

type OnUpdate<
  Signals extends SignalSchemas,
  Published extends PublishedSchemas,
  Updates extends UpdateSchemas,
> = string extends keyof Updates
  ? <Payload = unknown>(
      name: string,
      handler: (payload: Payload, ctx: Context<Signals, Published, Updates>) => unknown,
    ) => void
  : <Name extends keyof Updates & string>(
      name: Name,
      handler: (
        payload: StandardSchemaV1.InferOutput<Updates[Name]["input"]>,
        ctx: Context<Signals, Published, Updates>,
      ) => ReturnedAnswer<Updates, Name> | Promise<ReturnedAnswer<Updates, Name>>,
    ) => void;

type ReturnedAnswer<Updates extends UpdateSchemas, Name extends keyof Updates> = Updates[Name] extends {
  readonly output: infer Output extends StandardSchemaV1;
}
  ? StandardSchemaV1.InferInput<Output>
  : unknown;

type WaitForSignal<Signals extends SignalSchemas> = string extends keyof Signals
  ? WaitForAny
  : WaitFor<Signals>;

interface WaitFor<Signals extends SignalSchemas> {
  <Name extends keyof Signals & string>(name: Name): Promise<StandardSchemaV1.InferOutput<Signals[Name]>>;
  <Name extends keyof Signals & string>(
    name: Name,
    options: TimeoutOption,
  ): Promise<StandardSchemaV1.InferOutput<Signals[Name]> | null>;
}

interface WaitForAny {
  <T = unknown>(name: string): Promise<T>;
  <T = unknown>(name: string, options: TimeoutOption): Promise<T | null>;
}
