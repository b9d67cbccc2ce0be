import type { RunId } from "./ids.ts";
import { outermostScope } from "./request-key.ts";
import type { RunStatus } from "./run-status.ts";

/** A node of a graph as its run publishes it from its start. */
export interface DrawnNode {
  readonly name: string;
  readonly workflow: string;
  readonly version: number;
  /** The places in the list of those that it waits for. */
  readonly needs: readonly number[];
  /** How many of them must be there. */
  readonly least: number;
  /** It has a child for each item of a collection. */
  readonly each?: true;
  readonly optional?: true;
}

/** What a run publishes its graph as, or a part of it. Other workflows may publish anything under the same key. */
export interface DrawnGraph {
  readonly format: typeof graphFormat;
  readonly nodes: readonly DrawnNode[];
}

/** As in the function `read_nodes`. */
export const graphFormat = "pawl.dag/1";

/** How a node of a graph is. */
export type NodeState = "pending" | "ready" | "running" | "completed" | "failed" | "skipped";

/** What its children do not tell of a node, and its run publishes. */
export interface ShownState {
  readonly state: NodeState;
  readonly reason?: string;
}

/** What a run publishes its graph under. One with many edges has several parts, for payloads have a limit. */
export function graphKey(part: number): string {
  return part === 1 ? "graph" : `graph:${part}`;
}

/** What a run publishes the state of a node under. */
export function nodeKey(name: string): string {
  return `node:${name}`;
}

/** A value that was published, and when. */
export interface ShownValue {
  readonly value: unknown;
  readonly at: number;
}

/** A child run as far as it tells how a node is. */
export interface NodeChild {
  readonly id: RunId;
  readonly request: string;
  readonly status: RunStatus;
  readonly hasBegun: boolean;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** What the error that it ended with says; null: none. */
  readonly reason: string | null;
}

/** A node of a run's graph, and how it is. */
export interface NodeRecord extends Omit<DrawnNode, "needs" | "each" | "optional"> {
  readonly state: NodeState;
  /** Why it failed or was skipped, or what its run waits for; null: there is nothing to say. */
  readonly reason: string | null;
  /** The names of those that it waits for. */
  readonly needs: readonly string[];
  readonly isEach: boolean;
  readonly isOptional: boolean;
  /** Its newest child run; null: it has none. */
  readonly runId: RunId | null;
  /** How many child runs it has had. */
  readonly runs: number;
  /** When its first child run was started. */
  readonly beganAt: number | null;
  /** When its newest child run ended. */
  readonly endedAt: number | null;
}

/**
 * Every node of a run's graph, in the order of its definition; none where it published no graph. As the view `nodes`.
 * @param published by key
 * @param children oldest first
 */
export function readNodes(
  published: ReadonlyMap<string, ShownValue>,
  children: readonly NodeChild[],
  isEnded: boolean,
): readonly NodeRecord[] {
  const drawn = drawnNodes(published);
  // Children from before a run was begun anew are none of this graph's.
  const since = published.get(graphKey(1))?.at ?? 0;
  const byNode = new Map<string, NodeChild[]>();
  for (const child of children) {
    const name = child.createdAt < since ? null : outermostScope(child.request);
    if (name === null) continue;
    const others = byNode.get(name);
    if (others === undefined) byNode.set(name, [child]);
    else others.push(child);
  }
  return drawn.map(({ each, optional, needs, ...node }) => {
    const own = byNode.get(node.name) ?? [];
    const shown = published.get(nodeKey(node.name));
    return {
      ...node,
      ...stateOf(own, shown, each === true, isEnded),
      needs: needs.map((place) => drawn[place]?.name ?? ""),
      isEach: each === true,
      isOptional: optional === true,
      runId: own.at(-1)?.id ?? null,
      runs: own.length,
      beganAt: own[0]?.createdAt ?? null,
      endedAt: own.at(-1)?.endedAt ?? null,
    };
  });
}

/** Those of all parts. */
function drawnNodes(published: ReadonlyMap<string, ShownValue>): readonly DrawnNode[] {
  const drawn: DrawnNode[] = [];
  for (let part = 1; ; part++) {
    const value = published.get(graphKey(part))?.value;
    if (!isDrawnGraph(value)) return drawn;
    drawn.push(...value.nodes);
  }
}

function isDrawnGraph(value: unknown): value is DrawnGraph {
  return typeof value === "object" && value !== null && "format" in value && value.format === graphFormat;
}

type State = Pick<NodeRecord, "state" | "reason">;

const leftBehind = "the run has ended";

/** What was shown holds until another child is started. Nothing is ready any more once the run has ended. */
function stateOf(
  children: readonly NodeChild[],
  shown: ShownValue | undefined,
  isEach: boolean,
  isEnded: boolean,
): State {
  const newest = children.at(-1);
  const told = shown === undefined ? null : (shown.value as ShownState);
  const wasOver = told !== null && (isEnded || told.state !== "ready");
  const isValid = (shown?.at ?? 0) >= (newest?.createdAt ?? 0) && !(isEnded && told?.state === "ready");
  if (told !== null && isValid) return { state: told.state, reason: told.reason ?? null };
  if (newest === undefined)
    return isEnded ? { state: "skipped", reason: leftBehind } : { state: "pending", reason: null };
  if (!isEach) return stateOfChild(newest);
  return stateOfItems(children, wasOver, isEnded);
}

/**
 * How a node with a child for each item is, by the newest of each item's children.
 * @param wasOver it ended before, and these children were started since. Another attempt of the graph publishes nothing
 * again, so only the children tell that it has completed
 */
function stateOfItems(children: readonly NodeChild[], wasOver: boolean, isEnded: boolean): State {
  const newestOf = new Map(children.map((child) => [itemOf(child), child]));
  const newest = children.filter((child) => newestOf.get(itemOf(child)) === child);
  if (newest.some(({ endedAt }) => endedAt === null)) {
    const isAnyBegun = children.some(({ hasBegun }) => hasBegun);
    return { state: isAnyBegun ? "running" : "ready", reason: null };
  }
  const lost = newest.findLast(({ status }) => status !== "completed");
  if (lost !== undefined) return stateOfChild(lost);
  if (wasOver) return { state: "completed", reason: null };
  // More items may follow.
  return isEnded ? { state: "failed", reason: leftBehind } : { state: "running", reason: null };
}

/** A child's request without the scope of its node, which has another number when the node is begun anew. */
function itemOf({ request }: NodeChild): string {
  return request.replace(/^(?:\\.|[^\\/])*\//, "");
}

function stateOfChild({ status, hasBegun, reason }: NodeChild): State {
  switch (status) {
    case "completed":
      return { state: "completed", reason: null };
    case "failed":
      return { state: "failed", reason };
    case "cancelled":
    case "timed_out":
    case "expired":
      return { state: "failed", reason: reason === null ? status : `${status}: ${reason}` };
    case "pending":
      return { state: hasBegun ? "running" : "ready", reason: null };
    case "paused":
    case "blocked":
      return { state: "running", reason: `its run is ${status}` };
    case "running":
    case "waiting":
      return { state: "running", reason: null };
    default:
      return status satisfies never;
  }
}
