import type { StandardSchemaV1 } from "@standard-schema/spec";
import { parseDuration, type Duration } from "../core/duration.ts";
import { assertName } from "../core/name.ts";
import {
  checkDuration,
  checkFunction,
  checkInteger,
  checkObject,
  checkOneOf,
  checkOptions,
  checkText,
  invalidOption,
  requireOptions,
} from "../core/options.ts";
import { checkRetry, createRetryPolicy, type RetryOptions, type RetryPolicy } from "../core/retry.ts";
import type { SignalSchemas, WorkflowRef } from "../core/workflow-ref.ts";
import type { Context } from "./context.ts";

export interface WorkflowOptions<Signals extends SignalSchemas = SignalSchemas> {
  /** What runs are stored and found under. */
  readonly name: string;
  /** A whole number from 1. A run keeps the version it was started with. */
  readonly version: number;
  /** The signals it takes, by name. Default: any, unparsed. */
  readonly signals?: Signals;
  /** When the function throws. Default: three attempts, exponential from 1 s to 5 min, with jitter. */
  readonly retry?: RetryOptions;
  /**
   * How long a run may take from its start to its end. A step that ignores its `AbortSignal` is given up 30 s after
   * that. Default: for ever.
   */
  readonly timeout?: Duration;
  /** Default `"default"`. */
  readonly queue?: string;
  /** How often a run may crash the worker that executes it alone, before it fails. Default 3. */
  readonly crashLimit?: number;
  /** `fail`: the first crash of a worker that executes it fails the run. Default `retry`. */
  readonly onCrash?: "retry" | "fail";
}

/** With a schema for the input: the caller gives what it takes, the function gets what it makes of it. */
export interface ParsedWorkflowOptions<
  Schema extends StandardSchemaV1,
  Signals extends SignalSchemas = SignalSchemas,
> extends WorkflowOptions<Signals> {
  /** Any Standard Schema. */
  readonly input: Schema;
}

/** A durable function. */
export interface Workflow<
  Input = never,
  Output = unknown,
  Signals extends SignalSchemas = SignalSchemas,
> extends WorkflowRef<Input, Output, Signals> {
  readonly retry: RetryPolicy;
  /** 0: a run fails at the first crash. */
  readonly crashLimit: number;
  /** The function, for the engine alone: called outside a run it has no context to live in. */
  readonly call: (ctx: Context, input: unknown) => unknown;
}

/**
 * Makes a durable function of an async one. Calling itself, it needs its return type written out.
 * @throws {PawlError} `INVALID_OPTION`, `INVALID_NAME`
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
>(
  options: ParsedWorkflowOptions<Schema, Signals>,
  call: (ctx: Context<Signals>, input: StandardSchemaV1.InferOutput<Schema>) => Promise<Output> | Output,
): Workflow<StandardSchemaV1.InferInput<Schema>, Output, Signals>;
export function workflow<Output, Input = undefined, Signals extends SignalSchemas = SignalSchemas>(
  options: WorkflowOptions<Signals> & { readonly input?: undefined },
  call: (ctx: Context<Signals>, input: Input) => Promise<Output> | Output,
): Workflow<Input, Output, Signals>;
export function workflow(
  options: WorkflowOptions & { readonly input?: StandardSchemaV1 | undefined },
  call: (ctx: never, input: never) => unknown,
): Workflow {
  checkWorkflowOptions(options);
  if (checkFunction(call) !== null)
    throw invalidOption(`workflow "${options.name}"`, "call", "must be a function");
  return {
    name: options.name,
    version: options.version,
    queue: options.queue ?? "default",
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout),
    inputSchema: options.input ?? null,
    signalSchemas: options.signals ?? null,
    retry: createRetryPolicy(options.retry),
    crashLimit: options.onCrash === "fail" ? 0 : (options.crashLimit ?? 3),
    call: call as (ctx: Context, input: unknown) => unknown,
  };
}

function checkWorkflowOptions(options: WorkflowOptions): void {
  const what = "workflow";
  checkOptions(what, options, {
    name: checkText,
    version: checkInteger(1, 2 ** 31 - 1),
    input: checkSchema,
    signals: checkObject,
    retry: checkRetry(what),
    timeout: checkDuration,
    queue: checkText,
    crashLimit: checkInteger(1, 2 ** 15 - 1),
    onCrash: checkOneOf("retry", "fail"),
  });
  requireOptions(what, options, ["name", "version"]);
  assertName("workflow", options.name);
  if (options.queue !== undefined) assertName("queue", options.queue);
  for (const [signal, schema] of Object.entries(options.signals ?? {})) {
    assertName("signal", signal);
    const fault = checkSchema(schema);
    if (fault !== null) throw invalidOption(what, `signals.${signal}`, fault);
  }
}

function checkSchema(value: unknown): string | null {
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  return isObject && "~standard" in value ? null : "must be a Standard Schema, such as one of zod or valibot";
}
