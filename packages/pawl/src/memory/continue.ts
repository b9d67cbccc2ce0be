import type { Continuation } from "../store/lease.ts";
import { listRun } from "./create.ts";
import { addMessage, compareMessages, hasUnread, takeMessage } from "./inbox.ts";
import { moveToReady, newNumbers } from "./rooms.ts";
import { SortedList } from "./sorted-list.ts";
import { runOf, type Run, type State } from "./state.ts";

/** Puts another run in the place of one that is ending. The caller wakes it. */
export function continueRun(state: State, run: Run, { id, version, input, isRaw }: Continuation): Run {
  const next: Run = {
    ...run,
    id,
    version,
    input,
    isRaw,
    startAt: null,
    expiresAt: null,
    createdAt: state.now(),
    room: null,
    end: null,
    events: new Map(),
    newestSeq: 0,
    forkedFrom: null,
    streams: new Map(),
    inbox: new Map(),
    unread: new SortedList(compareMessages),
    childIds: new Set(),
  };
  run.continuedAs = id;
  listRun(state, next);
  moveMessages(state, run, next);
  moveToReady(state, next, newNumbers, hasUnread(next));
  return next;
}

/** All that is unread but for the ends of children, which answer requests of the old run. */
function moveMessages(state: State, from: Run, to: Run): void {
  for (const message of from.unread.list()) {
    if (message.topic === "child") continue;
    takeMessage(state, from, message.id, 0);
    from.inbox.set(message.id, { ...message, idempotencyKey: null });
    // Why it was to be cancelled was sealed for the old run, and a store cannot seal it anew.
    const isSealed = message.topic === "cancel" && message.data !== null && message.data.notes !== null;
    addMessage(state, to, {
      ...message,
      data: isSealed ? null : message.data,
      sentTo: message.sentTo ?? from.id,
      takenSeq: null,
    });
  }
}

/** The run at the end of the chain that this one is in. */
export function chainEndOf(state: State, run: Run): Run {
  let last = run;
  while (last.continuedAs !== null) last = runOf(state, last.continuedAs);
  return last;
}
