import { nodeKey } from "../core/graph-state.ts";
import { nameFault } from "../core/name.ts";
import { checkFlag, checkFunction, checkInteger, type Check } from "../core/options.ts";
import { callChecks } from "../runtime/call-checks.ts";
import type { CallOptions } from "../runtime/context.ts";
import { isQuorum, type Node, type Quorum, type SettledNode } from "./reference.ts";

/** How many of those that a node waits for must be there. */
export type Join = "all" | "any" | Quorum;

/** What a node takes after its input: how it is run, and when. */
export interface NodeOptions<
  Input = never,
  Joined extends Join = Join,
  After extends Node | SettledNode = Node | SettledNode,
> extends CallOptions {
  /**
   * When the node begins: with `all` once everything that it waits for is there, with `any` once one is, with `quorum(n)`
   * once so many are. It is skipped as soon as that cannot be any more. Default `all`.
   */
  readonly join?: Joined;
  /** Nodes to wait for without their results; `settled(node)`: also if it failed. Default: none. */
  readonly after?: readonly After[];
  /** False skips the node. Gets the node's input, decides by that alone, and changes nothing. Default: none. */
  readonly when?: (input: Input) => boolean;
  /** True: the graph may succeed though this node fails. Default false. */
  readonly optional?: boolean;
}

/** What a collection takes: the options of each of its runs, and how many there are at a time. */
export interface EachOptions<
  Item = never,
  Joined extends Join = Join,
  After extends Node | SettledNode = Node | SettledNode,
> extends NodeOptions<readonly Item[], Joined, After> {
  /** How many items are worked on at a time. Default 100. */
  readonly concurrency?: number;
}

/** It is part of other names, and those must be names too. */
export function nodeNameFault(name: unknown): string | null {
  return nameFault(typeof name === "string" && name !== "" ? nodeKey(name) : name);
}

const checkJoin: Check = (value) => {
  if (value === "all" || value === "any") return null;
  if (!isQuorum(value)) return 'must be "all", "any" or quorum(n)';
  return checkInteger(1, 2 ** 31 - 1)(value.least);
};

/** No graph has as many nodes. */
const mostNodes = 100_000;

const checkAfter: Check = (value) =>
  Array.isArray(value) && value.length <= mostNodes ? null : `must be a list of at most ${mostNodes} nodes`;

export const nodeChecks = {
  ...callChecks,
  join: checkJoin,
  after: checkAfter,
  when: checkFunction,
  optional: checkFlag,
};

export const eachChecks = { ...nodeChecks, concurrency: checkInteger(1, 2 ** 31 - 1) };
