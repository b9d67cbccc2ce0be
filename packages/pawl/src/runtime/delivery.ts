import type { RunEvent } from "../core/event.ts";
import { meaningOf, type FactMeaning } from "./fact.ts";
import { handledFailures } from "./failed-attempt.ts";
import { createSeqHeap } from "./seq-heap.ts";
import { setAside } from "./set-aside.ts";

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
  for (const event of withoutOpenFailures(history, boundary)) {
    const entry = add(event);
    // A new attempt need not come by all that earlier ones have done, nor by what became of it later.
    const isOld = event.seq < boundary || (entry?.marks[0]?.seq ?? Infinity) < boundary;
    if (entry !== null && !isOld) expected.push({ event, entry });
  }

  return {
    add,
    ask(request) {
      const entry = entryOf(request);
      entry.isAsked = true;
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
  };
}

/** The fact after which the present attempt began. */
function attemptBegan(history: readonly RunEvent[]): number {
  return history.findLast(({ kind }) => kind === "attempt_failed" || kind === "redriven")?.seq ?? 0;
}

/**
 * Sets aside what made earlier attempts fail: it is tried again. What was finished is kept, and so is a failure that the
 * code lived on with: what it asked for next rests on it. Whoever dealt with it says so when the attempt fails; an attempt
 * that somebody else ended, as a cancel or a crash does, did not fail of anything.
 */
function withoutOpenFailures(history: readonly RunEvent[], boundary: number): readonly RunEvent[] {
  const handled = new Set(history.flatMap(handledFailures));
  const fatal = inFailedAttempts(history);
  return setAside(history, ({ seq }) => seq < boundary && !handled.has(seq) && fatal.has(seq));
}

/** The facts of those attempts that ended with an error of the code's. */
function inFailedAttempts(history: readonly RunEvent[]): ReadonlySet<number> {
  const facts = new Set<number>();
  let hasFailed = false;
  for (const { kind, seq, attempt } of [...history].reverse()) {
    if (kind === "attempt_failed") hasFailed = true;
    // The sweep, which fails a run that crashed its workers, names no attempt.
    else if (kind === "failed") hasFailed = attempt !== null;
    else if (kind === "redriven") hasFailed = false;
    else if (hasFailed) facts.add(seq);
  }
  return facts;
}
