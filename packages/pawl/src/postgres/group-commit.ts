import { PawlError } from "../core/error.ts";
import { createSideLane } from "./side-lane.ts";
import { classifyFailure, translateError } from "./sql-error.ts";
import { Waves } from "./waves.ts";

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
  /**
   * How the database comes to work on one half of many items while this process works on the other, with two calls out at a time.
   * "calls": those that wait share out over two calls. "waves": those that are answered are answered in two waves, for whoever asks
   * again when it is answered. Default: one call is out at a time.
   */
  readonly halves?: "calls" | "waves";
  /**
   * What an item belongs to, where all that belongs to it costs least in one call. Those of it that have come while others have not wait
   * for one call of others, unless there is none. Default: each is for itself.
   */
  readonly groupOf?: (item: Item) => Group | undefined;
  /** Waits before a blocked item's next try. */
  pause(ms: number): Promise<void>;
}

/** Items that belong together, and how many they are. */
interface Group {
  readonly id: string;
  readonly size: number;
}

interface Entry<Item, Answer> {
  readonly item: Item;
  readonly bytes: number;
  /** It has waited for others of its group. */
  hasWaited: boolean;
  resolve(answer: Answer): void;
  reject(error: PawlError): void;
}

/** So many items are worth a call of their own beside another. */
const leastShare = 8;

/**
 * Merges concurrent calls of one kind: while a call is in flight, what arrives gathers, and goes out together when it
 * returns. No timer: a call that comes alone goes out at the end of the current turn. Where two calls may be out at once, one
 * goes beside another once it carries about as much. When an item makes its call fail, or somebody blocks it, the items of that
 * call are tried again beside the next calls, and fail or wait one by one.
 */
export function createGroupCommit<Item, Answer>(
  options: GroupCommitOptions<Item, Answer>,
): (item: Item) => Promise<Answer> {
  const { halves } = options;
  const flights = halves === undefined ? 1 : 2;
  const waves = halves === "waves" ? new Waves() : null;
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
      waves?.sent();
      schedule();
    });
  }

  /** A call that is small beside those which are out waits for one of them: what that brings goes with it. */
  function mayFly(): boolean {
    if (waiting.length === 0 || out.length >= flights) return false;
    if (out.length === 0) return true;
    // Of those who are answered in waves some ask for something else.
    const least = Math.max(leastShare, Math.max(...out) * (waves === null ? 1 : 0.5));
    return waiting.length >= Math.min(least, options.maxItems);
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
    const late = takeIncomplete();
    const batch = takeNext();
    waiting = late.length === 0 ? waiting : late.concat(waiting);
    return batch;
  }

  /** Those whose groups are not complete yet, unless there is nothing else to send, or they have waited for that before. */
  function takeIncomplete(): Entry<Item, Answer>[] {
    const { groupOf } = options;
    if (groupOf === undefined || waiting.length === 1) return [];
    const left = new Map<Group["id"], number>();
    for (const { item } of waiting) {
      const group = groupOf(item);
      if (group !== undefined) left.set(group.id, (left.get(group.id) ?? group.size) - 1);
    }
    const isLate = ({ item, hasWaited }: Entry<Item, Answer>): boolean =>
      !hasWaited && (left.get(groupOf(item)?.id ?? "") ?? 0) > 0;
    const late = waiting.filter(isLate);
    if (late.length === 0 || late.length === waiting.length) return [];
    waiting = waiting.filter((entry) => !isLate(entry));
    for (const entry of late) entry.hasWaited = true;
    return late;
  }

  function takeNext(): readonly Entry<Item, Answer>[] {
    const share = halves === "calls" ? Math.ceil(waiting.length / (flights - out.length)) : waiting.length;
    const most = Math.min(Math.max(leastShare, share), options.maxItems);
    let bytes = 0;
    let count = 0;
    for (const entry of waiting) {
      if (count === most || (count > 0 && bytes + entry.bytes > options.maxBytes)) break;
      bytes += entry.bytes;
      count++;
    }
    count = beforeTogether(count);
    const batch = waiting.slice(0, count);
    waiting = waiting.slice(count);
    return batch;
  }

  /** So many, less those at the end that would be parted from others. */
  function beforeTogether(count: number): number {
    const { groupOf } = options;
    const next = waiting[count];
    const group = next === undefined ? undefined : groupOf?.(next.item)?.id;
    if (groupOf === undefined || group === undefined) return count;
    for (let at = count; at > 0; at--) {
      const last = waiting[at - 1];
      if (last === undefined || groupOf(last.item)?.id !== group) return at;
    }
    return count;
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
      const give = (from: number, to: number): void => {
        for (let index = from; index < to; index++) {
          leave();
          const entry = batch[index] as Entry<Item, Answer>;
          const answer = answers[index] as Answer | PawlError;
          if (answer instanceof PawlError) entry.reject(answer);
          else entry.resolve(answer);
        }
      };
      if (waves === null) give(0, batch.length);
      else waves.answer(batch.length, out.length <= 1, give);
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
      waiting.push({ item, bytes: options.sizeOf(item), hasWaited: false, resolve, reject });
      schedule();
    });

  return (item) => {
    if (unanswered >= options.maxUnanswered)
      return new Promise<void>((admit) => heldBack.push(admit)).then(() => enter(item));
    unanswered++;
    return enter(item);
  };
}
