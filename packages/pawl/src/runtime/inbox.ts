import type { Message, Topic } from "../store/message.ts";

/** The unread messages of a held run, as last seen. */
export interface Inbox {
  /** Replaces what was seen before by a later look; oldest first. */
  fill(messages: readonly Message[]): void;
  /** The messages on these topics, oldest first. */
  on(...topics: readonly Topic[]): readonly Message[];
  /** The oldest message on any of these topics. */
  oldest(topics: Iterable<Topic>): Message | null;
  /** Spends a message on the fact that will take it, and answers its id. A look that still shows it changes nothing. */
  take(message: Message): string;
}

interface Placed {
  readonly message: Message;
  readonly place: number;
}

export function createInbox(): Inbox {
  const taken = new Set<string>();
  const unread = new Map<Topic, Map<string, Placed>>();

  const on = (...topics: readonly Topic[]): readonly Message[] =>
    topics
      .flatMap((topic) => [...(unread.get(topic)?.values() ?? [])])
      .toSorted((a, b) => a.place - b.place)
      .map(({ message }) => message);

  const first = (topic: Topic): Placed | undefined => unread.get(topic)?.values().next().value;

  return {
    on,
    fill(messages) {
      unread.clear();
      for (const [place, message] of messages.entries()) {
        if (taken.has(message.id)) continue;
        const others = unread.get(message.topic) ?? new Map<string, Placed>();
        unread.set(message.topic, others.set(message.id, { message, place }));
      }
    },
    oldest(topics) {
      let oldest: Placed | null = null;
      for (const topic of topics) {
        const candidate = first(topic);
        if (candidate !== undefined && (oldest === null || candidate.place < oldest.place))
          oldest = candidate;
      }
      return oldest?.message ?? null;
    },
    take({ id, topic }) {
      taken.add(id);
      unread.get(topic)?.delete(id);
      return id;
    },
  };
}
