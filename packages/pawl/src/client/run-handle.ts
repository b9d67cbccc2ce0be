import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { RunId } from "../core/ids.ts";
import type { RunStatus } from "../core/run-status.ts";
import type { Transaction } from "../core/transaction.ts";
import type { SignalSchemas } from "../core/workflow-ref.ts";
import type { HistoryEvent } from "./run.ts";

export interface ResultOptions {
  /** Stops the waiting, not the run. */
  readonly signal?: AbortSignal;
}

export interface SignalOptions {
  /** The sender's retries with one key are one signal. Default: none, every call sends one. */
  readonly idempotencyKey?: string;
  /** A transaction of yours: the signal is sent only once it commits. Default: it is sent at once. */
  readonly tx?: Transaction;
}

export interface CancelOptions {
  /** Kept in the run's history. Default: none. */
  readonly reason?: string;
  /** A transaction of yours: the run is asked only once it commits. Default: it is asked at once. */
  readonly tx?: Transaction;
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

/** A run as its caller sees it. */
export interface RunHandle<Output = unknown, Signals extends SignalSchemas = SignalSchemas> {
  readonly id: RunId;
  /** @throws {PawlError} `RUN_NOT_FOUND` */
  status(): Promise<RunStatus>;
  /**
   * Waits for the run to end and returns its output. Waits for ever by default, since a run may last months.
   * @throws {PawlError} `RUN_FAILED` with the run's error as `cause`; `RUN_CANCELLED`, `RUN_TIMED_OUT`, `RUN_EXPIRED`;
   * `RUN_NOT_FOUND`
   */
  result(options?: ResultOptions): Promise<Output>;
  /**
   * Sends a signal. Signals wait until the run asks for them, in the order sent.
   * @throws {PawlError} `RUN_ENDED` when the run can no longer receive it
   */
  signal<Name extends SignalName<Signals>>(
    name: Name,
    ...rest: SignalArguments<SignalPayload<Signals, Name>>
  ): Promise<void>;
  /**
   * Asks the run to stop: its steps' signals abort, and it ends as `cancelled` once they have returned. A step that
   * ignores its `AbortSignal` is given up 30 s after the abort. Does nothing once the run has ended.
   * @param options a text is the reason
   * @throws {PawlError} `RUN_NOT_FOUND`
   */
  cancel(options?: string | CancelOptions): Promise<void>;
  /** Everything that has happened to it, oldest first. @throws {PawlError} `RUN_NOT_FOUND` */
  history(): Promise<readonly HistoryEvent[]>;
}
