import { hasUnread } from "./inbox.ts";
import { moveToReady } from "./rooms.ts";
import { runOf, type State } from "./state.ts";

/** Makes parked runs whose time has come claimable, earliest first. */
export function wakeDue(
  state: State,
  limit: number,
): { readonly woken: number; readonly nextDueAt: number | null; readonly now: number } {
  const now = state.now();
  const due = state.due.list(null, limit).filter(({ at }) => at <= now);
  for (const { runId } of due) {
    const run = runOf(state, runId);
    if (run.room) moveToReady(state, run, run.room, hasUnread(run));
  }
  return { woken: due.length, nextDueAt: state.due.first?.at ?? null, now };
}
