import { placeOfOutput } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { Course } from "./course.ts";
import type { CodeEnd } from "./difference.ts";
import { endRun, type Outcome } from "./ending.ts";
import { Lost, type Holding } from "./holding.ts";
import type { Branch, RequestTerms } from "./request.ts";
import { RunCode, type CodeHost, type RunCodeParts } from "./run-code.ts";

export interface PlainRunParts extends RunCodeParts {
  readonly holding: Holding;
  readonly payloads: Payloads;
  readonly settle: () => Promise<void>;
  /** Makes all that a run may need, around the code that has begun. */
  readonly makeCourse: (code: RunCode) => Course;
}

/**
 * A run that has no past, while its code asks for nothing: most jobs never do. All that a run may need beyond that is made when
 * its code first asks, or when it is told something, or does not end well; from then on its course takes over.
 */
export class PlainRun implements CodeHost {
  readonly #parts: PlainRunParts;
  readonly #code: RunCode;
  #course: Course | null = null;
  #end: CodeEnd | null = null;
  /** Its end is being written down, or it is lost: whatever its code still does concerns nobody. */
  #isOver = false;
  #resolve: (outcome: Outcome | Promise<Outcome>) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(parts: PlainRunParts) {
    this.#parts = parts;
    this.#code = new RunCode(parts, this);
  }

  /** Calls the code at once. */
  run(input: unknown): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#code.call(input);
    });
  }

  /** Lets its course take over, unless it is over. */
  engage(): void {
    this.#engaged();
  }

  isReplaying(): boolean {
    return this.#course?.isReplaying() ?? false;
  }

  ended(end: CodeEnd): void {
    if (this.#course !== null) return this.#course.ended(end);
    if (this.#end !== null) return;
    this.#end = end;
    // Whoever has started it has the time to wait for its result.
    this.#parts.settle().then(
      () => this.#finish(end),
      (error: unknown) => this.#lose(error),
    );
  }

  ask(terms: RequestTerms, branch: Branch | null): Promise<unknown> {
    return this.#engaged()?.ask(terms, branch) ?? nobodyAnswers();
  }

  adopt(promise: Promise<unknown>, branch: Branch): boolean {
    return this.#engaged()?.adopt(promise, branch) ?? false;
  }

  withdraw(branch: Branch): void {
    this.#engaged()?.withdraw(branch);
  }

  patch(id: string): boolean {
    return this.#engaged()?.patch(id) ?? true;
  }

  stopHere(
    asked: { readonly family: string; readonly key: string },
    branch: Branch | null,
    end: () => void,
  ): Promise<never> {
    return this.#engaged()?.stopHere(asked, branch, end) ?? nobodyAnswers();
  }

  withdrawHandlers(): boolean {
    return this.#engaged()?.withdrawHandlers() ?? false;
  }

  watched<T>(call: () => T): T {
    return this.#course === null ? call() : this.#course.watched(call);
  }

  /** Null: it is over, and a course would end it a second time. */
  #engaged(): Course | null {
    if (this.#course !== null || this.#isOver) return this.#course;
    this.#course = this.#parts.makeCourse(this.#code);
    if (this.#end !== null) this.#course.ended(this.#end);
    this.#resolve(this.#course.goOn());
    return this.#course;
  }

  /** What ends otherwise than by returning what can be written down is for its course. */
  #finish(end: CodeEnd): void {
    if (this.#course !== null) return;
    if (end.kind !== "returned") return this.engage();
    const { claimed, holding, payloads } = this.#parts;
    try {
      holding.assertHeld();
      const output = payloads.encode(end.output, placeOfOutput(claimed.runId), "The output of the run");
      this.#isOver = true;
      this.#resolve(endRun(this.#parts, { status: "completed", output, error: null }));
    } catch (error) {
      if (error instanceof Lost) this.#lose(error);
      else this.engage();
    }
  }

  #lose(error: unknown): void {
    this.#isOver = true;
    this.#reject(error);
  }
}

function nobodyAnswers(): Promise<never> {
  return new Promise(() => {});
}
