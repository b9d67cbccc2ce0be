import type { RunEvent } from "../core/event.ts";
import type { Payload } from "../core/json.ts";
import type { Log } from "../core/log.ts";
import { placeOfOutput } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { ClaimedRun, Ending } from "../store/lease.ts";
import type { RunEnd } from "../store/run-record.ts";
import type { Course } from "./course.ts";
import type { CodeEnd } from "./difference.ts";
import { whoWaits, type Holding, type HoldingParts, type TellEnd } from "./holding.ts";
import { createFactReport } from "./report-facts.ts";
import type { Branch, RequestTerms } from "./request.ts";
import { RunCode, type CodeHost, type RunCodeParts } from "./run-code.ts";
import type { Transact } from "./transactions.ts";
import type { Workflow } from "./workflow.ts";

/** Whoever holds the run: what a run needs that is not plain is made there, when it is asked for. */
export interface PlainRunHost {
  readonly claimed: ClaimedRun;
  readonly payloads: Payloads;
  readonly log: Log;
  readonly holding: Holding;
  readonly transact: Transact;
  isHeld(): boolean;
  /** All that a run may need, around the code that has begun. */
  courseOf(code: RunCode): Course;
  /** From here on this is what the run does. */
  goOn(course: Course): void;
  ended(): void;
  /** It cannot go on: by a mistake of ours, or, without an error, because the run is lost. */
  stopped(error?: unknown): void;
}

export interface PlainRunParts extends HoldingParts {
  readonly settle: () => Promise<void>;
}

const none: readonly never[] = [];

/**
 * A run that has no past, while its code asks for nothing: most jobs never do. All that a run may need beyond that is made when
 * its code first asks, or when it is told something, or does not end well; from then on its course takes over. So thousands of
 * them can be in flight: what each of them keeps is copied by the collector of garbage, again and again.
 */
export class PlainRun implements CodeHost, RunCodeParts {
  readonly workflow: Workflow;
  readonly #host: PlainRunHost;
  readonly #parts: PlainRunParts;
  readonly #code: RunCode;
  #course: Course | null = null;
  #end: CodeEnd | null = null;
  /** Its end is being written down, or it is lost: whatever its code still does concerns nobody. */
  #isOver = false;

  constructor(workflow: Workflow, host: PlainRunHost, parts: PlainRunParts) {
    this.workflow = workflow;
    this.#host = host;
    this.#parts = parts;
    this.#code = new RunCode(this, this);
  }

  /** Calls the code at once. */
  run(input: unknown): void {
    this.#code.call(input);
  }

  /** Whether it has asked the store to end the run, or is lost. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get claimed(): ClaimedRun {
    return this.#host.claimed;
  }

  get history(): readonly RunEvent[] {
    return none;
  }

  get payloads(): Payloads {
    return this.#host.payloads;
  }

  get log(): Log {
    return this.#host.log;
  }

  get transact(): Transact {
    return this.#host.transact;
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
    void this.#parts.settle().then(() => this.#finish(end));
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
    this.#course = this.#host.courseOf(this.#code);
    if (this.#end !== null) this.#course.ended(this.#end);
    this.#host.goOn(this.#course);
    return this.#course;
  }

  /** What ends otherwise than by returning what can be written down is for its course. */
  #finish(end: CodeEnd): void {
    if (this.#course !== null || this.#isOver) return;
    if (end.kind !== "returned") return this.engage();
    if (!this.#host.isHeld()) return this.#stop();
    let output: Payload | null;
    try {
      output = this.payloads.encode(end.output, placeOfOutput(this.claimed.runId), "The output of the run");
    } catch {
      return this.engage();
    }
    this.#isOver = true;
    try {
      this.#complete(output);
    } catch (error) {
      this.#stop(error);
    }
  }

  /** The one fact of most runs, written as `Holding` writes the last of others. */
  #complete(output: Payload | null): void {
    const { store, workerId, audiences, ending, probe } = this.#parts;
    const { runId, epoch, server, pack, attempt, claimedAt, parentId } = this.claimed;
    ending?.(runId, epoch);
    const waiting = whoWaits(audiences, runId);
    probe("end.before");
    if (!this.#host.isHeld()) return this.#stop();
    const written: Ending = {
      lease: { runId, epoch, workerId, server, pack },
      events: [{ seq: 1, kind: "completed", name: null, attempt, beganAt: claimedAt, data: null }],
      children: none,
      status: "completed",
      output,
      error: null,
      parentId,
    };
    store.end(written).then(
      () => this.#completed(output, waiting),
      (error: unknown) => void this.#completeAgain(output, waiting, error),
    );
  }

  #completed(output: Payload | null, waiting: readonly TellEnd[] | null): void {
    try {
      const { emit, workerId, probe } = this.#parts;
      const end: RunEnd = { status: "completed", output, error: null };
      if (emit !== undefined) {
        const now = (): number => this.#host.holding.time.estimate();
        createFactReport(emit, this.claimed, workerId, now, this.payloads).ended(end);
      }
      if (!this.#host.isHeld()) return this.#stop();
      probe("end.after");
      if (!this.#host.isHeld()) return this.#stop();
      this.#tell(end, waiting);
    } catch (error) {
      this.#stop(error);
    }
  }

  /** The store has not said yes: the same is written again, until it answers. */
  async #completeAgain(
    output: Payload | null,
    waiting: readonly TellEnd[] | null,
    failure: unknown,
  ): Promise<void> {
    try {
      const { holding, claimed } = this.#host;
      const { attempt, claimedAt } = claimed;
      const end: RunEnd = { status: "completed", output, error: null };
      holding.add({ kind: "completed", name: null, attempt, beganAt: claimedAt, data: null });
      await holding.end(end, null, { failure });
      this.#tell(end, waiting);
    } catch (error) {
      this.#stop(error);
    }
  }

  #tell(end: RunEnd, waiting: readonly TellEnd[] | null): void {
    if (waiting !== null) for (const tell of waiting) tell(end);
    this.#host.ended();
  }

  #stop(error?: unknown): void {
    this.#isOver = true;
    this.#host.stopped(error);
  }
}

function nobodyAnswers(): Promise<never> {
  return new Promise(() => {});
}
