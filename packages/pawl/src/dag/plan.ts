import type { WorkflowRef } from "../core/workflow-ref.ts";
import type { CallOptions } from "../runtime/context.ts";
import type { GraphNode } from "./reference.ts";

/** One node that another waits for. */
export interface Need {
  readonly node: number;
  /** However it ends. */
  readonly isSettled: boolean;
}

/** A node as it will be run. Nodes are numbered in the order of their definition, which their needs never point against. */
export interface PlannedNode {
  readonly index: number;
  readonly name: string;
  readonly task: WorkflowRef;
  readonly work: Work;
  readonly needs: readonly Need[];
  /** How many needs must be met before it begins. */
  readonly least: number;
  readonly options: CallOptions;
  readonly when: ((input: never) => unknown) | null;
  readonly isOptional: boolean;
}

/** What a node's runs get. */
export type Work =
  | { readonly kind: "one"; readonly input: unknown }
  /** Known when the graph is made: an input for each. */
  | {
      readonly kind: "list";
      readonly items: readonly unknown[];
      readonly inputs: readonly unknown[];
      readonly concurrency: number;
    }
  /** Known once the graph runs: all inputs are made alike. */
  | {
      readonly kind: "collection";
      readonly items: unknown;
      readonly input: unknown;
      readonly concurrency: number;
    };

/** What a node with a run for each item gets. */
export type EachWork = Exclude<Work, { readonly kind: "one" }>;

/** One way for the graph to succeed: these have completed and, if some are `optional`, no other has failed. */
export interface PlannedCase {
  readonly required: ReadonlySet<number>;
  readonly optional: ReadonlySet<number> | null;
}

/** All that is to be known about a graph to run it. */
export interface Plan {
  readonly nodes: readonly PlannedNode[];
  readonly numberOf: ReadonlyMap<GraphNode, number>;
  /** Who waits for a node, by its number, in the order of their definition. */
  readonly dependents: readonly (readonly Need[])[];
  /** Empty: no node that matters may fail. */
  readonly cases: readonly PlannedCase[];
  readonly returned: unknown;
  /** The nodes whose results the graph returns. */
  readonly results: ReadonlySet<number>;
  /** The nodes whose failure nobody minds: those that wait for one take it however it ends. */
  readonly handled: ReadonlySet<number>;
}
