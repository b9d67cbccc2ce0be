import { idOfChild } from "../core/child-end.ts";
import type { RunEvent } from "../core/event.ts";
import { meaningOf } from "../core/fact.ts";
import type { RunId } from "../core/ids.ts";

/** The children whose requests were withdrawn: how they end is nobody's business. */
export function abandonedChildren(history: readonly RunEvent[]): Set<RunId> {
  const abandoned = new Set<RunId>();
  const started = new Map<string, RunId>();
  for (const event of history) {
    const { kind, name, data } = event;
    if (name === null) continue;
    if (kind === "child_started") started.set(name, idOfChild(data) ?? "");
    const child =
      kind === "withdrawn" && meaningOf(event)?.family === "child" ? started.get(name) : undefined;
    if (child !== undefined) abandoned.add(child);
  }
  return abandoned;
}
