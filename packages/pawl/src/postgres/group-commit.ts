import { PawlError } from "../core/error.ts";
import { createSideLane } from "./side-lane.ts";
import { classifyFailure, translateError } from "./sql-error.ts";

export interface GroupCommitOptions<Item, Answer> {
  /** For errors and logs. */
  readonly name: string;
  /**
   * Carries out all of these in one call and answers each, in order: with an error where that one cannot be carried out. Rejects
   * with what the driver threw.
   */
  send(items: readonly Item[]): Promise<readonly (Answer | PawlError)[]>;
  /** About how many bytes an item adds to the call. */
  sizeOf(item: Item): number;
  readonly maxItems: number;
  readonly maxBytes: number;
  /** Items taken in and not answered yet; beyond that, callers wait before theirs is taken in. */
  readonly maxUnanswered: number;
  /** How long an item that others block is tried again, alone. */
  readonly blockedForMs: number;
  /** So many calls may be out at once. Default: one. */
  readonly flights?: number;
  /** Waits before a blocked item's next try. */
  pause(ms: number): Promise<void>;
}

interface Entry<Item, Answer> {
  readonly item: Item;
  readonly bytes: number;
  resolve(answer: Answer): void;
  reject(error: PawlError): void;
}

/** So many items are worth a call of their own beside another. */
const leastShare = 8;

/**
 * Merges concurrent calls of one kind: while a call is in flight, what arrives gathers, and goes out together when it
 * returns. No timer: a call that comes alone goes out at the end of the current turn. Where several calls may be out at once,
 * one goes beside another once it carries as much, and many items that wait share out: so the database works on one half
 * of them while this process works on the other. When an item makes its call fail, or somebody blocks it, the items of that
 * call are tried again beside the next calls, and fail or wait one by one.
 */
export function createGroupCommit<Item, Answer>(
  options: GroupCommitOptions<Item, Answer>,
): (item: Item) => Promise<Answer> {
  const { flights = 1 } = options;
  let waiting: Entry<Item, Answer>[] = [];
  let isScheduled = false;
  /** How many items each call carries that is out. */
  const out: number[] = [];
  let unanswered = 0;
  const heldBack: (() => void)[] = [];
  const tryAside = createSideLane<Entry<Item, Answer>>({
    attempt,
    giveUp: (entry, error) => refuse(entry, translateError(error, options.name)),
    blockedForMs: options.blockedForMs,
    pause: (ms) => options.pause(ms),
  });

  function schedule(): void {
    if (isScheduled || !mayFly()) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      void fly();
      schedule();
    });
  }

  /** A call that is small beside those which are out waits for one of them: what that brings goes with it. */
  function mayFly(): boolean {
    if (waiting.length === 0 || out.length >= flights) return false;
    return out.length === 0 || waiting.length >= Math.min(Math.max(leastShare, ...out), options.maxItems);
  }

  async function fly(): Promise<void> {
    const batch = takeBatch();
    out.push(batch.length);
    try {
      const error = await attempt(batch);
      if (error !== null) tryAside(batch);
    } finally {
      out.splice(out.indexOf(batch.length), 1);
      schedule();
    }
  }

  function takeBatch(): readonly Entry<Item, Answer>[] {
    const share = Math.max(leastShare, Math.ceil(waiting.length / (flights - out.length)));
    const most = Math.min(share, options.maxItems);
    let bytes = 0;
    let count = 0;
    for (const entry of waiting) {
      if (count === most || (count > 0 && bytes + entry.bytes > options.maxBytes)) break;
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
      for (const [index, entry] of batch.entries()) {
        leave();
        const answer = answers[index] as Answer | PawlError;
        if (answer instanceof PawlError) entry.reject(answer);
        else entry.resolve(answer);
      }
    } catch (error) {
      if (classifyFailure(error) === "item") return error;
      for (const entry of batch) refuse(entry, translateError(error, options.name));
    }
    return null;
  }

  function refuse(entry: Entry<Item, Answer>, error: PawlError): void {
    leave();
    entry.reject(error);
  }

  /** Hands the place of an answered item to whoever has waited longest for one. */
  function leave(): void {
    const admit = heldBack.shift();
    if (admit === undefined) unanswered--;
    else admit();
  }

  const enter = (item: Item): Promise<Answer> =>
    new Promise((resolve, reject) => {
      waiting.push({ item, bytes: options.sizeOf(item), resolve, reject });
      schedule();
    });

  return (item) => {
    if (unanswered >= options.maxUnanswered)
      return new Promise<void>((admit) => heldBack.push(admit)).then(() => enter(item));
    unanswered++;
    return enter(item);
  };
}
