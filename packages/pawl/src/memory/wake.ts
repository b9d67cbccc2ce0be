import { cancelError } from "../core/cancel-error.ts";
import { closeRun } from "./close-run.ts";
import { compareMessages, hasUnread, isTold, takeMessage } from "./inbox.ts";
import { appendEvent } from "./record.ts";
import { hasNotBegun, moveToParked, moveToReady, startDueAt } from "./rooms.ts";
import type { InboxMessage, Run, State } from "./state.ts";

/** Looks at these runs' inboxes and lets what is there take effect. */
export function wake(state: State, runs: readonly Run[]): void {
  const waiting = [...runs];
  // Ending a run adds those it told, which this loop then reaches.
  for (const run of waiting) waiting.push(...wakeRun(state, run));
}

function wakeRun(state: State, run: Run): readonly Run[] {
  const cancel = firstUnread(run, "cancel");
  if (cancel && hasNotBegun(run)) return cancelUnbegun(state, run, cancel);

  obeyResume(state, run);
  if (!cancel) obeyPause(state, run);
  if (run.room?.kind === "parked" && isTold(run, run.room.wants)) moveToReady(state, run, run.room, true);
  if (run.room && run.room.kind !== "parked" && hasUnread(run)) {
    run.room.told = true;
    if (run.room.kind === "lease") state.hints.add({ kind: "told", runId: run.id });
  }
  return [];
}

/** A run that nobody has held ends at once, without a holder to do it. */
function cancelUnbegun(state: State, run: Run, cancel: InboxMessage): readonly Run[] {
  const seq = (run.room?.lastSeq ?? 0) + 1;
  appendEvent(state, run, { seq, kind: "cancel_requested", name: null, data: cancel.data, takes: cancel.id });
  appendEvent(state, run, { seq: seq + 1, kind: "cancelled", name: null, data: null });
  return closeRun(state, run, { status: "cancelled", output: null, error: cancelError(cancel.data) });
}

/** A resume makes every pause before it void, and is spent by that. */
function obeyResume(state: State, run: Run): void {
  const { room } = run;
  if (room?.kind !== "ready" && room?.kind !== "parked") return;
  const resume = unreadOf(run, "resume").at(-1);
  if (!resume) return;
  for (const message of [...unreadOf(run, "pause"), ...unreadOf(run, "resume")]) {
    if (compareMessages(message, resume) <= 0) takeMessage(state, run, message.id, 0);
  }
  if (room.kind !== "parked" || room.reason !== "paused") return;
  const seq = room.lastSeq + 1;
  appendEvent(state, run, { seq, kind: "resumed", name: null, data: null });
  const numbers = { ...room, lastSeq: seq };
  if (room.epoch === 0 && run.startAt !== null && run.startAt > state.now()) {
    moveToParked(state, run, numbers, {
      reason: "delayed",
      dueAt: startDueAt(run),
      wants: ["cancel", "pause"],
    });
  } else moveToReady(state, run, numbers, true);
}

/** A pause stays unread as long as it holds. */
function obeyPause(state: State, run: Run): void {
  const { room } = run;
  if (room?.kind !== "ready" && room?.kind !== "parked") return;
  if (room.kind === "parked" && room.reason === "paused") return;
  if (!firstUnread(run, "pause")) return;
  const seq = room.lastSeq + 1;
  appendEvent(state, run, { seq, kind: "paused", name: null, data: null });
  moveToParked(
    state,
    run,
    { ...room, lastSeq: seq },
    { reason: "paused", dueAt: run.deadlineAt, wants: ["cancel", "resume"] },
  );
}

function unreadOf(run: Run, topic: string): readonly InboxMessage[] {
  return hasUnread(run) ? run.unread.list().filter((message) => message.topic === topic) : [];
}

function firstUnread(run: Run, topic: string): InboxMessage | undefined {
  return unreadOf(run, topic)[0];
}
