import { PawlError } from "../core/error.ts";
import { classifyFailure, isBlocked, translateError } from "./sql-error.ts";

export interface GroupCommitOptions<Item, Answer> {
  /** For errors and logs. */
  readonly name: string;
  /** Carries out all of these in one call and answers each, in order. Rejects with what the driver threw. */
  send(items: readonly Item[]): Promise<readonly Answer[]>;
  /** About how many bytes an item adds to the call. */
  sizeOf(item: Item): number;
  readonly maxItems: number;
  readonly maxBytes: number;
  /** Items that may wait for a call; beyond that, callers wait before theirs is taken in. */
  readonly maxWaiting: number;
  /** How long an item that others block is tried again, alone. */
  readonly blockedForMs: number;
  /** Waits before a blocked item's next try. */
  pause(ms: number): Promise<void>;
}

interface Entry<Item, Answer> {
  readonly item: Item;
  readonly bytes: number;
  resolve(answer: Answer): void;
  reject(error: PawlError): void;
}

/**
 * Merges concurrent calls of one kind: while a call is in flight, what arrives gathers, and goes out together when it
 * returns. No timer: a call that comes alone goes out at the end of the current turn. An item that makes a batch fail,
 * or that somebody blocks, is tried alone and holds nobody else.
 */
export function createGroupCommit<Item, Answer>(options: GroupCommitOptions<Item, Answer>): (item: Item) => Promise<Answer> {
  let waiting: Entry<Item, Answer>[] = [];
  let isScheduled = false;
  let isInFlight = false;
  const heldBack: (() => void)[] = [];

  function schedule(): void {
    if (isScheduled || isInFlight || waiting.length === 0) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      void fly();
    });
  }

  async function fly(): Promise<void> {
    const batch = takeBatch();
    isInFlight = true;
    try {
      await deliver(batch);
    } finally {
      isInFlight = false;
      for (const admit of heldBack.splice(0, options.maxWaiting - waiting.length)) admit();
      schedule();
    }
  }

  function takeBatch(): readonly Entry<Item, Answer>[] {
    let bytes = 0;
    let count = 0;
    for (const entry of waiting) {
      if (count === options.maxItems || (count > 0 && bytes + entry.bytes > options.maxBytes)) break;
      bytes += entry.bytes;
      count++;
    }
    const batch = waiting.slice(0, count);
    waiting = waiting.slice(count);
    return batch;
  }

  async function deliver(batch: readonly Entry<Item, Answer>[]): Promise<void> {
    try {
      const answers = await options.send(batch.map((entry) => entry.item));
      for (const [index, entry] of batch.entries()) entry.resolve(answers[index] as Answer);
    } catch (error) {
      if (classifyFailure(error) === "item") for (const entry of batch) void deliverAlone(entry, options.blockedForMs);
      else for (const entry of batch) entry.reject(translateError(error, options.name));
    }
  }

  /** Outside the flight, so that the next batch need not wait for it. Never rejects: the entry is told. */
  async function deliverAlone(entry: Entry<Item, Answer>, leftMs: number): Promise<void> {
    const pauseMs = 50;
    try {
      const [answer] = await options.send([entry.item]);
      entry.resolve(answer as Answer);
    } catch (error) {
      if (!isBlocked(error) || leftMs <= 0) return entry.reject(translateError(error, options.name));
      await options.pause(pauseMs);
      // Each blocked try has itself waited for the lock's time limit.
      await deliverAlone(entry, leftMs - pauseMs - lockTimeoutMs);
    }
  }

  return async (item) => {
    const bytes = options.sizeOf(item);
    if (waiting.length >= options.maxWaiting) await new Promise<void>((admit) => heldBack.push(admit));
    return new Promise<Answer>((resolve, reject) => {
      waiting.push({ item, bytes, resolve, reject });
      schedule();
    });
  };
}

/** As the functions of the schema set it. */
const lockTimeoutMs = 250;
