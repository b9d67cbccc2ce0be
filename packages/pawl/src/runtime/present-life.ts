import type { RunEvent } from "../core/event.ts";

/** A run that was redriven has forgotten what it was told to do in an earlier life, but not what it had done. */
export function presentLife(history: readonly RunEvent[]): readonly RunEvent[] {
  const lastLife = history.findLastIndex(({ kind }) => kind === "redriven");
  return lastLife < 0
    ? history
    : history.filter(({ kind }, index) => index > lastLife || kind !== "cancel_requested");
}
