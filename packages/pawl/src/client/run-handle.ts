import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { RunId } from "../core/ids.ts";
import type { RunStatus } from "../core/run-status.ts";
import type { PublishedSchemas, SignalSchemas, UpdateSchemas } from "../core/workflow-ref.ts";
import type { Attempt } from "./attempt.ts";
import type { ForkOptions } from "./fork-options.ts";
import type { NodeView } from "./node-view.ts";
import type { RescheduleOptions } from "./operating.ts";
import type { RunRetryOptions } from "./retrying.ts";
import type { HistoryEvent } from "./run.ts";
import type { StreamItem, StreamOptions } from "./streaming.ts";
import type { CancelOptions, SignalOptions } from "./telling.ts";
import type { UpdateOptions } from "./updating.ts";

/** What `result` takes. */
export interface ResultOptions {
  /** Stops the waiting, not the run. Default: waits for ever. */
  readonly signal?: AbortSignal;
}

/** The signals that may be sent by name; any name where the workflow declares none. */
export type SignalName<Signals extends SignalSchemas> = keyof Signals & string;

/** What a signal of this name carries. */
export type SignalPayload<
  Signals extends SignalSchemas,
  Name extends SignalName<Signals>,
> = string extends keyof Signals ? unknown : StandardSchemaV1.InferInput<Signals[Name]>;

/** What `signal` takes after the name: a payload that may be undefined may be left out. */
export type SignalArguments<Payload> = undefined extends Payload
  ? [payload?: Payload, options?: SignalOptions]
  : [payload: Payload, options?: SignalOptions];

/** What is published under a key. */
export type PublishedValue<
  Published extends PublishedSchemas,
  Key extends keyof Published & string,
> = string extends keyof Published ? unknown : StandardSchemaV1.InferOutput<Published[Key]>;

interface ReadPublished<Published extends PublishedSchemas> {
  <Key extends keyof Published & string>(key: Key): Promise<PublishedValue<Published, Key> | undefined>;
  (): Promise<{ readonly [Key in keyof Published & string]?: PublishedValue<Published, Key> }>;
}

/** What an update of this name carries. */
export type UpdatePayload<
  Updates extends UpdateSchemas,
  Name extends keyof Updates & string,
> = string extends keyof Updates ? unknown : StandardSchemaV1.InferInput<Updates[Name]["input"]>;

/** What an update of this name is answered with. */
export type UpdateOutput<
  Updates extends UpdateSchemas,
  Name extends keyof Updates & string,
> = Updates[Name] extends { readonly output: infer Output extends StandardSchemaV1 }
  ? StandardSchemaV1.InferOutput<Output>
  : unknown;

/** What `update` takes after the name: a payload that may be undefined may be left out. */
export type UpdateArguments<Payload> = undefined extends Payload
  ? [payload?: Payload, options?: UpdateOptions]
  : [payload: Payload, options?: UpdateOptions];

/** A run as its caller sees it. Call its methods on it: taken from it, as by `const { result } = run`, they do not know their run. */
export interface RunHandle<
  Output = unknown,
  Signals extends SignalSchemas = SignalSchemas,
  Published extends PublishedSchemas = PublishedSchemas,
  Updates extends UpdateSchemas = UpdateSchemas,
