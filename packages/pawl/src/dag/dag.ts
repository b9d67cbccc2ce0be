import type { StandardSchemaV1 } from "@standard-schema/spec";
import { invalidOptions, type Fault } from "../core/option-problem.ts";
import { checkNested, checkOneOf } from "../core/options.ts";
import {
  commonChecks,
  workflow,
  type ParsedWorkflowOptions,
  type Workflow,
  type WorkflowOptions,
} from "../runtime/workflow.ts";
import { drawGraph } from "./draw-graph.ts";
import { drive, type OnError } from "./drive.ts";
import type { Graph } from "./graph.ts";
import type { Plan } from "./plan.ts";
import type { ResultOf } from "./source.ts";

/** What a graph is called, what it takes, and what a failure means to it. */
export interface DagOptions extends Omit<WorkflowOptions, "signals" | "published" | "updates" | "retry"> {
  /**
   * Once a node has failed that matters: `fail` ends the run at once and cancels what runs; `pause` lets what runs end, then
   * waits for an operator's `resume`, which begins anew what failed; `continue` runs all that still can, and then fails.
   * Default `fail`.
   */
  readonly onError?: OnError;
  /** When the graph has failed: another attempt begins anew what failed. Default: one attempt; tasks have their own. */
  readonly retry?: WorkflowOptions["retry"];
}

/** With a schema for the input. */
export interface ParsedDagOptions<Schema extends StandardSchemaV1> extends DagOptions {
  /** Any Standard Schema. */
  readonly input: ParsedWorkflowOptions<Schema>["input"];
}

/**
 * Makes a workflow of a graph whose nodes are child runs: each begins once what it needs is there. The function draws the graph,
 * once, and runs nothing; what it returns is the graph's result.
 * @throws {PawlError} `INVALID_OPTION` with all that is wrong
 * @example
 * const nightly = dag({ name: "nightly", version: 1, input: Day, onError: "pause" }, (g) => {
 *   const rows = g.node("extract", extract, { day: g.input.day });
 *   const clean = g.node("clean", cleanUp, { rows }, { queue: "cpu" });
 *   return g.node("load", load, { rows: clean });
 * });
 */
export function dag<Schema extends StandardSchemaV1, const Returned>(
  options: ParsedDagOptions<Schema>,
  draw: (g: Graph<StandardSchemaV1.InferOutput<Schema>>) => Returned,
): Workflow<StandardSchemaV1.InferInput<Schema>, ResultOf<Returned>>;
export function dag<const Returned, Input = undefined>(
  options: DagOptions & { readonly input?: undefined },
  draw: (g: Graph<Input>) => Returned,
): Workflow<Input, ResultOf<Returned>>;
export function dag(
  options: DagOptions & { readonly input?: StandardSchemaV1 | undefined },
  draw: (g: Graph<never>) => unknown,
): Workflow {
  const plan = readDag(options, draw);
  const { onError = "fail", retry = { attempts: 1 }, ...rest } = options;
  const run = workflow({ ...rest, retry } as WorkflowOptions, (ctx, input: unknown) =>
    drive(ctx, plan, input, onError),
  );
  return run;
}

const checkDag = checkNested(
  { ...commonChecks, onError: checkOneOf("fail", "pause", "continue") },
  { required: ["name", "version"] },
);

/** One error names all that is wrong, with the options and with the graph. */
function readDag(options: DagOptions, draw: unknown): Plan {
  const found = checkDag(options) ?? [];
  const faults: Fault[] =
    typeof found === "string" ? [{ kind: "wrong", option: "", fault: found }] : [...found];
  if (typeof draw !== "function") {
    const message = "dag needs its function after the options: dag(options, (g) => …).";
    throw invalidOptions("dag", [...faults, { kind: "said", option: "draw", message }]);
  }
  const drawn = drawGraph(draw as (g: Graph<never>) => unknown);
  if ("nodes" in drawn && faults.length === 0) return drawn;
  throw invalidOptions("dag", "nodes" in drawn ? faults : [...faults, ...drawn]);
}
