import {
  graphFormat,
  graphKey,
  nodeKey,
  type DrawnGraph,
  type DrawnNode,
  type ShownState,
} from "../core/graph-state.ts";
import type { Context } from "../runtime/context.ts";
import type { Plan, PlannedNode } from "./plan.ts";

/** About as many edges as fit into a payload of some hundred kB. */
const mostEdges = 20_000;
const edgesOfNode = 10;

/** Shows all nodes at once. Nobody need wait for it: it is written with the first children. */
export function showGraph(ctx: Context, { nodes }: Plan): readonly Promise<void>[] {
  return partsOf(nodes).map((part, index) => {
    const graph: DrawnGraph = { format: graphFormat, nodes: part.map(draw) };
    return ctx.publish(graphKey(index + 1), graph);
  });
}

export function showNode(ctx: Context, { name }: PlannedNode, state: ShownState): Promise<void> {
  return ctx.publish(nodeKey(name), state);
}

function draw({ name, task, needs, least, work, isOptional }: PlannedNode): DrawnNode {
  return {
    name,
    workflow: task.name,
    version: task.version,
    needs: needs.map(({ node }) => node),
    least,
    ...(work.kind !== "one" && { each: true }),
    ...(isOptional && { optional: true }),
  };
}

function partsOf(nodes: readonly PlannedNode[]): readonly (readonly PlannedNode[])[] {
  const parts: PlannedNode[][] = [];
  let edges = Infinity;
  for (const node of nodes) {
    edges += node.needs.length + edgesOfNode;
    if (edges > mostEdges) {
      parts.push([]);
      edges = node.needs.length + edgesOfNode;
    }
    parts.at(-1)?.push(node);
  }
  return parts;
}
