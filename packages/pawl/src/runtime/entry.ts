import type { RunEvent } from "../core/event.ts";
import type { FactsWithin } from "../store/holder-transactions.ts";
import type { Lease, NewEvent, RecordAnswer } from "../store/lease.ts";

/** Facts that are being written in a transaction of the user's. One of the last three ends it. */
export interface Entry {
  readonly lease: Lease;
  /** All of them commit, or none. */
  readonly facts: FactsWithin;
  /** Whether they are in the history, once COMMIT is said to have been carried out. */
  isThere(): Promise<boolean>;
  /** The transaction has committed. */
  committed(answer: Pick<RecordAnswer, "told" | "now">): void;
  /** It surely has not, and will not; or nobody wants to know any more. Changes nothing once it has ended. */
  rolledBack(): void;
  /**
   * Nobody knows. Takes the first one's place in the history, unless it is there: then none of them can commit any more. Waits for
   * the transaction, which has locked the lease. Answers whether it has committed.
   */
  findOut(): Promise<boolean>;
}

interface EntryParts {
  readonly lease: Lease;
  readonly facts: FactsWithin;
  /** Records this fact, unless one of its number is there. */
  readonly record: (event: NewEvent) => Promise<Pick<RecordAnswer, "told" | "now">>;
  /** The history from the first one's number on. */
  readonly load: () => Promise<readonly RunEvent[]>;
  readonly learn: (answer: Pick<RecordAnswer, "told" | "now">) => void;
  readonly arrived: (recorded: readonly RunEvent[]) => void;
  /** `newest`: the last number that is in use; null if none of these is. */
  readonly ended: (newest: number | null) => void;
}

export function createEntry(parts: EntryParts): Entry {
  const { lease, facts, record, load, learn, arrived } = parts;
  const { patches, fact } = facts;
  const events = [...patches, fact];
  const [first = fact] = events;
  let hasEnded = false;

  const end = (newest: number | null): void => {
    if (hasEnded) return;
    hasEnded = true;
    parts.ended(newest);
  };

  return {
    lease,
    facts,
    isThere: async () => (await load())[0]?.kind === first.kind,
    committed(answer) {
      learn(answer);
      arrived(events.map((event) => asRecorded(event, { ...answer, dueAt: new Map() })));
      end(fact.seq);
    },
    rolledBack: () => end(null),
    async findOut() {
      let newest = first.seq;
      try {
        const marker = { seq: first.seq, kind: "commit_lost", name: fact.name, data: null } as const;
        learn(await record(marker));
        const recorded = (await load()).slice(0, events.length);
        const hasCommitted = recorded.length > 0 && recorded[0]?.kind !== marker.kind;
        if (hasCommitted) {
          newest = fact.seq;
          arrived(recorded);
        }
        return hasCommitted;
      } finally {
        end(newest);
      }
    },
  };
}

/** A fact as it is in the history, once the store has said so. */
export function asRecorded(event: NewEvent, answer: RecordAnswer): RunEvent {
  return {
    seq: event.seq,
    kind: event.kind,
    at: answer.now,
    name: event.name,
    attempt: event.attempt ?? null,
    beganAt: event.beganAt ?? null,
    dueAt: answer.dueAt.get(event.seq) ?? event.dueAt ?? null,
    workerId: null,
    data: event.data,
  };
}
