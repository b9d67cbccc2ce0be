import type { StandardSchemaV1 } from "@standard-schema/spec";
import { parseDuration, type Duration } from "../core/duration.ts";
import type { Fault } from "../core/option-problem.ts";
import {
  checkDuration,
  checkEach,
  checkInteger,
  checkName,
  checkNested,
  checkOneOf,
  checkOptions,
  type Check,
} from "../core/options.ts";
import {
  checkWorkflowRetry,
  createRetryPolicy,
  type RetryPolicy,
  type WorkflowRetryOptions,
} from "../core/retry.ts";
import {
  isSchema,
  type PublishedSchemas,
  type SignalSchemas,
  type UpdateSchemas,
  type WorkflowRef,
} from "../core/workflow-ref.ts";
import type { Context } from "./context.ts";

/** What a workflow is called, what it takes, and how its runs are tried again. */
export interface WorkflowOptions<
  Signals extends SignalSchemas = SignalSchemas,
  Published extends PublishedSchemas = PublishedSchemas,
  Updates extends UpdateSchemas = UpdateSchemas,
> {
  /** What runs are stored and found under. */
  readonly name: string;
  /** A whole number from 1. A run keeps the version it was started with. */
  readonly version: number;
  /** The signals it takes, by name. Default: any, unparsed. */
  readonly signals?: Signals;
  /** What `ctx.publish` shows of it, by key. Default: any, unparsed. */
  readonly published?: Published;
  /** The updates that `ctx.onUpdate` handles, by name. Default: any, unparsed. */
  readonly updates?: Updates;
  /** When the function throws. Default: three attempts, exponential from 1 s to 5 min, with jitter. */
  readonly retry?: WorkflowRetryOptions;
  /**
   * How long a run may take from its start to its end. A step that ignores its `AbortSignal` is given up 30 s after
   * that. Default: for ever.
   */
  readonly timeout?: Duration;
  /** Default `"default"`. */
  readonly queue?: string;
  /** How often a run may crash the worker that executes it alone, before it fails. Default 5. */
  readonly crashLimit?: number;
  /** `fail`: the first crash of a worker that executes it fails the run. Default `retry`. */
  readonly onCrash?: "retry" | "fail";
}

/** With a schema for the input: the caller gives what it takes, the function gets what it makes of it. */
export interface ParsedWorkflowOptions<
  Schema extends StandardSchemaV1,
  Signals extends SignalSchemas = SignalSchemas,
  Published extends PublishedSchemas = PublishedSchemas,
  Updates extends UpdateSchemas = UpdateSchemas,
> extends WorkflowOptions<Signals, Published, Updates> {
  /** Any Standard Schema. */
  readonly input: Schema;
}

/** A durable function. */
export interface Workflow<
  Input = never,
  Output = unknown,
  Signals extends SignalSchemas = SignalSchemas,
  Published extends PublishedSchemas = PublishedSchemas,
  Updates extends UpdateSchemas = UpdateSchemas,
> extends WorkflowRef<Input, Output, Signals, Published, Updates> {
  readonly retry: RetryPolicy;
  /** Null: every error is retried. */
  readonly retryIf: ((error: unknown) => boolean) | null;
  /** 0: a run fails at the first crash. */
  readonly crashLimit: number;
  /** What looks wrong about its definition. A worker that gets it says so in its log. */
  readonly warnings?: readonly string[];
  /** The function, for the engine alone: called outside a run it has no context to live in. */
  readonly call: (ctx: Context, input: unknown) => unknown;
}

/**
 * Makes a durable function of an async one. Calling itself, it needs its return type written out.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * const greet = workflow({ name: "greet", version: 1 }, async (ctx, name: string) => {
 *   const text = await ctx.step("write", () => `Hello ${name}`);
 *   await ctx.sleep("1d");
 *   return text;
 * });
 */
export function workflow<
  Schema extends StandardSchemaV1,
  Output,
  Signals extends SignalSchemas = SignalSchemas,
  Published extends PublishedSchemas = PublishedSchemas,
  Updates extends UpdateSchemas = UpdateSchemas,
>(
  options: ParsedWorkflowOptions<Schema, Signals, Published, Updates>,
  call: (
    ctx: Context<Signals, Published, Updates>,
    input: StandardSchemaV1.InferOutput<Schema>,
  ) => Promise<Output> | Output,
): Workflow<StandardSchemaV1.InferInput<Schema>, Output, Signals, Published, Updates>;
export function workflow<
  Output,
  Input = undefined,
  Signals extends SignalSchemas = SignalSchemas,
  Published extends PublishedSchemas = PublishedSchemas,
  Updates extends UpdateSchemas = UpdateSchemas,
>(
  options: WorkflowOptions<Signals, Published, Updates> & { readonly input?: undefined },
  call: (ctx: Context<Signals, Published, Updates>, input: Input) => Promise<Output> | Output,
): Workflow<Input, Output, Signals, Published, Updates>;
export function workflow(
  options: WorkflowOptions & { readonly input?: StandardSchemaV1 | undefined },
  call: (ctx: never, input: never) => unknown,
): Workflow {
  const given = readWorkflowOptions(options, call);
  return {
    name: given.name,
    version: given.version,
    queue: given.queue ?? "default",
    timeoutMs: given.timeout === undefined ? null : parseDuration(given.timeout),
    inputSchema: given.input ?? null,
    signalSchemas: given.signals ?? null,
    publishedSchemas: given.published ?? null,
    updateSchemas: given.updates ?? null,
    retry: createRetryPolicy(given.retry),
    retryIf: given.retry?.retryIf ?? null,
    crashLimit: given.onCrash === "fail" ? 0 : (given.crashLimit ?? 5),
    call: call as (ctx: Context, input: unknown) => unknown,
  };
}

interface GivenOptions extends WorkflowOptions {
  readonly input?: StandardSchemaV1 | undefined;
}

/** The function is checked with the options, so that one error names all that is wrong. */
function readWorkflowOptions(options: GivenOptions, call: unknown): GivenOptions {
  return checkOptions(
    "workflow",
    options,
    {
      ...commonChecks,
      signals: checkSchemas,
      published: checkSchemas,
      updates: checkEach(
        checkNested({ input: checkSchema, output: checkSchema }, { required: ["input"] }),
        "schemas",
      ),
    },
    { required: ["name", "version"], rules: [{ of: [], check: () => callFault(call) }] },
  );
}

function callFault(call: unknown): Fault | null {
  if (typeof call === "function") return null;
  const message =
    "workflow needs its function after the options: workflow(options, async (ctx, input) => …).";
  return { kind: "said", option: "call", message };
}

/** Whether this is a schema. */
export const checkSchema: Check = (value) =>
  isSchema(value) ? null : "must be a Standard Schema, such as one of zod or valibot";

/** The options of a workflow, whichever way it is written. */
export const commonChecks = {
  name: checkName,
  version: checkInteger(1, 2 ** 31 - 1),
  input: checkSchema,
  retry: checkWorkflowRetry,
  timeout: checkDuration,
  queue: checkName,
  crashLimit: checkInteger(1, 2 ** 15 - 1),
  onCrash: checkOneOf("retry", "fail"),
};

/** Whether these are schemas, by name. */
export const checkSchemas = checkEach(checkSchema, "schemas");
