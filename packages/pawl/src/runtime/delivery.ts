import { attemptBegan, withoutOpenFailures } from "../core/earlier-attempts.ts";
import type { RunEvent } from "../core/event.ts";
import { meaningOf, requestId, type FactMeaning } from "../core/fact.ts";
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
  /** Whether the history says that it was withdrawn. */
  isWithdrawn(request: RequestId): boolean;
  /** The next answer that the code asks for, or what ends its asking, which it need not ask for. */
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

  const entryOf = (request: RequestId): Entry => {
    const id = requestId(request);
    const there = entries.get(id);
    if (there !== undefined) return there;
    const entry: Entry = { answer: null, marks: [], isAsked: false };
    entries.set(id, entry);
    return entry;
  };

  const add = (event: RunEvent): Entry | null => {
    if (event.kind === "cancel_requested" || event.kind === "undo_began") askedFor.add(event);
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

  /** Code that has a handle to a child may never ask how it ended, or do so late. */
  const isOptional = ({ kind, name }: RunEvent): boolean =>
    kind === "child_ended" && name !== null && entries.has(requestId({ family: "start", key: name }));

  const boundary = attemptBegan(history);
  for (const event of withoutOpenFailures(history)) {
    const entry = add(event);
    if (entry !== null) unmet.add(entry);
    // A new attempt need not come by all that earlier ones have done, nor by what became of it later.
    const isOld = event.seq < boundary || (entry?.marks[0]?.seq ?? Infinity) < boundary;
    if (entry !== null && !isOld && !isOptional(event)) expected.push({ event, entry });
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
    isWithdrawn: (request) => entryOf(request).marks.some(({ kind }) => kind === "withdrawn"),
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
