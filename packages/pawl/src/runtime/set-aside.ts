import type { RunEvent } from "../core/event.ts";
import { isFailure, meaningOf } from "./fact.ts";

/** The history as if what failed here had not been tried yet: without these failures, and what led to them. */
export function setAside(
  history: readonly RunEvent[],
  isOpen: (failure: RunEvent, index: number) => boolean,
): readonly RunEvent[] {
  const failedAt = new Map<string, number>();
  for (const [index, event] of history.entries()) {
    const request = isFailure(event) ? requestOf(event) : null;
    if (request !== null && isOpen(event, index)) failedAt.set(request, event.seq);
  }
  if (failedAt.size === 0) return history;
  return history.filter((event) => {
    const request = requestOf(event);
    return request === null || event.seq > (failedAt.get(request) ?? 0);
  });
}

function requestOf(event: RunEvent): string | null {
  const meaning = meaningOf(event);
  return meaning === null ? null : `${meaning.family} ${meaning.key}`;
}
