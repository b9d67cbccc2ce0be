import type { RunEvent } from "../core/event.ts";
import { knownSeq, type Look, type NewEvent, type RecordAnswer, type Recording } from "../store/lease.ts";
import type { Message } from "../store/message.ts";
import { createRuns } from "./create.ts";
import { heldRun } from "./fence.ts";
import { answerMessage, takeMessage, unreadMessages } from "./inbox.ts";
import { writeStreams } from "./showing.ts";
import type { LeaseRoom, Run, State } from "./state.ts";

export function record(state: State, recording: Recording): RecordAnswer {
  const { run, room } = heldRun(state, recording.lease, knownSeq(recording));
  const dueAt = write(state, run, recording);
  return { told: room.told, dueAt, now: state.now() };
}

/** Appends the facts, takes what they take and creates the children. Answers when the timers among them fire, by seq. */
export function write(state: State, run: Run, recording: Recording): ReadonlyMap<number, number> {
  const dueAt = new Map<number, number>();
  for (const event of recording.events) {
    const stored = appendEvent(state, run, event, finishesAttempt(event) ? recording.lease.workerId : null);
    if (stored.dueAt !== null) dueAt.set(stored.seq, stored.dueAt);
  }
  createRuns(state, recording.children);
  writeStreams(state, run, recording.written ?? []);
  return dueAt;
}

/** Appends one fact, unless its `seq` is there: then the stored one stays and is answered. */
export function appendEvent(
  state: State,
  run: Run,
  event: NewEvent,
  workerId: string | null = null,
): RunEvent {
  if (event.takes !== undefined) takeMessage(state, run, event.takes, event.seq);
  if (event.takes !== undefined && event.kind === "update_answered")
    answerMessage(state, run, event.takes, event.seq);
  const there = run.events.get(event.seq);
  if (there) return there;

  const at = state.now();
  const stored: RunEvent = {
    seq: event.seq,
    kind: event.kind,
    at,
    name: event.name,
    attempt: event.attempt ?? null,
    beganAt: event.beganAt ?? null,
    dueAt: event.delayMs === undefined ? (event.dueAt ?? null) : Math.ceil(at + event.delayMs),
    workerId,
    data: event.data,
  };
  run.events.set(stored.seq, stored);
  run.newestSeq = Math.max(run.newestSeq, stored.seq);
  return stored;
}

function finishesAttempt({ kind }: NewEvent): boolean {
  return ["completed", "failed", "cancelled", "timed_out", "attempt_failed"].includes(kind);
}

export function readInbox(state: State, { lease, look }: Look): readonly Message[] {
  const { run, room } = heldRun(state, lease);
  noteLook(room, look);
  return unreadMessages(run);
}

/** The holder sees all that is there. A try that comes late may be seen by nobody. */
export function noteLook(room: LeaseRoom, look: number): void {
  if (look <= room.looks) return;
  room.looks = look;
  room.told = false;
}
