import type { StandardSchemaV1 } from "@standard-schema/spec";
import { parseDuration, type Duration } from "../core/duration.ts";
import { checkDurationFrom, checkFunction, checkOneOf, checkOptions, type Rule } from "../core/options.ts";
import {
  checkWorkflowRetry,
  createRetryPolicy,
  type RetryPolicy,
  type WorkflowRetryOptions,
} from "../core/retry.ts";
import type { PublishedSchemas } from "../core/workflow-ref.ts";
import type { UndoContext } from "./step-context.ts";

/** What may be published under each key. */
type PublishedInputs<Published extends PublishedSchemas> = string extends keyof Published
  ? Readonly<Record<string, unknown>>
  : { readonly [Key in keyof Published]?: StandardSchemaV1.InferInput<Published[Key]> };

/**
 * What `ctx.step` takes after its function: when it is tried again, how long it may take, how it is taken back, and what it
 * shows.
 */
export interface StepOptions<T = unknown, Published extends PublishedSchemas = PublishedSchemas> {
  /**
   * When the function throws. An attempt that follows within 5 s keeps the run where it is; before a later one the run is
   * parked. Default: one attempt.
   */
  readonly retry?: WorkflowRetryOptions;
  /**
   * How long one attempt may take: then its signal aborts, and it has failed with `STEP_TIMED_OUT`, whatever the function
   * still does. Default: for ever.
   */
  readonly timeout?: Duration;
  /**
   * Takes back what the step did. Called if the run fails for good, is cancelled or times out, after its code has come to
   * its end; the step that completed last is undone first. May be called more than once, as a step may. Its code must not
   * use the workflow's context. Default: nothing is undone.
   */
  // A method: options that undo a narrower result are options of a step, before the step's own result is inferred.
  undo?(this: void, result: T, undo: UndoContext): unknown;
  /** When the undo throws. Default: five attempts, exponential from 1 s to 5 min, with jitter. */
  readonly undoRetry?: WorkflowRetryOptions;
  /**
   * `fail`: if its worker dies in the step, it is not called again: it has failed with `STEP_CRASHED`, for good, unless an
   * operator retries the run. Default `retry`.
   */
  readonly onCrash?: "retry" | "fail";
  /**
   * What to publish when the step has completed, by key: as `ctx.publish` does, but in the write that records the result.
   * One that throws, or whose values are refused, fails the step for good. Default: nothing.
   */
  publish?(this: void, result: T): PublishedInputs<Published>;
}

/** How often to try something, and whether an error is worth it. */
export interface Retrying {
  readonly policy: RetryPolicy;
  /** Null: every error is. */
  readonly retryIf: ((error: unknown) => boolean) | null;
}

/** Step options as the engine takes them. */
export interface StepTerms {
  readonly retrying: Retrying;
  /** Null: for ever. */
  readonly timeoutMs: number | null;
  readonly failsOnCrash: boolean;
  readonly undo: UndoTerms | null;
  readonly publish: ((result: unknown) => Readonly<Record<string, unknown>>) | null;
}

export interface UndoTerms {
  readonly call: (result: unknown, undo: UndoContext) => unknown;
  readonly retrying: Retrying;
}

const undoRule: Rule = {
  of: ["undo", "undoRetry"],
  check: ({ undo, undoRetry }) =>
    undoRetry !== undefined && undo === undefined
      ? { kind: "wrong", option: "undoRetry", fault: 'needs "undo"' }
      : null,
};

const plainTerms: StepTerms = {
  retrying: createRetrying(undefined, 1),
  timeoutMs: null,
  failsOnCrash: false,
  undo: null,
  publish: null,
};

/** @throws {PawlError} `INVALID_OPTION` */
export function readStepOptions(options: StepOptions<never> | undefined): StepTerms {
  if (options === undefined) return plainTerms;
  const given = checkOptions(
    "step",
    options,
    {
      retry: checkWorkflowRetry,
      timeout: checkDurationFrom("1ms", "365d"),
      undo: checkFunction,
      undoRetry: checkWorkflowRetry,
      onCrash: checkOneOf("retry", "fail"),
      publish: checkFunction,
    },
    { rules: [undoRule] },
  );
  const { undo, publish } = given;
  return {
    retrying: createRetrying(given.retry, 1),
    timeoutMs: given.timeout === undefined ? null : parseDuration(given.timeout),
    failsOnCrash: given.onCrash === "fail",
    undo:
      undo === undefined
        ? null
        : { call: undo as UndoTerms["call"], retrying: createRetrying(given.undoRetry, 5) },
    publish: (publish as StepTerms["publish"] | undefined) ?? null,
  };
}

/** @param attempts where no options are given at all */
function createRetrying(options: WorkflowRetryOptions | undefined, attempts: number): Retrying {
  return { policy: createRetryPolicy(options ?? { attempts }), retryIf: options?.retryIf ?? null };
}
