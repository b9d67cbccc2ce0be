import type { Message } from "../store/message.ts";
import { compareText } from "./sorted-list.ts";
import type { InboxMessage, Run, State } from "./state.ts";

/** Stores a message unless its id is there already. */
export function putMessage(state: State, run: Run, message: NewMessage): void {
  const stored = { ...message, sentAt: state.now(), sentTo: null, takenSeq: null, answerSeq: null };
  addMessage(state, run, stored);
}

type NewMessage = Omit<InboxMessage, "sentAt" | "sentTo" | "takenSeq" | "answerSeq">;

/** Adds an unread message as it is, unless its id is there already. */
export function addMessage(state: State, run: Run, stored: InboxMessage): void {
  if (run.inbox.has(stored.id)) return;
  run.inbox.set(stored.id, stored);
  run.unread.add(stored);
  if (stored.idempotencyKey !== null) run.idempotencyKeys.add(stored.idempotencyKey);
  state.withUnread.add(run.id);
}

/** Stores a message in place of one with the same id. */
export function replaceMessage(state: State, run: Run, message: NewMessage): void {
  removeMessage(state, run, message.id);
  putMessage(state, run, message);
}

export function removeMessage(state: State, run: Run, id: string): void {
  takeMessage(state, run, id, 0);
  run.inbox.delete(id);
}

/** Marks a message as taken by this event, unless it is taken or not there. */
export function takeMessage(state: State, run: Run, id: string, seq: number): void {
  const message = run.inbox.get(id);
  if (!message || message.takenSeq !== null) return;
  message.takenSeq = seq;
  run.unread.remove(message);
  if (run.unread.size === 0) state.withUnread.remove(run.id);
}

/** Marks an update as answered by this event, unless it is or is not there. */
export function answerMessage(state: State, run: Run, id: string, seq: number): void {
  const message = run.inbox.get(id);
  if (!message || message.answerSeq !== null) return;
  message.answerSeq = seq;
  state.hints.add({ kind: "answered", runId: run.id });
}

export function hasUnread(run: Run): boolean {
  return run.unread.size > 0;
}

/** All unread messages, oldest first. */
export function unreadMessages(run: Run): readonly Message[] {
  return run.unread.list().map(({ id, topic, name, data, sentAt, sentTo }) => ({
    id,
    topic,
    name,
    data,
    sentAt,
    ...(sentTo !== null && { sentTo }),
  }));
}

/** The one predicate: an unread message is there whose topic is wanted. */
export function isTold(run: Run, wants: readonly string[]): boolean {
  return hasUnread(run) && run.unread.list().some((message) => wants.includes(message.topic));
}

/** Lets a message count as taken by no event, whoever took it. */
export function dismissMessage(state: State, run: Run, id: string): void {
  takeMessage(state, run, id, 0);
  const message = run.inbox.get(id);
  if (message !== undefined) message.takenSeq = 0;
}

/** Oldest first. */
export function compareMessages(a: InboxMessage, b: InboxMessage): number {
  return a.sentAt - b.sentAt || compareText(a.id, b.id);
}
