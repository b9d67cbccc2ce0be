import type { EventKind, RunEvent } from "./event.ts";
import { idsOf, isFailure, leftOf, meaningOf, requestId } from "./fact.ts";
import { withVacantStarts } from "./forked.ts";

/**
 * A run that was redriven has forgotten what it was told to do in an earlier life, and what came of that, but not what it
 * had done, unless it was undone. One that was started anew has forgotten everything.
 */
export function presentLife(history: readonly RunEvent[]): readonly RunEvent[] {
  const remembered = withVacantStarts(history.slice(Math.max(0, history.findLastIndex(isStartedAnew))));
  const lastLife = remembered.findLastIndex(({ kind }) => kind === "redriven");
  if (lastLife < 0) return remembered;
  return [...withoutStops(remembered.slice(0, lastLife)), ...remembered.slice(lastLife)];
}

/** The `seq` of the fact with which the run was last started anew; 0 where it never was. */
export function beganAnew(life: readonly RunEvent[]): number {
  return life.findLast(isStartedAnew)?.seq ?? 0;
}

/** The steps that were undone in an earlier life, and the fact that says so: doing them again is something new. */
export function undoneBefore(history: readonly RunEvent[]): ReadonlyMap<string, number> {
  const lastLife = history.findLastIndex(({ kind }) => kind === "redriven");
  const undone = new Map<string, number>();
  for (const { kind, name, seq } of history.slice(0, Math.max(0, lastLife)))
    if (kind === "undo_completed" && name !== null) undone.set(name, seq);
  return undone;
}

/** Whether the run was redriven from its start. */
export function isStartedAnew({ kind, data }: RunEvent): boolean {
  return kind === "redriven" && data !== null;
}

const forgotten: ReadonlySet<EventKind> = new Set([
  "cancel_requested",
  "undo_began",
  "undo_retried",
  "undo_completed",
  "undo_failed",
]);

/**
 * Where a life did not end by its code's failure, nobody has written down which failures the code had dealt with. One that
 * other facts came after is kept, for they may rest on it. One that was the last, or that came after the order to stop, is
 * tried again. What was undone has not been done; if it had failed, that stands: the code may have dealt with it.
 */
function withoutStops(past: readonly RunEvent[]): readonly RunEvent[] {
  const triedAgain = new Map<string, number>();
  const undone = new Map<string, number>();
  const outcomes = new Map<string, RunEvent>();
  const standing = new Set<RunEvent>();
  const setAside = (event: RunEvent | null): void => {
    const meaning = event !== null && isFailure(event) ? meaningOf(event) : null;
    if (event !== null && meaning !== null) for (const id of idsOf(meaning)) triedAgain.set(id, event.seq);
  };
  let isOrdered = false;
  let last: RunEvent | null = null;
  for (const event of past) {
    if (event.kind === "cancel_requested") isOrdered = true;
    if (idOf(event) !== null) last = event;
    if (isOrdered) setAside(event);
    const step = `step ${event.name}`;
    if (event.kind === "step_completed" || event.kind === "step_failed") outcomes.set(step, event);
    if (event.kind === "undo_completed") {
      undone.set(step, event.seq);
      const outcome = outcomes.get(step);
      if (outcome?.kind === "step_failed") standing.add(outcome);
    }
    if (event.kind !== "redriven") continue;
    isOrdered = false;
    setAside(last);
  }
  setAside(last);
  return past.flatMap((event) => {
    const id = idOf(event);
    if (id === null) return forgotten.has(event.kind) ? [] : [event];
    if (event.seq <= (triedAgain.get(id) ?? 0)) return leftOf(event);
    return event.seq > (undone.get(id) ?? 0) || standing.has(event) ? [event] : [];
  });
}

function idOf(event: RunEvent): string | null {
  const meaning = meaningOf(event);
  return meaning === null ? null : requestId(meaning);
}
