import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Duration } from "../core/duration.ts";
import type { WorkflowRetryOptions } from "../core/retry.ts";
import type { SignalSchemas } from "../core/workflow-ref.ts";
import { workflow, type ParsedWorkflowOptions, type Workflow } from "../runtime/workflow.ts";
import { readDefinition } from "./definition.ts";
import { createDriver } from "./drive.ts";
import { graphOf, warningsOf, type MachineGraph } from "./graph.ts";
import type { MachineStep, NextOf } from "./step.ts";

/** What a machine publishes: the `step` that it is in, or waits after, and the `state` that all patches so far make. */
export type MachinePublished<Name extends string = string, State = unknown> = {
  readonly [Key in "step" | "state"]: StandardSchemaV1<Key extends "step" ? Name : State>;
};

/** A workflow that goes from step to step. */
export interface Machine<
  Input = never,
  Output = unknown,
  Signals extends SignalSchemas = SignalSchemas,
  Name extends string = string,
  State = unknown,
> extends Workflow<Input, Output, Signals, MachinePublished<Name, State>> {
  /** Its steps, and the ways between them as far as they can be seen. */
  readonly graph: MachineGraph;
  /** Steps that no other leads to, and cycles without a wait or a limit. A worker that gets the machine logs them. */
  readonly warnings: readonly string[];
}

type OutputOf<Schema> = Schema extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<Schema> : unknown;
type InputOf<Schema> = Schema extends StandardSchemaV1 ? StandardSchemaV1.InferInput<Schema> : unknown;

/** One of the steps. While the compiler does not know what these return, any: else it would give up before it does. */
type StartOf<Name extends string, Results> = unknown extends Results ? string : Name;

/** What a machine is called, what it takes, and its steps. `Results` is what the handlers return, by step. */
export interface MachineOptions<
  InputSchema extends StandardSchemaV1,
  StateSchema extends StandardSchemaV1,
  OutputSchema extends StandardSchemaV1,
  Signals extends SignalSchemas,
  Name extends string,
  Results,
> {
  /** What runs are stored and found under. */
  readonly name: string;
  /** A whole number from 1. A run keeps the version it was started with. */
  readonly version: number;
  /** The step that a run begins with. */
  readonly start: StartOf<NoInfer<Name>, Results>;
  /** Any Standard Schema: callers give what it takes, handlers get what it makes of it. Default: no input. */
  readonly input?: InputSchema;
  /** A Standard Schema of an object, each key of which a patch may set. Default: no state. */
  readonly state?: StateSchema;
  /** Any Standard Schema: `complete` takes what it takes, callers get what it makes of it. Default: any, unparsed. */
  readonly output?: OutputSchema;
  /** The signals it takes, by name. Default: any, unparsed. */
  readonly signals?: Signals;
  /** When a handler throws, for steps that do not say it themselves. Default: three attempts, exponential from 1 s to 5 min, with jitter. */
  readonly retry?: WorkflowRetryOptions;
  /** How long a run may take from its start to its end. Default: for ever. */
  readonly timeout?: Duration;
  /** Default `"default"`. */
  readonly queue?: string;
  /** How often a run may crash the worker that executes it alone, before it fails. Default 5. */
  readonly crashLimit?: number;
  /** `fail`: the first crash of a worker that executes it fails the run. Default `retry`. */
  readonly onCrash?: "retry" | "fail";
  /** By name. */
  readonly steps: {
    readonly [Key in keyof Results]: MachineStep<
      NoInfer<Name>,
      OutputOf<InputSchema>,
      OutputOf<StateSchema>,
      InputOf<OutputSchema>,
      Signals,
      Results[Key]
    > &
      NextOf<NoInfer<Name>, OutputOf<StateSchema>, Results[Key]>;
  } & Readonly<Record<Name, unknown>>;
}

/** What stands for a schema that is not given: no input, no state, any output. */
type None = StandardSchemaV1<undefined>;
type Empty = StandardSchemaV1<object>;
type Any = StandardSchemaV1;

/**
 * Makes a workflow of steps that say themselves what follows. Each visit to a step is one step of the run: its outcome, the
 * change of the state and where the machine goes are one record.
 * @throws {PawlError} `INVALID_OPTION` with all that is wrong with the definition
 * @example
 * const greet = machine({
 *   name: "greet",
 *   version: 1,
 *   start: "write",
 *   state: z.object({ text: z.string() }),
 *   steps: {
 *     write: { run: () => ({ text: "Hello" }), next: "rest" },
 *     rest: { run: ({ sleepUntil, now }) => sleepUntil(now + 60_000, "send") },
 *     send: { run: ({ state, complete }) => complete(state.text), retry: { attempts: 5 } },
 *   },
 * });
 */
export function machine<
  Name extends string,
  Results,
  InputSchema extends StandardSchemaV1 = None,
  StateSchema extends StandardSchemaV1 = Empty,
  OutputSchema extends StandardSchemaV1 = Any,
  Signals extends SignalSchemas = SignalSchemas,
>(
  options: MachineOptions<InputSchema, StateSchema, OutputSchema, Signals, Name, Results>,
): Machine<InputOf<InputSchema>, OutputOf<OutputSchema>, Signals, Name, OutputOf<StateSchema>> {
  const definition = readDefinition(options);
  const { name, version, input, signals, timeout, queue, crashLimit, onCrash } = definition;
  const graph = graphOf(definition);
  const given = { name, version, input, signals, timeout, queue, crashLimit, onCrash };
  // Steps have attempts of their own: the run is not tried again on top of them.
  const terms = { ...given, published: { step: asItIs, state: asItIs }, retry: { attempts: 1 } };
  const made: Workflow = {
    ...workflow(
      terms as ParsedWorkflowOptions<StandardSchemaV1>,
      createDriver(definition, () => made),
    ),
    warnings: warningsOf(graph),
  };
  return Object.assign(made, { graph }) as never;
}

/** Carries a type, and takes what it is given: a state that is not full yet does not fit its schema. */
const asItIs: StandardSchemaV1<never> = {
  "~standard": { version: 1, vendor: "pawl", validate: (value) => ({ value: value as never }) },
};
