import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Duration } from "../core/duration.ts";
import type { RunId } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { SignalSchemas, WorkflowRef } from "../core/workflow-ref.ts";
import type { OwnTransaction } from "../store/holder-transactions.ts";
import type { StepContext } from "./step-context.ts";
import type { TransactionOptions } from "./transaction-options.ts";

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
export interface Context<Signals extends SignalSchemas = SignalSchemas> {
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
  /**
   * Calls the function in a transaction, and commits what it wrote together with the step's record: exactly once. It may be
   * called again, after a conflict, a lost connection or a crash, but then the transaction before was rolled back. So let it
   * do nothing but query. What it returns is recorded as a step's result is, and shares their names.
   * @throws {PawlError} `TRANSACTION_ABORTED` if a query failed and the function went on, `INVALID_TRANSACTION`,
   *   `SCHEMA_MISSING` if `on` leads to another database
   * @example
   * await ctx.transaction("record", async (tx) => {
   *   await tx.query("insert into orders (id) values ($1)", [9182]);
   * });
   */
  transaction<T, Tx = OwnTransaction>(
    name: string,
    call: (tx: Tx, step: StepContext) => T | Promise<T>,
    options?: TransactionOptions<Tx>,
  ): Promise<T>;
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
  scope<T>(name: string, call: (ctx: Context<Signals>) => Promise<T> | T): Promise<T>;
  /** The time of the last record the code was given, in ms: use it instead of `Date.now()`. */
  now(): number;
  /** In [0, 1), the same in every execution of the run: use it instead of `Math.random()`. */
  random(): number;
  /** A uuid v4, the same in every execution of the run. */
  uuid(): string;
}

/** The input may be left out where `undefined` is one. */
type CallArguments<Input> = undefined extends Input
  ? [input?: Input, options?: CallOptions]
  : [input: Input, options?: CallOptions];

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
