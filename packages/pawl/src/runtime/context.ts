import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Duration } from "../core/duration.ts";
import type { RunId } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { RetryOptions } from "../core/retry.ts";
import type {
  InputOf,
  PublishedSchemas,
  SignalSchemas,
  UpdateSchemas,
  WorkflowRef,
} from "../core/workflow-ref.ts";
import type { OwnTransaction } from "../store/holder-transactions.ts";
import type { ContinueOptions } from "./continue-as.ts";
import type { StepContext } from "./step-context.ts";
import type { StepOptions } from "./step-options.ts";
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

/** What `ctx.call` takes after the input. */
export interface CallOptions {
  /** Default: the child workflow's own queue. */
  readonly queue?: string;
  /** Lower goes first. Default 0. */
  readonly priority?: number;
  /** How long the child may take, beside what its workflow and its parent's deadline allow. Default: as they say. */
  readonly timeout?: Duration;
  /** The child ends as `expired` unless a worker has begun it by then. Default: never. */
  readonly expiresIn?: Duration;
  /** Replaces the child workflow's policy as a whole, all but its `retryIf`. Default: as that says. */
  readonly retry?: RetryOptions;
  /** Default: none. */
  readonly tags?: readonly string[];
}

/** What `ctx.start` takes after the input. */
export interface StartChildOptions extends CallOptions {
  /** True: it goes on when its parent fails, is cancelled or times out, and has a deadline of its own. Default false. */
  readonly detached?: boolean;
}

/** A child that was started. */
export interface ChildHandle<Output = unknown> {
  readonly id: RunId;
  /**
   * Waits for its output.
   * @throws {PawlError} `RUN_FAILED` with the child's error as `cause`; `RUN_CANCELLED`, `RUN_TIMED_OUT`, `RUN_EXPIRED`
   */
  result(): Promise<Output>;
}

/** What `ctx.map` takes after its function. */
export interface MapOptions {
  /** How many items are worked on at a time. Default 100. */
  readonly concurrency?: number;
}

/** What takes part in a race: what a request of the context returned, or a function that may make several. */
export type Racer<Ctx = Context> = Promise<unknown> | ((ctx: Ctx) => unknown);

/** Which branch of a race was first, and what it brought. */
export type RaceResult<Racers> = {
  [Name in keyof Racers & string]: {
    readonly winner: Name;
    readonly value: Awaited<Racers[Name] extends (...args: never[]) => infer Answer ? Answer : Racers[Name]>;
  };
}[keyof Racers & string];

/** What `ctx.waitForSignal` takes after the name. */
export interface TimeoutOption {
  /** Gives up after this long. */
  readonly timeout: Duration;
}

/**
 * What a workflow's code asks of Pawl. Every request is durable: once answered, it is answered the same way in every
 * later execution of the run. Use `Promise.all` and `allSettled` over requests as you like, and `ctx.race` rather than
 * `Promise.race`, whose losers go on. Await nothing else that takes time: put that into a step. Await every request: a run
 * that returns does not wait for the others. Once the run is to stop, every request rejects with `RUN_CANCELLED` or
 * `RUN_TIMED_OUT`; in a branch that lost a race, with `WITHDRAWN`.
 */
export interface Context<
  Signals extends SignalSchemas = SignalSchemas,
  Published extends PublishedSchemas = PublishedSchemas,
  Updates extends UpdateSchemas = UpdateSchemas,
