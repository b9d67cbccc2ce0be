import { attemptBegan, withoutOpenFailures } from "../core/earlier-attempts.ts";
import type { RunEvent } from "../core/event.ts";
import { inPlaceOf, meaningOf, requestId } from "../core/fact.ts";
import { SeqHeap } from "./seq-heap.ts";

/**
 * Which recorded fact the code gets next. Facts are delivered one at a time, in `seq` order among those asked for;
 * the caller lets the code come to rest in between, in replay and live alike, so both take the same course.
 */
export interface Delivery {
  /** Adds a fact that was recorded now. */
  add(event: RunEvent): void;
  /** Notes that the code asks for the request with this id. Answers the facts that say that it was issued before. */
  ask(id: string): readonly RunEvent[];
  /** Whether an answer is there, delivered or not. */
  hasAnswer(id: string): boolean;
  /** Whether the history says that it was withdrawn. */
  isWithdrawn(id: string): boolean;
  /**
   * The next answer that the code asks for, or what ends its asking, which it need not ask for. One that is vacant must be had
   * anew, before what comes after it is given.
   */
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
  /** The place of an answer that was set aside: what came after it waits for the one that takes it. */
  vacancy: RunEvent | null;
  marks: RunEvent[] | null;
  isAsked: boolean;
}

interface ExpectedFact {
  readonly event: RunEvent;
  readonly entry: Entry;
}

export function createDelivery(history: readonly RunEvent[]): Delivery {
  return new RunDelivery(history);
}

class RunDelivery implements Delivery {
  /** Made with the first request, or fact: many runs have neither. */
  #entries: Map<string, Entry> | null = null;
  #askedFor: SeqHeap | null = null;
  readonly #expected: ExpectedFact[] = [];
  /** What the history speaks of and the code has not asked for. */
  readonly #unmet: Set<Entry> | null;
  #firstExpected = 0;

  constructor(history: readonly RunEvent[]) {
    this.#unmet = history.length === 0 ? null : new Set();
    if (history.length > 0) this.#remember(history);
  }

  add(event: RunEvent): Entry | null {
    if (event.kind === "cancel_requested" || event.kind === "undo_began") this.#give(event);
    const meaning = meaningOf(event);
    if (meaning === null) return null;
    const entry = this.#entryOf(requestId(meaning));
    if (event.isVacant === true) {
      entry.vacancy ??= event;
      return null;
    }
    if (!meaning.isAnswer) (entry.marks ??= []).push(event);
    else if (entry.answer === null) {
      entry.answer = entry.vacancy === null ? event : inPlaceOf(entry.vacancy, event);
      if (entry.isAsked) this.#give(entry.answer);
    }
    return entry;
  }

  ask(id: string): readonly RunEvent[] {
    const entry = this.#entryOf(id);
    entry.isAsked = true;
    this.#unmet?.delete(entry);
    const due = entry.answer ?? entry.vacancy;
    if (due !== null) this.#give(due);
    return entry.marks ?? none;
  }

  hasAnswer(id: string): boolean {
    return this.#entryOf(id).answer !== null;
  }

  isWithdrawn(id: string): boolean {
    return this.#entryOf(id).marks?.some(({ kind }) => kind === "withdrawn") === true;
  }

  peek(): RunEvent | null {
    const next = this.#askedFor?.peek() ?? null;
    const meaning = next?.isVacant === true ? meaningOf(next) : null;
    if (meaning === null || !this.hasAnswer(requestId(meaning))) return next;
    // It has been taken.
    this.#askedFor?.take();
    return this.peek();
  }

  take(): RunEvent | null {
    return this.#askedFor?.take() ?? null;
  }

  firstUnasked(): RunEvent | null {
    while (this.#expected[this.#firstExpected]?.entry.isAsked === true) this.#firstExpected++;
    return this.#expected[this.#firstExpected]?.event ?? null;
  }

  unasked(most: number): readonly RunEvent[] {
    return this.#expected
      .slice(this.#firstExpected)
      .filter(({ entry }) => !entry.isAsked)
      .slice(0, most)
      .map(({ event }) => event);
  }

  isSpent(): boolean {
    return this.#unmet === null || this.#unmet.size === 0;
  }

  #remember(history: readonly RunEvent[]): void {
    const boundary = attemptBegan(history);
    for (const event of withoutOpenFailures(history)) {
      const entry = this.add(event);
      if (entry === null) continue;
      this.#unmet?.add(entry);
      // A new attempt need not come by all that earlier ones have done, nor by what became of it later.
      const isOld = event.seq < boundary || (entry.marks?.[0]?.seq ?? Infinity) < boundary;
      if (!isOld && !this.#isOptional(event)) this.#expected.push({ event, entry });
    }
  }

  #give(event: RunEvent): void {
    this.#askedFor ??= new SeqHeap();
    this.#askedFor.add(event);
  }

  #entryOf(id: string): Entry {
    this.#entries ??= new Map();
    const there = this.#entries.get(id);
    if (there !== undefined) return there;
    const entry: Entry = { answer: null, vacancy: null, marks: null, isAsked: false };
    this.#entries.set(id, entry);
    return entry;
  }

  /** Code that has a handle to a child may never ask how it ended, or do so late. */
  #isOptional({ kind, name }: RunEvent): boolean {
    if (kind !== "child_ended" || name === null) return false;
    return this.#entries?.has(requestId({ family: "start", key: name })) === true;
  }
}

const none: readonly never[] = [];
