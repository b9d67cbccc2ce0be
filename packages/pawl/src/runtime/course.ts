import { idOfChild } from "../core/child-end.ts";
import type { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { Ids } from "../core/ids.ts";
import { placeOfEvent, placeOfInput } from "../core/payload-codec.ts";
import { parseWith } from "../core/schema.ts";
import { createSeededRandom, type SeededRandom } from "../core/seeded-random.ts";
import type { Timers } from "../core/timers.ts";
import { createAgenda, earliest, type Agenda } from "./agenda.ts";
import { answer } from "./answer.ts";
import { createContext } from "./create-context.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import { findDifference, type CodeEnd } from "./difference.ts";
import { createEnding, patienceMs, type Ending, type EndingParts, type Outcome } from "./ending.ts";
import { isFailure, meaningOf } from "./fact.ts";
import { stopError, stopOf } from "./orders.ts";
import { createRequest, type RequestTerms } from "./request.ts";
import { createRequests } from "./requests.ts";
import { createRunLog } from "./run-log.ts";
import { createScope } from "./scope.ts";
import type { Transact } from "./transactions.ts";

export interface CourseParts extends Omit<EndingParts, "absorb" | "handledFailures"> {
  readonly ids: Ids;
  readonly timers: Timers;
  readonly settle: () => Promise<void>;
  readonly restGraceMs: number;
  readonly parkGraceMs: number;
  /** The worker wants to give the run back. */
  readonly isReleasing: () => boolean;
  readonly cancelRecorded: () => void;
  readonly transact: Transact;
}

/** Without an answer to tell the store's time, a holder looks at its clock after this long at the latest. */
const longestGuessMs = 1_000;

/**
 * Takes one run from its claim as far as it goes. The code runs until it rests; then it is given one fact, or, when all
 * facts have been given, what it asks for is begun; then it rests again. Replay and live execution are this one loop.
 */
export class Course {
  readonly #parts: CourseParts;
  readonly #delivery: Delivery;
  readonly #requests = createRequests();
  readonly #agenda: Agenda;
  readonly #ending: Ending;
  #codeEnd: CodeEnd | null = null;
  /** What the code sees as the time. */
  #now: number;
  #random: SeededRandom | null = null;
  #delivered = 0;
  /** The fact delivered last, if it says that something failed. */
  #lastFailure: RunEvent | null = null;
  /** Failures after which the code asked for something else: its course rests on them. */
  readonly #handledFailures = new Set<number>();
  /** What every request gets from the moment the code knows that it is to stop. */
  #refusal: PawlError | null = null;
  /** Counts what the code does: it asks for something, or comes to its end. */
  #moves = 0;
  #movesAtDelivery = -1;
  /** Facts up to this `seq` have been waited for in vain. */
  #givenUpSeq = 0;
  #isReplaying: boolean;
  #outcome: Outcome | null = null;

  constructor(parts: CourseParts) {
    this.#parts = parts;
    this.#delivery = createDelivery(parts.history);
    this.#agenda = createAgenda({ ...parts, requests: this.#requests });
    this.#ending = createEnding({
      ...parts,
      absorb: (events) => this.#absorb(events),
      handledFailures: () => [...this.#handledFailures],
    });
    this.#now = parts.claimed.createdAt;
    this.#isReplaying = parts.history.length > 0;
  }

  async run(): Promise<Outcome> {
    const { holding, settle } = this.#parts;
    this.#outcome = await this.#prepare();
    this.#outcome ??= await this.#startCode();
    while (this.#outcome === null) {
      await settle();
      holding.assertHeld();
      this.#outcome = await this.#advance();
    }
    return this.#outcome;
  }

  /** What the run was told while nobody held it comes first; code need not begin only to be stopped. */
  async #prepare(): Promise<Outcome | null> {
    const { orders, claimed, history, holding } = this.#parts;
    orders.obey();
    while (orders.isPaused) {
      const outcome = await this.#ending.pause();
      if (outcome !== null) return outcome;
    }
    if (orders.stop !== null && (claimed.epoch === 1 || isBetweenAttempts(history)))
      return this.#ending.stop(orders.stop);
    while (holding.hasFacts) await this.#record();
    return null;
  }

  /** What the code is called with; an outcome where that cannot be had. */
  async #readInput(): Promise<{ readonly input: unknown } | { readonly outcome: Outcome }> {
    const { claimed, workflow, history, holding, payloads } = this.#parts;
    const fact = { kind: "input_parsed", name: null } as const;
    const parsed = history.find(({ kind }) => kind === fact.kind);
    let input: unknown;
    try {
      const place = parsed === undefined ? placeOfInput(claimed.runId) : placeOfEvent(claimed.runId, fact);
      input = payloads.decode(parsed === undefined ? claimed.input : parsed.data, place);
    } catch (error) {
      return { outcome: await this.#ending.blockUnreadable(error) };
    }
    if (!claimed.isRaw || workflow.inputSchema === null || parsed !== undefined) return { input };
    // An input that came from SQL is parsed by the first holder, once: what the schema makes of it becomes a fact.
    const what = `input of workflow ${workflow.name}`;
    try {
      input = await parseWith(workflow.inputSchema, input, what);
      const data = payloads.encode(input, placeOfEvent(claimed.runId, fact), `The ${what}`);
      holding.add({ ...fact, data });
    } catch (thrown) {
      const error = Object.assign(thrown as Error, { retryable: false });
      return { outcome: await this.#ending.finish({ kind: "threw", error }) };
    }
    while (holding.hasFacts) await this.#record();
    return { input };
  }

  async #startCode(): Promise<Outcome | null> {
    const { claimed, workflow, log, bell, payloads } = this.#parts;
    const { runId, version, attempt, key, parentId } = claimed;
    const read = await this.#readInput();
    if ("outcome" in read) return read.outcome;
    const parts = {
      run: { id: runId, workflow: claimed.workflow, version, attempt, key, parentId },
      signalSchemas: workflow.signalSchemas,
      log: createRunLog(log, {}, () => this.#isReplaying),
      random: () => (this.#random ??= createSeededRandom(`${runId}/${this.#delivered}`)),
      now: () => this.#now,
      payloads,
      transact: this.#parts.transact,
    };
    const scope = createScope("", (terms) => this.#ask(terms));
    const ctx = createContext(parts, scope);
    const end = (end: CodeEnd): void => {
      this.#codeEnd = end;
      this.#moves += 1;
      bell.ring();
    };
    (async () => workflow.call(ctx, read.input))().then(
      (output) => end({ kind: "returned", output }),
      (error: unknown) => end({ kind: "threw", error }),
    );
    return null;
  }

  #ask(terms: RequestTerms): Promise<unknown> {
    if (this.#outcome !== null || this.#codeEnd !== null) return this.#ignore(terms);
    if (this.#refusal !== null) return Promise.reject(this.#refusal);
    const request = createRequest(terms);
    for (const mark of this.#delivery.ask(request)) {
      if (mark.kind === "timer_set" && "dueAt" in request) request.dueAt = mark.dueAt;
      if (mark.kind === "child_started" && request.family === "child") request.childId = idOfChild(mark.data);
      if (mark.kind === "timer_set" || mark.kind === "child_started") request.state = "issued";
    }
    this.#requests.add(request);
    if (this.#lastFailure !== null) this.#handledFailures.add(this.#lastFailure.seq);
    this.#moves += 1;
    this.#parts.bell.ring();
    return request.promise;
  }

  /** Nobody will answer: the run is in other hands, or over. */
  #ignore({ family, key }: RequestTerms): Promise<never> {
    if (this.#outcome === "parked") {
      const message =
        "The run was parked while its code awaited something other than its context: put that into a step.";
      this.#parts.log.warn(message, { family, key });
    }
    return new Promise(() => {});
  }

  /** The code rests. Does the one thing that comes next; null: let it rest again. */
  async #advance(): Promise<Outcome | null> {
    const { holding, orders, steps, isReleasing } = this.#parts;
    const unasked = this.#refusal === null ? this.#delivery.firstUnasked() : null;
    if (this.#codeEnd !== null) {
      return unasked !== null && orders.stop === null ? this.#block() : this.#ending.finish(this.#codeEnd);
    }
    const next = this.#delivery.peek();
    const isNext =
      next !== null && (unasked === null || next.seq < unasked.seq || unasked.seq <= this.#givenUpSeq);
    // What the last steps brought goes to the code first: it may be all that it needed to come to its end.
    const isWaiting = this.#isReplaying || (this.#requests.size > 0 && !isNext);
    if (isReleasing() && steps.size === 0 && isWaiting) {
      if (holding.hasFacts) return this.#record();
      await holding.release();
      return "released";
    }
    if (isNext) return this.#deliver(next);
    return unasked === null ? this.#live() : this.#awaitAsking(unasked, next);
  }

  async #deliver(event: RunEvent): Promise<Outcome | null> {
    const { payloads, claimed } = this.#parts;
    this.#delivery.take();
    this.#now = Math.max(this.#now, event.at);
    // A new generator after each fact: what steps draw, which do not run again in replay, shifts nothing.
    this.#delivered += 1;
    this.#random = null;
    this.#movesAtDelivery = this.#moves;
    this.#lastFailure = isFailure(event) ? event : null;
    if (event.kind === "cancel_requested") this.#cancel(event);
    const meaning = meaningOf(event);
    const request = meaning === null ? undefined : this.#requests.find(meaning);
    if (request !== undefined) {
      this.#requests.settle(request);
      try {
        answer(request, event, placeOfEvent(claimed.runId, event), payloads);
      } catch (error) {
        return this.#ending.blockUnreadable(error);
      }
    }
    return null;
  }

  /** Nothing begins any more. Steps that have begun are waited for: the code learns what they did. */
  #cancel(event: RunEvent): void {
    const { steps, claimed } = this.#parts;
    this.#refusal = stopError(stopOf(event), claimed.runId);
    steps.abort(this.#refusal);
    for (const request of this.#requests.all()) {
      const hasBegun =
        request.family === "step" && (request.state !== "held" || this.#delivery.hasAnswer(request));
      if (hasBegun) continue;
      this.#requests.settle(request);
      request.reject(this.#refusal);
    }
  }

  /**
   * The history goes on with a fact that the code does not ask for. It may still be on its way there, awaiting
   * something other than its context: so it gets some time, before it is given later facts, or blocked.
   */
  async #awaitAsking(unasked: RunEvent, next: RunEvent | null): Promise<Outcome | null> {
    const { bell, restGraceMs, log, isReleasing, holding } = this.#parts;
    const moves = this.#moves;
    const until = { isOver: false };
    const stopTimer = this.#parts.timers.after(restGraceMs, () => {
      until.isOver = true;
      bell.ring();
    });
    while (this.#moves === moves && !until.isOver && !isReleasing()) {
      await bell.wait();
      holding.assertHeld();
    }
    stopTimer();
    if (isReleasing() && this.#moves === moves) return null;
    const expected = { seq: unasked.seq, kind: unasked.kind, name: unasked.name };
    if (this.#moves !== moves) {
      log.warn(
        "The code awaits something other than its context, which makes replay slow: put that into a step.",
        { expected },
      );
      return null;
    }
    if (next === null) return this.#block();
    this.#givenUpSeq = unasked.seq;
    return null;
  }

  #block(): Promise<Outcome> {
    const unasked = this.#delivery.unasked(10);
    return this.#ending.block(findDifference(unasked, this.#requests.all(), this.#codeEnd));
  }

  /** Every fact has been given. */
  async #live(): Promise<Outcome | null> {
    const { holding, inbox, orders, steps, isReleasing } = this.#parts;
    this.#isReplaying = false;
    if (holding.isTold) inbox.fill(await holding.readInbox());
    orders.obey();
    try {
      if (!this.#isHalted()) await this.#agenda.takeMessages();
      // The code may have come to its end meanwhile, and then nothing begins any more.
      if (this.#codeEnd !== null) return null;
      if (!this.#isHalted()) {
        this.#agenda.issue();
        this.#agenda.fireTimers();
      }
    } catch (error) {
      return this.#ending.blockUnreadable(error);
    }
    const isBusy = steps.size > 0 || this.#requests.size === 0;
    if (holding.hasAnswers || holding.hasTooMany || (holding.hasFacts && isBusy)) return this.#record();
    if (isBusy) return this.#rest();
    if (isReleasing()) return null;
    return orders.isPaused ? this.#ending.pause() : this.#park();
  }

  /** Nothing new begins. */
  #isHalted(): boolean {
    const { orders, isReleasing } = this.#parts;
    return orders.stop !== null || orders.isPaused || isReleasing();
  }

  async #record(): Promise<null> {
    this.#absorb(await this.#parts.holding.record());
    return null;
  }

  #absorb(events: readonly RunEvent[]): void {
    for (const event of events) {
      this.#delivery.add(event);
      if (event.kind === "cancel_requested") this.#parts.cancelRecorded();
      const meaning = event.kind === "timer_set" ? meaningOf(event) : null;
      const request = meaning === null ? undefined : this.#requests.find(meaning);
      if (request !== undefined && "dueAt" in request) request.dueAt = event.dueAt;
    }
  }

  /** A step runs, or the code does: waits until something happens, or is due. Code that does not heed a stop is given up. */
  async #rest(): Promise<Outcome | null> {
    const { bell, holding, orders, steps, log } = this.#parts;
    if (orders.stop !== null) {
      if (await bell.wait(patienceMs)) return null;
      holding.assertHeld();
      log.warn("The run was told to stop, and ends without its code.", { steps: steps.running() });
      return this.#ending.stop(orders.stop);
    }
    const dueAt = earliest(this.#isHalted() ? null : this.#agenda.nextDueAt(), this.#deadlineAt());
    if (dueAt === null) {
      await bell.wait();
      return null;
    }
    const leftMs = Math.max(1, dueAt - holding.time.estimate());
    const rung = await bell.wait(holding.time.isKnown ? leftMs : Math.min(leftMs, longestGuessMs));
    if (!rung) await holding.lookAtClock();
    return null;
  }

  #deadlineAt(): number | null {
    return this.#parts.orders.stop === null ? this.#parts.claimed.deadlineAt : null;
  }

  async #park(): Promise<Outcome | null> {
    const { bell, holding, inbox, parkGraceMs } = this.#parts;
    // The last fact led to nothing: the code waits for others, or for something that the engine cannot see.
    if (this.#movesAtDelivery === this.#moves && (await bell.wait(parkGraceMs))) return null;
    const { answer, events } = await holding.park({
      reason: "waiting",
      dueAt: earliest(this.#agenda.nextDueAt(), this.#deadlineAt()),
      delayMs: null,
      wants: [...this.#agenda.wants(), "cancel", "pause"],
      attemptFailed: false,
    });
    if (answer.outcome === "parked") return "parked";
    this.#absorb(events);
    if (answer.outcome === "told") inbox.fill(answer.messages);
    return null;
  }
}

/** The last attempt, or life, is over, and the next has not left a trace. */
function isBetweenAttempts(history: readonly RunEvent[]): boolean {
  const last = history.findLast(({ kind }) => !["paused", "resumed", "rescheduled"].includes(kind))?.kind;
  return last === "attempt_failed" || last === "redriven";
}
