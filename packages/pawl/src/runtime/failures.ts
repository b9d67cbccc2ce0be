import type { RunEvent } from "../core/event.ts";

/** The failures that the code was given, and which of them it has dealt with. */
export interface Failures {
  /** The code was given a fact; with an error, one that says that something failed. */
  given(event: RunEvent, error: Error | null): void;
  /** The code has asked for something. */
  asked(): void;
  /**
   * The `seq`s of those that stay as they are, now that the code has thrown this: what ended the attempt is tried again.
   * That is what was thrown, or caused it. Where what was thrown shows no cause, it is all that the code did not answer by
   * asking for something else.
   */
  handled(thrown: unknown): readonly number[];
}

interface Failure {
  readonly seq: number;
  readonly error: Error;
  /** The code asked for something before it was given anything else. */
  isAnswered: boolean;
}

export function createFailures(): Failures {
  return new GivenFailures();
}

class GivenFailures implements Failures {
  /** Made with the first one. */
  #all: Failure[] | null = null;
  #last: Failure | null = null;

  given({ seq }: RunEvent, error: Error | null): void {
    this.#last = error === null ? null : { seq, error, isAnswered: false };
    if (this.#last !== null) (this.#all ??= []).push(this.#last);
  }

  asked(): void {
    if (this.#last !== null) this.#last.isAnswered = true;
  }

  handled(thrown: unknown): readonly number[] {
    if (this.#all === null) return [];
    const causes = causesOf(thrown);
    const isCause = ({ error }: Failure): boolean => causes.has(error);
    const isUnanswered = ({ isAnswered }: Failure): boolean => !isAnswered;
    const isOpen = this.#all.some(isCause) ? isCause : isUnanswered;
    return this.#all.filter((failure) => !isOpen(failure)).map(({ seq }) => seq);
  }
}

/** What was thrown, its causes, and the errors it gathers, as far as they can be looked at. */
function causesOf(thrown: unknown): ReadonlySet<unknown> {
  const found = new Set<unknown>([thrown]);
  for (const error of found) {
    if (found.size > mostCauses) break;
    try {
      if (!(error instanceof Error)) continue;
      found.add(error.cause);
      if (error instanceof AggregateError)
        for (const each of (error.errors as unknown[]).slice(0, mostCauses)) found.add(each);
    } catch {
      // What throws at a look tells nothing.
    }
  }
  return found;
}

const mostCauses = 1_000;