> {
  readonly id: RunId;
  /** How it is now; does not wait. @throws {PawlError} `RUN_NOT_FOUND` */
  status(): Promise<RunStatus>;
  /**
   * Waits for the run to end and returns its output. Waits for ever by default, since a run may last months.
   * @throws {PawlError} `RUN_FAILED` with the run's error as `cause`; `RUN_CANCELLED`, `RUN_TIMED_OUT`, `RUN_EXPIRED`;
   * `RUN_NOT_FOUND`
   */
  result(options?: ResultOptions): Promise<Output>;
  /**
   * Sends a signal. Signals wait until the run asks for them, in the order sent.
   * @throws {PawlError} `RUN_ENDED` when the run can no longer receive it; `INVALID_PAYLOAD` if its schema refuses it;
   * `RUN_NOT_FOUND`, `INVALID_NAME`, `INVALID_OPTION`, `INVALID_TRANSACTION`
   */
  signal<Name extends SignalName<Signals>>(
    name: Name,
    ...rest: SignalArguments<SignalPayload<Signals, Name>>
  ): Promise<void>;
  /**
   * Asks something of the run, and waits for what the handler that its code registered with `ctx.onUpdate` returns. Updates
   * wait until there is one, in the order sent.
   * @throws {PawlError} `UPDATE_FAILED` with what the handler threw as `cause`; `INVALID_PAYLOAD` if the schema refuses it;
   * `RUN_ENDED` if the run ends, or has ended, without an answer; `UPDATE_TIMED_OUT`; `KEY_CONFLICT` if the idempotency key
   * is that of another message; `RUN_NOT_FOUND`, `INVALID_NAME`
   */
  update<Name extends keyof Updates & string>(
    name: Name,
    ...rest: UpdateArguments<UpdatePayload<Updates, Name>>
  ): Promise<UpdateOutput<Updates, Name>>;
  /**
   * Asks the run to stop: its steps' signals abort, its code comes to its end, what it did is undone, and it ends as
   * `cancelled`. A step that ignores its `AbortSignal` is given up 30 s after the abort. Its children are asked to stop
   * too, unless they are detached. Does nothing once the run has ended.
   * @param options a text is the reason: at most 1,000 characters; `result` rejects with it
   * @throws {PawlError} `RUN_NOT_FOUND`, `INVALID_OPTION`, `INVALID_PAYLOAD`, `INVALID_TRANSACTION`
   */
  cancel(options?: string | CancelOptions): Promise<void>;
  /** Ends it at once as `cancelled`, without its code, whoever holds it. @throws {PawlError} `RUN_NOT_FOUND` */
  terminate(reason?: string): Promise<void>;
  /** Keeps it from going on until it is resumed; a step in progress ends first. @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  pause(): Promise<void>;
  /** Lets a paused run go on where it was. @throws {PawlError} `RUN_NOT_FOUND`, `RUN_ENDED` */
  resume(): Promise<void>;
  /** Changes priority or time of a run that waits to be claimed. @throws {PawlError} `RUN_BEGUN`, `RUN_ENDED`, `RUN_NOT_FOUND` */
  reschedule(options: RescheduleOptions): Promise<void>;
  /**
   * Gives it another life if it ended otherwise than by completing, or however it ended with `from: "start"`. What it had
   * finished is kept, what failed is tried again. Does nothing to a run that lives.
   * @throws {PawlError} `RUN_ENDED`, `RUN_NOT_FOUND`, `INVALID_OPTION`
   */
  retry(options?: RunRetryOptions): Promise<void>;
  /** The same as `retry`, in the words of dead letters. */
  redrive(): Promise<void>;
  /** Starts a new run that goes on from a step of this one. @throws {PawlError} as `pawl.fork` */
  fork(options: ForkOptions): Promise<RunHandle<Output, Signals, Published, Updates>>;
  /** Its finished attempts, oldest first. @throws {PawlError} `RUN_NOT_FOUND` */
  attempts(): Promise<readonly Attempt[]>;
  /**
   * The nodes of its graph as they are now, in the order of their definition; none where its workflow was not made with `dag`.
   * @throws {PawlError} `RUN_NOT_FOUND`
   */
  nodes(): Promise<readonly NodeView[]>;
  /** Everything that has happened to it, oldest first. @throws {PawlError} `RUN_NOT_FOUND` */
  history(): Promise<readonly HistoryEvent[]>;
  /**
   * The last value that it published under this key, also once it has ended; undefined: none yet. Without a key, all of
   * them by key.
   * @throws {PawlError} `RUN_NOT_FOUND`; `INVALID_NAME` for a key that its workflow does not declare
   */
  readonly published: ReadPublished<Published>;
  /**
   * What the run writes to a stream, in order and as it is written, from the beginning or from a position. Ends when the stream
   * is closed or the run has ended; one that nobody has written to yet is waited for.
   * @throws {PawlError} from the iterator: `RUN_NOT_FOUND`, `INVALID_NAME`, `INVALID_OPTION`; `CLOSED` with its Pawl; the
   * reason of the signal
   */
  stream<Value = unknown>(name: string, options?: StreamOptions): AsyncGenerator<StreamItem<Value>, void>;
}
