import type { RunEvent } from "./event.ts";
import { idsOf, isFailure, isFinalFailure, leftOf, meaningOf, requestId } from "./fact.ts";
import { handledFailures } from "./failed-attempt.ts";

/** The fact after which the present attempt began; that of a fork's source, where the fork has made none of its own. */
export function attemptBegan(history: readonly RunEvent[]): number {
  const begins = ["attempt_failed", "redriven", "forked"];
  return history.findLast(({ kind }) => begins.includes(kind))?.seq ?? 0;
}

/** The fact that says that the code failed, the last time that it did. A crash, which nobody's code has said, is none. */
function attemptFailed(history: readonly RunEvent[]): number {
  const hasFailed = ({ kind, attempt }: RunEvent): boolean =>
    kind === "attempt_failed" || (kind === "failed" && attempt !== null);
  return history.findLast(hasFailed)?.seq ?? 0;
}

/**
 * Sets aside what failed before the last attempt did: it is tried again. What was finished is kept, and so is a failure
 * that the code dealt with by asking for something else: what it asked for next rests on it. What lost a race is begun anew,
 * should it be asked for again.
 */
export function withoutOpenFailures(history: readonly RunEvent[]): readonly RunEvent[] {
  const boundary = attemptFailed(history);
  if (boundary === 0) return history;
  const lifeBegan = history.findLast(({ kind }) => kind === "redriven")?.seq ?? 0;
  const failedAt = new Map<string, number>();
  const handled = new Set(history.flatMap(handledFailures));
  for (const event of history) {
    if (event.seq >= boundary) break;
    const isWithdrawn = event.kind === "withdrawn";
    const isOpenFailure = isFailure(event) && !handled.has(event.seq) && !isFinalFailure(event, lifeBegan);
    const isOpen = isWithdrawn || isOpenFailure;
    const meaning = isOpen ? meaningOf(event) : null;
    const until = isWithdrawn ? boundary : event.seq;
    if (meaning !== null)
      for (const id of idsOf(meaning)) failedAt.set(id, Math.max(until, failedAt.get(id) ?? 0));
  }
  if (failedAt.size === 0) return history;
  return history.flatMap((event) => {
    const meaning = meaningOf(event);
    const isKept = meaning === null || event.seq > (failedAt.get(requestId(meaning)) ?? 0);
    return isKept ? [event] : leftOf(event);
  });
}
