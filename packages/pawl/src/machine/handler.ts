import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Duration } from "../core/duration.ts";
import type { SignalSchemas } from "../core/workflow-ref.ts";
import type { StepContext, UndoContext } from "../runtime/step-context.ts";
import type { Outcome } from "./outcome.ts";
import type { Wake } from "./wake.ts";

/** What the signals of a machine carry, by name. */
export type SignalPayloads<Signals extends SignalSchemas> = {
  readonly [Name in keyof Signals]: StandardSchemaV1.InferOutput<Signals[Name]>;
};

/** A patch each key of which the state has; of the others it says that it does not. */
type PatchOf<Patch, State> = {
  readonly [Key in keyof Patch]: Key extends keyof State ? Patch[Key] : `The state has no "${Key & string}"`;
};

/** How a handler says what follows. Each makes an outcome, which does nothing until the handler returns it. */
export interface Outcomes<Name extends string, State, Output, Signals extends SignalSchemas> {
  /** Goes on with this step. */
  readonly next: <Patch extends Partial<State>>(to: Name, patch?: PatchOf<Patch, State>) => Outcome;
  /** Ends the machine with this result. */
  readonly complete: (...args: undefined extends Output ? [result?: Output] : [result: Output]) => Outcome;
  /** Goes on with this step at this instant (a date, or ms since 1970). Until then the machine holds no process. */
  readonly sleepUntil: <Patch extends Partial<State>>(
    instant: Date | number,
    to: Name,
    patch?: PatchOf<Patch, State>,
  ) => Outcome;
  /** Goes on with `then` when a signal of this name comes, or has come before; with `onTimeout` if it does not come in time. */
  readonly waitForSignal: <Patch extends Partial<State>>(
    signal: keyof Signals & string,
    options: WaitOptions<Name, PatchOf<Patch, State>>,
  ) => Outcome;
  /** Ends the machine as failed, with this error and without another attempt. What was done is undone. */
  readonly fail: (error: Error | string) => Outcome;
}

/** What `waitForSignal` of a handler takes after the signal's name. */
export type WaitOptions<Name extends string, Patch> = {
  /** The step that gets the signal, as `wake.signal`. */
  readonly then: Name;
  /** Replaces these keys of the state before the wait. Default: none. */
  readonly patch?: Patch;
} & (
  | {
      /** How long to wait. Default: for ever. */
      readonly timeout: Duration;
      /** The step that follows where no signal came in time. */
      readonly onTimeout: Name;
    }
  | { readonly timeout?: undefined; readonly onTimeout?: undefined }
);

/**
 * What a handler is given. It is the function of a step: it may be called more than once until its outcome is recorded, and
 * `idempotencyKey` is the same each time. Of another visit to the same step it is another.
 */
export interface HandlerContext<Name extends string, Input, State, Output, Signals extends SignalSchemas>
  extends StepContext, Outcomes<Name, State, Output, Signals> {
  readonly input: Input;
  /** The step that it is the handler of. */
  readonly step: Name;
  /** What all patches so far make. A key that no step has set is not there, whatever its type says. */
  readonly state: Readonly<State>;
  /** Why it runs. */
  readonly wake: Wake<SignalPayloads<Signals>>;
  /** When the machine came here, in ms: the time of the last record. */
  readonly now: number;
  /** Which visit to this step it is, from 1. */
  readonly visit: number;
}

/** What the `undo` of a step is given. */
export interface UndoHandlerContext<Input, State> extends UndoContext {
  readonly input: Input;
  /** As the step left it; `inDoubt`, as the step found it. */
  readonly state: Readonly<State>;
}
