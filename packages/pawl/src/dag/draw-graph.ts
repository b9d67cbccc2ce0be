import type { Fault } from "../core/option-problem.ts";
import { checkNested, listFault, type Checks } from "../core/options.ts";
import { isWorkflow, type WorkflowRef } from "../core/workflow-ref.ts";
import type { Graph, SuccessCase } from "./graph.ts";
import { eachChecks, nodeChecks, nodeNameFault, type EachOptions, type Join } from "./node-options.ts";
import type { Need, Plan, PlannedCase, PlannedNode, Work } from "./plan.ts";
import {
  GraphNode,
  isQuorum,
  PlaceReference,
  referenceOf,
  referTo,
  SettledReference,
  type Reference,
} from "./reference.ts";
import { referencesIn } from "./source.ts";

/** Calls the function with a graph to draw in. Answers what was drawn, or all that is wrong with it. */
export function drawGraph(draw: (graph: Graph<never>) => unknown): Plan | readonly Fault[] {
  const drawing = new Drawing();
  return drawing.finish(draw(drawing as unknown as Graph<never>));
}

const usualConcurrency = 100;

function isPromise(value: unknown): boolean {
  try {
    return value instanceof Promise;
  } catch {
    return false;
  }
}

class Drawing {
  readonly input = referTo("input");
  readonly #faults: Fault[] = [];
  readonly #nodes: PlannedNode[] = [];
  readonly #numberOf = new Map<GraphNode, number>();
  readonly #names = new Set<string>();
  #cases: readonly PlannedCase[] = [];

  node(name: string, task: WorkflowRef, input?: unknown, options: EachOptions = {}): GraphNode {
    return this.#add(name, task, nodeChecks, options, () => ({ kind: "one", input }));
  }

