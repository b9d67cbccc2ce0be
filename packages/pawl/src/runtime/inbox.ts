import type { Message, Topic } from "../store/message.ts";

/** The unread messages of a held run, as last seen, oldest first. */
export interface Inbox {
  /** Replaces what was seen before by a later look. */
  fill(messages: readonly Message[]): void;
  all(): readonly Message[];
  of(topic: Topic): readonly Message[];
  /** Spends a message on the fact that will take it, and answers its id. A look that still shows it changes nothing. */
  take(message: Message): string;
}

export function createInbox(): Inbox {
  const taken = new Set<string>();
  let unread = new Map<string, Message>();
  return {
    fill(messages) {
      unread = new Map(messages.filter(({ id }) => !taken.has(id)).map((message) => [message.id, message]));
    },
    all: () => [...unread.values()],
    of: (topic) => [...unread.values()].filter((message) => message.topic === topic),
    take({ id }) {
      taken.add(id);
      unread.delete(id);
      return id;
    },
  };
}
