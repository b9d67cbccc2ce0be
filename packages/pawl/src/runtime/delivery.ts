import type { RunEvent } from "../core/event.ts";
import type { Family } from "../core/request-key.ts";
import { isFailure, meaningOf, type FactMeaning } from "./fact.ts";
import { handledFailures } from "./failed-attempt.ts";
import { createSeqHeap } from "./seq-heap.ts";

export type RequestId = Pick<FactMeaning, "family" | "key">;

/**
 * Which recorded fact the code gets next. Facts are delivered one at a time, in `seq` order among those asked for;
 * the caller lets the code come to rest in between, in replay and live alike, so both take the same course.
 */
export interface Delivery {
  /** Adds a fact that was recorded now. */
  add(event: RunEvent): void;
  /** Notes that the code asks for this. Answers the facts that say that it was issued before. */
  ask(request: RequestId): readonly RunEvent[];
  /** Whether an answer is there, delivered or not. */
  hasAnswer(request: RequestId): boolean;
  /** The next answer that the code asks for, or a cancellation, which it need not ask for. */
  peek(): RunEvent | null;
  take(): RunEvent | null;
  /** The first fact that should have been asked for by now and was not. */
  firstUnasked(): RunEvent | null;
  unasked(most: number): readonly RunEvent[];
  /** The code has asked for everything that the history speaks of, earlier attempts included: it is on new ground. */
  isSpent(): boolean;
}

interface Entry {
  answer: RunEvent | null;
  readonly marks: RunEvent[];
  isAsked: boolean;
}

interface ExpectedFact {
  readonly event: RunEvent;
  readonly entry: Entry;
}

export function createDelivery(history: readonly RunEvent[]): Delivery {
  const entries = new Map<string, Entry>();
  const askedFor = createSeqHeap();
  const expected: ExpectedFact[] = [];
  /** What the history speaks of and the code has not asked for. */
  const unmet = new Set<Entry>();
  let firstExpected = 0;

  const entryOf = ({ family, key }: RequestId): Entry => {
    const id = `${family} ${key}`;
    const there = entries.get(id);
    if (there !== undefined) return there;
    const entry: Entry = { answer: null, marks: [], isAsked: false };
    entries.set(id, entry);
    return entry;
  };

  const add = (event: RunEvent): Entry | null => {
    if (event.kind === "cancel_requested") askedFor.add(event);
    const meaning = meaningOf(event);
    if (meaning === null) return null;
    const entry = entryOf(meaning);
    if (!meaning.isAnswer) entry.marks.push(event);
    else if (entry.answer === null) {
      entry.answer = event;
      if (entry.isAsked) askedFor.add(event);
    }
    return entry;
  };

  const boundary = attemptBegan(history);
  for (const event of withoutOpenFailures(history)) {
    const entry = add(event);
    if (entry !== null) unmet.add(entry);
    // A new attempt need not come by all that earlier ones have done, nor by what became of it later.
    const isOld = event.seq < boundary || (entry?.marks[0]?.seq ?? Infinity) < boundary;
    if (entry !== null && !isOld) expected.push({ event, entry });
  }

  return {
    add,
    ask(request) {
      const entry = entryOf(request);
      entry.isAsked = true;
      unmet.delete(entry);
      if (entry.answer !== null) askedFor.add(entry.answer);
      return entry.marks;
    },
    hasAnswer: (request) => entryOf(request).answer !== null,
    peek: () => askedFor.peek(),
    take: () => askedFor.take(),
    firstUnasked() {
      while (expected[firstExpected]?.entry.isAsked === true) firstExpected++;
      return expected[firstExpected]?.event ?? null;
    },
    unasked: (most) =>
      expected
        .slice(firstExpected)
        .filter(({ entry }) => !entry.isAsked)
        .slice(0, most)
        .map(({ event }) => event),
    isSpent: () => unmet.size === 0,
  };
}

/** The fact after which the present attempt began. */
function attemptBegan(history: readonly RunEvent[]): number {
  return history.findLast(({ kind }) => kind === "attempt_failed" || kind === "redriven")?.seq ?? 0;
}

/** The fact that says that the code failed, the last time that it did. A crash, which nobody's code has said, is none. */
function attemptFailed(history: readonly RunEvent[]): number {
  const hasFailed = ({ kind, attempt }: RunEvent): boolean =>
    kind === "attempt_failed" || (kind === "failed" && attempt !== null);
  return history.findLast(hasFailed)?.seq ?? 0;
}

/**
 * Sets aside what failed before the last attempt did: it is tried again. What was finished is kept, and so is a failure
 * that the code dealt with by asking for something else: what it asked for next rests on it.
 */
function withoutOpenFailures(history: readonly RunEvent[]): readonly RunEvent[] {
  const boundary = attemptFailed(history);
  const failedAt = new Map<string, number>();
  const handled = new Set(history.flatMap(handledFailures));
  const idOf = (family: Family, key: string): string => `${family} ${key}`;
  for (const event of history) {
    const isOpen = event.seq < boundary && isFailure(event) && !handled.has(event.seq);
    const meaning = isOpen ? meaningOf(event) : null;
    if (meaning !== null) failedAt.set(idOf(meaning.family, meaning.key), event.seq);
  }
  if (failedAt.size === 0) return history;
  return history.filter((event) => {
    const meaning = meaningOf(event);
    return meaning === null || event.seq > (failedAt.get(idOf(meaning.family, meaning.key)) ?? 0);
  });
}