  each(
    name: string,
    items: unknown,
    task: WorkflowRef,
    input: (item: unknown) => unknown,
    options: EachOptions = {},
  ): GraphNode {
    if (typeof input !== "function")
      this.#complain(name, `The node "${name}" needs a function that makes the input of an item.`);
    const make = typeof input === "function" ? input : () => undefined;
    return this.#add(name, task, eachChecks, options, (concurrency) => {
      if (referenceOf(items) !== null)
        return { kind: "collection", items, input: make(referTo("item")), concurrency };
      const fault = listFault(items);
      if (fault !== null) this.#complain(name, `What the node "${name}" has items of ${fault}, or a node.`);
      const list = fault === null ? [...(items as readonly unknown[])] : [];
      return { kind: "list", items: list, inputs: list.map((item) => make(item)), concurrency };
    });
  }

  success(...cases: readonly SuccessCase[]): void {
    if (cases.length === 0) this.#complain("success", "success needs at least one case.");
    const numbers = (nodes: unknown): ReadonlySet<number> => {
      const fault = listFault(nodes);
      if (fault !== null) this.#complain("success", `A case of success ${fault} of nodes.`);
      const found =
        fault === null ? (nodes as readonly unknown[]).map((node) => this.#find("success", node)) : [];
      return new Set(found.filter((number) => number !== null));
    };
    this.#cases = cases.map(({ required = [], optional }) => ({
      required: numbers(required),
      optional: optional === undefined ? null : numbers(optional),
    }));
  }

  finish(returned: unknown): Plan | readonly Fault[] {
    if (isPromise(returned))
      this.#complain("build", "The function of a graph only draws it: it must not be async.");
    if (this.#nodes.length === 0 && this.#faults.length === 0)
      this.#complain("build", "A graph needs at least one node.");
    const taken = this.#needsOf("What the graph returns", [returned]);
    for (const { node, isSettled } of taken) {
      const { name, isOptional } = this.#nodes[node] as PlannedNode;
      if (isOptional && !isSettled)
        this.#complain(
          name,
          `The node "${name}" is optional: return settled(node), for it may have no result.`,
        );
    }
    if (this.#faults.length > 0) return this.#faults;
    const dependents = this.#nodes.map((): Need[] => []);
    for (const { index, needs } of this.#nodes)
      for (const { node, isSettled } of needs) dependents[node]?.push({ node: index, isSettled });
    return {
      nodes: this.#nodes,
      numberOf: this.#numberOf,
      dependents,
      cases: this.#cases,
      returned,
      results: new Set(taken.filter(({ isSettled }) => !isSettled).map(({ node }) => node)),
      handled: handledOf(dependents, taken),
    };
  }

  #add(
    name: string,
    task: WorkflowRef,
    checks: Checks,
    given: EachOptions,
    readWork: (concurrency: number) => Work,
  ): GraphNode {
    const nameFault = nodeNameFault(name);
    if (nameFault !== null) this.#complain("name", `A node's name ${nameFault}.`);
    const called = typeof name === "string" ? name : "…";
    const node = new GraphNode(called);
    const who = `The node "${called}"`;
    if (this.#names.has(called)) this.#complain(called, `There are two nodes with the name "${called}".`);
    this.#names.add(called);
    if (!isWorkflow(task)) this.#complain(called, `${who} needs a workflow${hintOf(task)}`);
    const options = this.#check(called, given, checks);
    const {
      join = "all",
      after = [],
      when,
      optional = false,
      concurrency = usualConcurrency,
      ...call
    } = options;
    const work = readWork(concurrency);
    for (const each of after)
      if (isNoNode(each)) this.#complain(called, `${who} is to run after what is no node.`);
    const needs = this.#needsOf(who, [after, ...sourcesOf(work)]);
    const least = leastOf(join, needs.length);
    if (least > needs.length)
      this.#complain(
        name,
        `${who} can never begin: it waits for ${needs.length}, and needs ${least} of them.`,
      );
    if (join !== "all" && work.kind === "collection" && !(referenceOf(work.items) instanceof PlaceReference))
      this.#complain(called, `${who} might begin before its items are there: its join must be "all".`);
    this.#numberOf.set(node, this.#nodes.length);
    this.#nodes.push({
      index: this.#nodes.length,
      name,
      task,
      work,
      needs,
      least,
      options: call,
      when: when ?? null,
      isOptional: optional,
    });
    return node;
  }

  #check(name: string, given: EachOptions, checks: Checks): EachOptions {
    const found = checkNested({ [name]: checkNested(checks) })({ [name]: given });
    if (found === null) return given;
    this.#faults.push(...(found as readonly Fault[]));
    return {};
  }

  /** Each node that these refer to, once: one that is wanted completed is not taken as it comes. */
  #needsOf(who: string, sources: readonly unknown[]): readonly Need[] {
    const needs = new Map<number, boolean>();
    for (const reference of this.#read(who, sources)) {
      if (reference instanceof PlaceReference) continue;
      const isSettled = reference instanceof SettledReference;
      const node = this.#find(who, isSettled ? reference.settled : reference);
      if (node !== null) needs.set(node, isSettled && needs.get(node) !== false);
    }
    return [...needs].map(([node, isSettled]) => ({ node, isSettled }));
  }

  #read(who: string, sources: readonly unknown[]): readonly Reference[] {
    try {
      return [...referencesIn(sources)];
    } catch {
      this.#complain("input", `${who} has an input that cannot be read; does it hold itself?`);
      return [];
    }
  }

  #find(who: string, node: unknown): number | null {
    const number = node instanceof GraphNode ? this.#numberOf.get(node) : undefined;
    if (number !== undefined) return number;
    const what =
      node instanceof GraphNode ? `"${node.name}", which is no node of this graph` : "what is no node";
    this.#complain(who, `${who} refers to ${what}.`);
    return null;
  }

  #complain(option: string, message: string): void {
    this.#faults.push({ kind: "said", option, message });
  }
}

/** Those that somebody waits for, and everybody who does takes settled. */
function handledOf(dependents: readonly (readonly Need[])[], taken: readonly Need[]): ReadonlySet<number> {
  const isHandled = new Map(taken.map(({ node, isSettled }) => [node, isSettled]));
  for (const [node, waiting] of dependents.entries())
    for (const { isSettled } of waiting) isHandled.set(node, isSettled && isHandled.get(node) !== false);
  return new Set([...isHandled].filter(([, isSettled]) => isSettled).map(([node]) => node));
}

function hintOf(task: unknown): string {
  const made = " made with workflow(), machine(), dag() or ref()";
  return task === undefined ? `${made}; is it undefined through a circular import?` : `${made}.`;
}

function isNoNode(value: unknown): boolean {
  return !(value instanceof GraphNode || value instanceof SettledReference);
}

function sourcesOf(work: Work): readonly unknown[] {
  switch (work.kind) {
    case "one":
      return [work.input];
    case "list":
      return work.inputs;
    case "collection":
      return [work.items, work.input];
    default:
      return work satisfies never;
  }
}

function leastOf(join: Join, needs: number): number {
  if (isQuorum(join)) return join.least;
  return join === "any" ? 1 : needs;
}
