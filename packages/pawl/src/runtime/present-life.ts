import type { RunEvent } from "../core/event.ts";
import { setAside } from "./set-aside.ts";

/**
 * A run that was redriven has forgotten what it was told to do in an earlier life, but not what it had done. What failed
 * after it was told to stop may have failed because of that: it is tried again.
 */
export function presentLife(history: readonly RunEvent[]): readonly RunEvent[] {
  const lastLife = history.findLastIndex(({ kind }) => kind === "redriven");
  if (lastLife < 0) return history;
  const stopping = stoppingIn(history.slice(0, lastLife));
  return setAside(history, ({ seq }) => stopping.has(seq)).filter(
    ({ kind, seq }) => kind !== "cancel_requested" || !stopping.has(seq),
  );
}

/** The facts of these lives from the moment that they were told to stop. */
function stoppingIn(lives: readonly RunEvent[]): ReadonlySet<number> {
  const stopping = new Set<number>();
  let isStopping = false;
  for (const { kind, seq } of lives) {
    if (kind === "cancel_requested") isStopping = true;
    if (kind === "redriven") isStopping = false;
    if (isStopping) stopping.add(seq);
  }
  return stopping;
}
