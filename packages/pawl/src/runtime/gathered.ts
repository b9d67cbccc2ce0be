import { append } from "../core/append.ts";
import type { PawlError } from "../core/error.ts";
import { meaningOf } from "../core/fact.ts";
import type { Payload } from "../core/json.ts";
import { isPublishedWithStep } from "../core/request-key.ts";
import type { NewEvent } from "../store/lease.ts";
import type { NewRun } from "../store/run-record.ts";
import type { Writing } from "./stream-writes.ts";

export type Fact = Omit<NewEvent, "seq">;

/** What a run has to say to the store, and has not said yet. */
export interface Gathered {
  /** Null for what a step writes to a stream. */
  readonly fact: Fact | null;
  readonly child: NewRun | undefined;
  readonly tookMs: number | undefined;
  readonly writing: GatheredWriting | undefined;
  /** Its fact lets the code go on once it is recorded. */
  readonly isAnswer: boolean;
  /** About how many bytes it adds to a write. */
  readonly size: number;
}

export interface GatheredWriting {
  readonly terms: Writing;
  readonly settle: (error: PawlError | null) => void;
}

/** In one write: it must not hold up the other runs that share the connection, and has to fit into one message. */
const mostFacts = 1_000;
const mostBytes = 4_000_000;

/** The facts that wait for the next write, in order. */
export class GatheredFacts {
  #waiting: Gathered[] = [];
  #bytes = 0;

  /** `tookMs`: how long what the fact speaks of took, for those who measure. */
  add(fact: Fact, child: NewRun | undefined, tookMs: number | undefined): void {
    const size = sizeOf(fact.data) + sizeOf(child?.input ?? null);
    this.#push({ fact, child, tookMs, size, writing: undefined, isAnswer: isAnswer(fact) });
  }

  /** What a step writes to a stream, with the fact that says so if there is one. */
  addWriting(writing: GatheredWriting, fact: Fact | null): void {
    const size = sizeOf(writing.terms.data) + 100;
    const terms = { fact, child: undefined, tookMs: undefined, size, writing };
    this.#push({ ...terms, isAnswer: fact !== null && isAnswer(fact) });
  }

  isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Whether there is anything that need not wait for what follows it. */
  hasAny(): boolean {
    return this.#waiting.length > 0 && this.#waiting.length > waitingPatches(this.#waiting).length;
  }

  hasPressing(): boolean {
    return this.#waiting.some((each) => !isPatch(each));
  }

  hasAnswers(): boolean {
    return this.#waiting.some((each) => each.isAnswer);
  }

  hasTooMany(): boolean {
    return this.#waiting.length >= mostFacts || this.#bytes >= mostBytes;
  }

  /**
   * The oldest: as many as fit into a record. What ends or parks the run takes all: `hasTooMany` was asked before. A
   * patch that nothing has followed waits, unless the run ends: whoever goes on may be old code, which finds nothing that it
   * could stumble over, and must be free to take the old side.
   */
  take(at: "record" | "park" | "end"): readonly Gathered[] {
    let count = 0;
    let bytes = 0;
    const patches = at === "end" ? [] : waitingPatches(this.#waiting);
    const ready =
      patches.length === 0 ? this.#waiting : this.#waiting.filter((each) => !patches.includes(each));
    for (const { size, fact } of ready) {
      const isFull = count > 0 && (count >= mostFacts || bytes + size > mostBytes);
      if (at === "record" && isFull && !isShownWithStep(fact)) break;
      count += 1;
      bytes += size;
    }
    this.#bytes -= bytes;
    if (count === ready.length) {
      this.#waiting = [...patches];
      return ready;
    }
    this.#waiting = [...ready.slice(count), ...patches];
    return ready.slice(0, count);
  }

  /** Patches, which a fact that is written by itself takes along. */
  patches(): readonly Gathered[] {
    return this.#waiting.filter(isPatch);
  }

  /** These have been written. */
  leave(written: readonly Gathered[]): void {
    if (written.length === 0) return;
    this.#waiting = this.#waiting.filter((each) => !written.includes(each));
    for (const { size } of written) this.#bytes -= size;
  }

  #push(gathered: Gathered): void {
    this.#waiting = append(this.#waiting, gathered);
    this.#bytes += gathered.size;
  }
}

export function sizeOf(payload: Payload | null): number {
  return (payload?.json.length ?? 0) + (payload?.notes?.length ?? 0);
}

/** In one write with the fact before it: nobody asks for it again. */
function isShownWithStep(fact: Fact | null): boolean {
  return fact?.kind === "published" && isPublishedWithStep(fact.name ?? "");
}

function isPatch({ fact }: Gathered): boolean {
  return fact?.kind === "patched";
}

/** Patches after which nothing has gathered that the code has asked for. */
function waitingPatches(gathered: readonly Gathered[]): readonly Gathered[] {
  if (!gathered.some(isPatch)) return none;
  const last = gathered.findLastIndex(({ fact }) => fact !== null && meaningOf(fact) !== null);
  return gathered.slice(last + 1).filter(isPatch);
}

function isAnswer(fact: Fact): boolean {
  return fact.kind === "cancel_requested" || meaningOf(fact)?.isAnswer === true;
}

const none: readonly never[] = [];
