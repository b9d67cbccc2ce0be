import type { Duration } from "../core/duration.ts";
import type { WorkflowRetryOptions } from "../core/retry.ts";
import type { SignalSchemas } from "../core/workflow-ref.ts";
import type { HandlerContext, UndoHandlerContext } from "./handler.ts";
import type { Outcome } from "./outcome.ts";

/** A step of a machine: what is done, and what is done when that fails. */
export interface MachineStep<
  Name extends string,
  Input,
  State,
  Output,
  Signals extends SignalSchemas,
  Result,
> {
  /** The handler. What it returns is recorded before anything follows: an outcome, or a patch of the state where `next` is given. */
  readonly run: (handler: HandlerContext<Name, Input, State, Output, Signals>) => Result;
  /**
   * Takes back what a visit to the step did. Called if the machine fails, is cancelled or times out; the step that completed
   * last is undone first. May be called more than once. Default: nothing is undone.
   */
  readonly undo?: (undo: UndoHandlerContext<Input, State>) => unknown;
  /** When the handler throws. Default: the machine's `retry`. */
  readonly retry?: WorkflowRetryOptions;
  /** How long one attempt may take: then its signal aborts, and it has failed with `STEP_TIMED_OUT`. Default: for ever. */
  readonly timeout?: Duration;
  /** When the undo throws. Default: five attempts, exponential from 1 s to 5 min, with jitter. */
  readonly undoRetry?: WorkflowRetryOptions;
  /** `fail`: if its worker dies in the handler, that is not called again: the machine fails with `STEP_CRASHED`. Default `retry`. */
  readonly onCrash?: "retry" | "fail";
  /** How often a run may come here; the visit after that fails it. Default: without limit. */
  readonly limit?: number;
  /**
   * The steps that the handler may go to beside `next`, for the warnings and for `toMermaid`. It is not held to them. Default:
   * those that it names.
   */
  readonly leadsTo?: readonly Name[];
}

type PatchIn<Result> = Exclude<Awaited<Result>, Outcome | void | undefined>;
/** Of each of several that it may return. */
type KeysOf<Patch> = Patch extends unknown ? keyof Patch : never;
type Unknown<Result, State> = Exclude<KeysOf<PatchIn<Result>>, keyof State> & string;

interface MayLead<To> {
  /** The step that follows where the handler returns a patch, or nothing. */
  readonly next?: To;
}

interface MustLead<To> {
  /** The step that follows where the handler returns a patch, or nothing. */
  readonly next: To;
}

/**
 * What `next` must be, by what the handler returns. While the compiler does not know that yet, anything: else it would
 * give up before it does.
 */
export type NextOf<Name extends string, State, Result> = unknown extends Result
  ? MayLead<Name>
  : [Awaited<Result>] extends [Outcome]
    ? MayLead<Name>
    : [PatchIn<Result>] extends [never]
      ? MustLead<Name>
      : [PatchIn<Result>] extends [Partial<State>]
        ? [Unknown<Result, State>] extends [never]
          ? MustLead<Name>
          : MustLead<`The state has no "${Unknown<Result, State>}"`>
        : MustLead<"What the step returns is no patch of the state">;