> {
  /** Which run this is. */
  readonly run: RunIdentity;
  /** Says nothing while a history is replayed. */
  readonly log: Log;
  /**
   * Calls the function and records what it returns, or throws. A recorded result is final: that step never runs again.
   * The result may be JSON, `undefined`, `bigint`, `NaN`, `-0`, a `Date`, `Map`, `Set`, `Uint8Array`, `Buffer` or `Error`,
   * nested as you like, of at most 1 MiB unless `createPawl` says otherwise. What the code gets is a copy read back from
   * the record; an error that is thrown keeps its name, message, stack, code and cause, but not its class.
   * @throws {PawlError} `INVALID_PAYLOAD` if the result cannot be recorded exactly; it is not tried again. `STEP_TIMED_OUT`
   * and `STEP_CRASHED` as the options say; `INVALID_OPTION`
   */
  step<T>(
    name: string,
    call: (step: StepContext) => T | Promise<T>,
    options?: StepOptions<NoInfer<T>, Published>,
  ): Promise<T>;
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
  /**
   * Waits by the database's clock, never too short, for months if need be; without a process or a connection if it takes
   * long. @throws {PawlError} `INVALID_OPTION`
   */
  sleep(duration: Duration): Promise<void>;
  /** Waits until this instant (a date, or ms since 1970); one in the past is over at once. @throws {PawlError} `INVALID_OPTION` */
  sleepUntil(instant: Date | number): Promise<void>;
  /**
   * Takes the oldest signal of this name that nobody has taken; null when the timeout is over first. One that came before
   * is not lost. Which of the two was first is a recorded fact. @throws {PawlError} `INVALID_NAME`, `INVALID_OPTION`
   */
  readonly waitForSignal: WaitForSignal<Signals>;
  /**
   * Starts a child run and waits for its output.
   * @throws {PawlError} `RUN_FAILED` with the child's error as `cause`; `RUN_CANCELLED`, `RUN_TIMED_OUT`, `RUN_EXPIRED`;
   * `INVALID_PAYLOAD`, `INVALID_OPTION`
   */
  call<Input, Output>(workflow: WorkflowRef<Input, Output>, ...args: CallArguments<Input>): Promise<Output>;
  /**
   * Starts a child run and goes on. A child whose end nobody awaits goes on when its parent completes; when its parent
   * fails, is cancelled or times out it is cancelled, unless it is detached. @throws {PawlError} `INVALID_PAYLOAD`,
   * `INVALID_OPTION`
   */
  start<Input, Output>(
    workflow: WorkflowRef<Input, Output>,
    ...args: StartChildArguments<Input>
  ): Promise<ChildHandle<Output>>;
  /**
   * Calls the function for every item, some at a time, each with a context of its own, and answers the results in order.
   * Once one has failed no other begins. @throws {PawlError} `INVALID_NAME`, `INVALID_OPTION`; what the function throws
   */
  map<Item, Result>(
    name: string,
    items: readonly Item[],
    call: (item: Item, ctx: Context<Signals, Published, Updates>, index: number) => Promise<Result> | Result,
    options?: MapOptions,
  ): Promise<Result[]>;
  /**
   * The first of several branches, whether it succeeds or fails. The others are withdrawn: their waits take no more
   * signals, their timers never fire, their children are cancelled, their steps are told to stop; code that still awaits
   * such a request gets the error `WITHDRAWN`. A branch that makes more than one request is a function, and has a context of
   * its own.
   * @example
   * const first = await ctx.race({ paid: ctx.waitForSignal("paid"), late: ctx.sleep("3d") });
   * if (first.winner === "paid") await ctx.step("ship", () => ship(first.value));
   */
  race<const Racers extends Readonly<Record<string, Racer<Context<Signals, Published, Updates>>>>>(
    racers: Racers,
  ): Promise<RaceResult<Racers>>;
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
   * Waits for an operator: the run is `paused`, as by `run.pause()`, until `run.resume()` or `pawl.resume(id)`. Steps in
   * progress end, and children go on; nothing new begins, and no timer fires.
   * @param reason for whoever looks, in the run's history
   */
  pause(reason?: string): Promise<void>;
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
  /**
   * Ends this run and goes on as a new one of the same workflow: for loops without an end, whose history would grow for
   * ever. The code stops here, and the promise never settles. The new run has this one's key, parent, tags, queue, deadline
   * and unread signals, and a handle of this one follows to it. Children that still run are not waited for.
   * @throws {PawlError} `INVALID_OPTION`, `INVALID_PAYLOAD`, and what the input's schema says
   * @example
   * for (let n = 0; n < 100; n++) await ctx.step("poll", poll);
   * return ctx.continueAs(input);
   */
  continueAs<Ref extends WorkflowRef>(input: InputOf<Ref>, workflow: Ref): Promise<never>;
  continueAs(input?: unknown, options?: ContinueOptions): Promise<never>;
  /**
   * Parks the run as `blocked` and says why: for code that reads a description, and finds that it no longer has the place where
   * the run stands. Nothing has failed: the run is tried again by itself, and at once when a worker is started, as a deploy
   * does. The code stops here, and the promise never settles.
   * @throws {PawlError} `INVALID_OPTION`, `INVALID_PAYLOAD`
   */
  block(reason: string): Promise<never>;
  /**
   * Changes code under running workflows: true where the run may take the new side. A run that comes here for the first
   * time takes it, and so it does in every later execution. One that was past this place before the change came stays on
   * the old side. Both sides stay in the code until `pawl.patches` says that no run needs the old one.
   * @throws {PawlError} `INVALID_NAME`
   * @example
   * if (ctx.patch("charge-in-euro")) await ctx.step("charge-euro", chargeEuro);
   * else await ctx.step("charge", charge);
   */
  patch(id: string): boolean;
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

type StartChildArguments<Input> = undefined extends Input
  ? [input?: Input, options?: StartChildOptions]
  : [input: Input, options?: StartChildOptions];
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
