import { PawlError } from "../core/error.ts";
import { createSideLane } from "./side-lane.ts";
import { classifyFailure, translateError } from "./sql-error.ts";

export interface GroupCommitOptions<Item, Answer> {
  /** For errors and logs. */
  readonly name: string;
  /** Carries out all of these in one call and answers each, in order. Rejects with what the driver threw. */
  send(items: readonly Item[]): Promise<readonly Answer[]>;
  /** About how many bytes an item adds to the call. */
  sizeOf(item: Item): number;
  readonly maxItems: number;
  readonly maxBytes: number;
  /** Items taken in and not answered yet; beyond that, callers wait before theirs is taken in. */
  readonly maxUnanswered: number;
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
 * returns. No timer: a call that comes alone goes out at the end of the current turn. When an item makes its call fail,
 * or somebody blocks it, the items of that call are tried again beside the next calls, and fail or wait one by one.
 */
export function createGroupCommit<Item, Answer>(
  options: GroupCommitOptions<Item, Answer>,
): (item: Item) => Promise<Answer> {
  let waiting: Entry<Item, Answer>[] = [];
  let isScheduled = false;
  let isInFlight = false;
  let unanswered = 0;
  const heldBack: (() => void)[] = [];
  const tryAside = createSideLane<Entry<Item, Answer>>({
    attempt,
    giveUp: (entry, error) => entry.reject(translateError(error, options.name)),
    blockedForMs: options.blockedForMs,
    pause: (ms) => options.pause(ms),
  });

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
      const error = await attempt(batch);
      if (error !== null) tryAside(batch);
    } finally {
      isInFlight = false;
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

  /** Tells every entry and answers null, or answers the error that one of them caused. Never rejects. */
  async function attempt(batch: readonly Entry<Item, Answer>[]): Promise<unknown> {
    try {
      const answers = await options.send(batch.map((entry) => entry.item));
      if (answers.length !== batch.length) {
        throw new PawlError(
          "INTERNAL",
          `${options.name} answered ${answers.length} of ${batch.length}. Please report this.`,
        );
      }
      for (const [index, entry] of batch.entries()) entry.resolve(answers[index] as Answer);
    } catch (error) {
      if (classifyFailure(error) === "item") return error;
      for (const entry of batch) entry.reject(translateError(error, options.name));
    }
    return null;
  }

  /** Hands the place of an answered item to whoever has waited longest for one. */
  function leave(): void {
    const admit = heldBack.shift();
    if (admit === undefined) unanswered--;
    else admit();
  }

  return async (item) => {
    if (unanswered >= options.maxUnanswered) await new Promise<void>((admit) => heldBack.push(admit));
    else unanswered++;
    return new Promise<Answer>((resolve, reject) => {
      waiting.push({ item, bytes: options.sizeOf(item), resolve, reject });
      schedule();
    }).finally(leave);
  };
}
