import { PawlError } from "../core/error.ts";
import { isWorkflow } from "../core/workflow-ref.ts";
import type { MachineGraph } from "./graph.ts";

/** Words that mean something else at the beginning of a line, or where a state is named. */
const reserved = /^(?:as|class|classDef|click|default|direction|end|hide|note|scale|state|style)$/i;

/**
 * A machine as a state diagram of Mermaid, which many places show that render Markdown. An arrow says that one step may lead
 * to another: by `next`, or because its handler may choose it (see `leadsTo`). A step without a way out leads to the end.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * console.log(toMermaid(checkout));
 */
export function toMermaid(definition: { readonly graph: MachineGraph }): string {
  if (!isWorkflow(definition) || !("graph" in definition))
    throw new PawlError("INVALID_OPTION", "toMermaid needs a machine made with machine().");
  const { start, steps } = definition.graph;
  const ids = new Map(steps.map(({ name }, index) => [name, isPlain(name) ? name : `step${index + 1}`]));
  const idOf = (name: string): string => ids.get(name) ?? name;
  const lines = steps.flatMap(({ name, next, chooses }) => {
    const ways = next === null ? chooses : [next, ...chooses];
    const arrows = ways.length === 0 ? ["[*]"] : ways.map(idOf);
    return arrows.map((to) => `${idOf(name)} --> ${to}`);
  });
  const named = steps
    .filter(({ name }) => !isPlain(name))
    .map(({ name }) => `state "${escape(name)}" as ${idOf(name)}`);
  return [
    "stateDiagram-v2",
    ...[...named, `[*] --> ${idOf(start)}`, ...lines].map((line) => `  ${line}`),
    "",
  ].join("\n");
}

function isPlain(name: string): boolean {
  return /^[A-Za-z]\w*$/.test(name) && !reserved.test(name) && !/^step\d+$/.test(name);
}

/** By their numbers: quotes would end the name, and others mean something to Mermaid or to Markdown. */
function escape(name: string): string {
  return name.replaceAll(/[^\p{L}\p{N} _-]/gu, (letter) => `#${letter.codePointAt(0)};`);
}
