import type { Message, Topic } from "../store/message.ts";

/** The unread messages of a held run, as last seen. */
export interface Inbox {
  /** Replaces what was seen before by a later look; oldest first. */
  fill(messages: readonly Message[]): void;
  /** Nothing was seen that has not been taken. */
  isEmpty(): boolean;
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

const nothing: readonly Message[] = [];

export function createInbox(): Inbox {
  return new SeenInbox();
}

class SeenInbox implements Inbox {
  /** Made with the first message: many runs get none. */
  #taken: Set<string> | null = null;
  #unread: Map<Topic, Map<string, Placed>> | null = null;

  isEmpty(): boolean {
    return this.#unread === null || this.#unread.size === 0;
  }

  fill(messages: readonly Message[]): void {
    this.#unread?.clear();
    if (messages.length === 0) return;
    this.#unread ??= new Map();
    for (const [place, message] of messages.entries()) {
      if (this.#taken?.has(message.id) === true) continue;
      const others = this.#unread.get(message.topic) ?? new Map<string, Placed>();
      this.#unread.set(message.topic, others.set(message.id, { message, place }));
    }
  }

  on(...topics: readonly Topic[]): readonly Message[] {
    const unread = this.#unread;
    if (unread === null || unread.size === 0) return nothing;
    return topics
      .flatMap((topic) => [...(unread.get(topic)?.values() ?? [])])
      .toSorted((a, b) => a.place - b.place)
      .map(({ message }) => message);
  }

  oldest(topics: Iterable<Topic>): Message | null {
    let oldest: Placed | null = null;
    for (const topic of topics) {
      const candidate = this.#unread?.get(topic)?.values().next().value;
      if (candidate !== undefined && (oldest === null || candidate.place < oldest.place)) oldest = candidate;
    }
    return oldest?.message ?? null;
  }

  take({ id, topic }: Message): string {
    (this.#taken ??= new Set()).add(id);
    const others = this.#unread?.get(topic);
    others?.delete(id);
    if (others?.size === 0) this.#unread?.delete(topic);
    return id;
  }
}
