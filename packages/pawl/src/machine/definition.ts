import type { StandardSchemaV1 } from "@standard-schema/spec";
import { closestWord } from "../core/closest-word.ts";
import type { Duration } from "../core/duration.ts";
import {
  checkDurationFrom,
  checkEach,
  checkFunction,
  checkInteger,
  checkList,
  checkNested,
  checkOneOf,
  checkOptions,
  type Check,
  type Rule,
} from "../core/options.ts";
import { checkWorkflowRetry, type WorkflowRetryOptions } from "../core/retry.ts";
import type { SignalSchemas } from "../core/workflow-ref.ts";
import { checkSchema, checkSchemas, commonChecks } from "../runtime/workflow.ts";
import type { MachineStep } from "./step.ts";

/** A step as it was given, whatever its types. */
export type AnyStep = MachineStep<string, unknown, object, unknown, SignalSchemas, unknown> & {
  readonly next?: string;
};

/** What `machine` was given, whatever its types. */
export interface GivenDefinition {
  readonly name: string;
  readonly version: number;
  readonly start: string;
  readonly input?: StandardSchemaV1;
  readonly state?: StandardSchemaV1;
  readonly output?: StandardSchemaV1;
  readonly signals?: SignalSchemas;
  readonly retry?: WorkflowRetryOptions;
  readonly timeout?: Duration;
  readonly queue?: string;
  readonly crashLimit?: number;
  readonly onCrash?: "retry" | "fail";
  readonly steps: Readonly<Record<string, AnyStep>>;
}

/** A definition that is right, and that nobody can change any more. */
export interface Definition extends Omit<GivenDefinition, "steps"> {
  readonly steps: ReadonlyMap<string, AnyStep>;
}

/** Reads a definition, and names all that is wrong with it in one error. @throws {PawlError} `INVALID_OPTION` */
export function readDefinition(options: GivenDefinition): Definition {
  const { steps, ...given } = checkOptions(
    "machine",
    options,
    {
      ...commonChecks,
      signals: checkSchemas,
      start: (value) => targetFault(value, namesOf(options.steps)),
      state: checkSchema,
      output: checkSchema,
      steps: checkSteps,
    },
    { required: ["name", "version", "start", "steps"] },
  );
  return { ...given, steps: new Map(Object.entries(steps).map(([name, step]) => [name, { ...step }])) };
}

function namesOf(steps: unknown): readonly string[] {
  return typeof steps === "object" && steps !== null ? Object.keys(steps) : [];
}

const checkSteps: Check = (value) => {
  const names = namesOf(value);
  const faults = checkEach(
    checkNested(stepChecks(names), { required: ["run"], rules: [undoRule] }),
    "steps",
  )(value);
  return faults ?? (names.length === 0 ? "must have a step" : null);
};

function stepChecks(names: readonly string[]): Readonly<Record<keyof AnyStep, Check>> {
  const checkTarget: Check = (value) => targetFault(value, names);
  return {
    run: checkFunction,
    next: checkTarget,
    undo: checkFunction,
    retry: checkWorkflowRetry,
    timeout: checkDurationFrom("1ms", "365d"),
    undoRetry: checkWorkflowRetry,
    onCrash: checkOneOf("retry", "fail"),
    limit: checkInteger(1, 1_000_000),
    leadsTo: checkList(checkTarget, 1_000),
  };
}

const undoRule: Rule = {
  of: ["undo", "undoRetry"],
  check: ({ undo, undoRetry }) =>
    undoRetry !== undefined && undo === undefined
      ? { kind: "wrong", option: "undoRetry", fault: 'needs "undo"' }
      : null,
};

const mostNamed = 20;

/** What keeps this from being one of the steps. */
export function targetFault(to: unknown, names: readonly string[]): string | null {
  if (typeof to !== "string") return "must be the name of a step";
  if (names.length === 0 || names.includes(to)) return null;
  const known = closestWord(to, names) ?? names.slice(0, mostNamed).join(", ");
  return `names "${to.slice(0, 80)}", which is no step: there is ${known}`;
}
