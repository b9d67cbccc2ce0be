import type { RunEvent } from "../core/event.ts";
import type { Lease, NewEvent, RecordAnswer } from "../store/lease.ts";

/** A fact that is being written in a transaction of the user's. One of the last three ends it. */
export interface Entry {
  readonly lease: Lease;
  readonly event: NewEvent;
  /** Whether it is in the history, once COMMIT is said to have been carried out. */
  isThere(): Promise<boolean>;
  /** The transaction has committed. */
  committed(answer: Pick<RecordAnswer, "told" | "now">): void;
  /** It surely has not, and will not; or nobody wants to know any more. Changes nothing once it has ended. */
  rolledBack(): void;
  /**
   * Nobody knows. Takes the fact's place in the history, unless it is there: then it can no longer commit. Waits for the
   * transaction, which has locked the lease. Answers whether it has committed.
   */
  findOut(): Promise<boolean>;
}

interface EntryParts {
  readonly lease: Lease;
  readonly event: NewEvent;
  /** Records this fact, unless one of its number is there. */
  readonly record: (event: NewEvent) => Promise<Pick<RecordAnswer, "told" | "now">>;
  /** The history from the fact's number on. */
  readonly load: () => Promise<readonly RunEvent[]>;
  readonly learn: (answer: Pick<RecordAnswer, "told" | "now">) => void;
  readonly arrived: (recorded: RunEvent) => void;
  /** `isTaken`: the fact's number is in use. */
  readonly ended: (isTaken: boolean) => void;
}

export function createEntry(parts: EntryParts): Entry {
  const { lease, event, record, load, learn, arrived } = parts;
  let hasEnded = false;

  const end = (isTaken: boolean): void => {
    if (hasEnded) return;
    hasEnded = true;
    parts.ended(isTaken);
  };

  return {
    lease,
    event,
    isThere: async () => (await load())[0]?.kind === event.kind,
    committed(answer) {
      learn(answer);
      arrived(asRecorded(event, { ...answer, dueAt: new Map() }));
      end(true);
    },
    rolledBack: () => end(false),
    async findOut() {
      try {
        const marker = { seq: event.seq, kind: "commit_lost", name: event.name, data: null } as const;
        learn(await record(marker));
        const [recorded] = await load();
        const hasCommitted = recorded !== undefined && recorded.kind !== marker.kind;
        if (hasCommitted) arrived(recorded);
        return hasCommitted;
      } finally {
        end(true);
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
