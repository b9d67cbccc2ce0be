import type { StandardSchemaV1 } from "@standard-schema/spec";
import { idOfChild } from "../core/child-end.ts";
import { PawlError } from "../core/error.ts";
import { findNewerEvent, type RunEvent } from "../core/event.ts";
import { isOrder, meaningOf } from "../core/fact.ts";
import type { Ids } from "../core/ids.ts";
import { placeOfEvent, placeOfInput } from "../core/payload-codec.ts";
import { asFinal } from "../core/retry-error.ts";
import { parseWith } from "../core/schema.ts";
import type { Timers } from "../core/timers.ts";
import type { Watch, WatchedPlace } from "../core/watch.ts";
import { createAgenda, earliest, type Agenda } from "./agenda.ts";
import { readAnswer } from "./answer.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import { findDifference, type CodeEnd } from "./difference.ts";
import {
  completeAtOnce,
  createEnding,
  patienceMs,
  type Ending,
  type EndingParts,
  type Outcome,
} from "./ending.ts";
import { createFailures } from "./failures.ts";
import { Lost } from "./holding.ts";
import { stopError, stopOf } from "./orders.ts";
import { createPatches, type Patches } from "./patches.ts";
import { enterBranch, isLost } from "./race.ts";
import {
  createRequest,
  rejectRequest,
  requestOf,
  type Branch,
  type Request,
  type RequestTerms,
} from "./request.ts";
import { createRequests } from "./requests.ts";
import { RunCode, type CodeHost } from "./run-code.ts";
import type { UndoTerms } from "./step-options.ts";
import type { Streams } from "./streams.ts";
import type { Transact } from "./transactions.ts";

/** Says what the schema made of the input. */
const inputParsed = { kind: "input_parsed", name: null } as const;

export interface CourseParts extends EndingParts {
  readonly ids: Ids;
  readonly streams: Streams;
  readonly timers: Timers;
  readonly settle: () => Promise<void>;
  readonly restGraceMs: number;
  readonly parkGraceMs: number;
  readonly cancelRecorded: () => void;
  readonly transact: Transact;
  readonly watch?: Watch | undefined;
  /** Its code, where it has begun. */
  readonly code?: RunCode;
}

/**
 * Takes one run from its claim as far as it goes. The code runs until it rests; then it is given one fact, or, when all
 * facts have been given, what it asks for is begun; then it rests again. Replay and live execution are this one loop.
 */
export class Course implements CodeHost {
  readonly #parts: CourseParts;
  readonly #code: RunCode;
  readonly #delivery: Delivery;
  readonly #requests = createRequests();
  readonly #failures = createFailures();
  /** Lost a race, and the history does not say so yet. */
  #withdrawn: Request[] = [];
  #madeAgenda: Agenda | null = null;
  #madeEnding: Ending | null = null;
  #patches: Patches | null = null;
  #codeEnd: CodeEnd | null = null;
  /** The request that was answered last, in words. */
  #lastGiven: string | null = null;
  /** What the code has said undoes a step. */
  #undos: Map<string, UndoTerms> | null = null;
  /** What every request gets from the moment the code knows that it is to stop. */
  #refusal: PawlError | null = null;
  /** Counts what the code does: it asks for something, or comes to its end. */
  #moves = 0;
  #movesAtDelivery = -1;
  /** Facts up to this `seq` have been waited for in vain. */
  #givenUpSeq = 0;
  #isReplaying: boolean;
  /** The fact that says that the run was last resumed. */
  #resumedSeq: number;
  /** The count of moves with which the run was parked; null where it is not known how it was parked. */
  #movesAtPark: number | null = null;
  #outcome: Outcome | null = null;
  /** Made once: there is a record for every step. */
  #recorded: ((events: readonly RunEvent[]) => null) | null = null;

  constructor(parts: CourseParts) {
    this.#parts = parts;
    this.#delivery = createDelivery(parts.history);
    this.#code = parts.code ?? new RunCode(parts, this);
    this.#isReplaying = parts.history.length > 0;
    this.#resumedSeq = parts.history.findLast(isResumption)?.seq ?? 0;
  }

  get #agenda(): Agenda {
    return (this.#madeAgenda ??= createAgenda(this.#parts, this.#requests));
  }

  get #ending(): Ending {
    return (this.#madeEnding ??= createEnding(this.#parts, {
      absorb: (events) => this.#absorb(events),
      handledFailures: (thrown) => this.#failures.handled(thrown),
      undos: (this.#undos ??= new Map()),
    }));
  }

  run(): Promise<Outcome> {
    return this.#go(true);
  }

  /** Takes over a run whose code has begun. */
  goOn(): Promise<Outcome> {
    return this.#go(false);
  }

  /** Whether the parked run's code still waits exactly as its history says. */
  get isResumable(): boolean {
    return this.#outcome === "parked" && this.#moves === this.#movesAtPark;
  }

  /** Goes on with a parked run that is held again. `fired`: the timer that it was woken by. */
  resume(fired: RunEvent | undefined): Promise<Outcome> {
    this.#outcome = null;
    this.#movesAtPark = null;
    if (fired !== undefined) this.#absorb([fired]);
    return this.#go(false);
  }

  async #go(isFirst: boolean): Promise<Outcome> {
    const { holding, settle, steps } = this.#parts;
    let mayStir = true;
    let movesAtRest = this.#moves;
    if (isFirst) {
      const begun = this.#begun();
      this.#outcome = begun instanceof Promise ? await begun : begun;
    }
    while (this.#outcome === null) {
      // Where steps run, what others of them bring in this turn goes along.
      if (mayStir || this.#moves !== movesAtRest || steps.size() > 0) await settle();
      movesAtRest = this.#moves;
      holding.assertHeld();
      const next = this.#advance();
      this.#outcome = next instanceof Promise ? await next : next;
      // Code that was given nothing, and has done nothing while something was awaited, still rests.
      mayStir = !(next instanceof Promise);
    }
    return this.#outcome;
  }

  /** Begins the code, at once where nothing comes before it. */
  #begun(): Outcome | null | Promise<Outcome | null> {
    const { history, inbox, claimed } = this.#parts;
    const isPlain = history.length === 0 && inbox.isEmpty() && claimed.deadlineAt === null;
    return isPlain ? this.#startCode() : this.#prepareAndStart();
  }

  async #prepareAndStart(): Promise<Outcome | null> {
    const newer = findNewerEvent(this.#parts.history);
    const outcome = await (newer === null ? this.#prepare() : this.#ending.blockNewer(newer));
    return outcome ?? this.#startCode();
  }

  /** What the run was told while nobody held it comes first; code need not begin only to be stopped. */
  async #prepare(): Promise<Outcome | null> {
    const { orders, claimed, history, holding } = this.#parts;
    orders.obey();
    while (orders.isPaused()) {
      const outcome = await this.#ending.pause();
      if (outcome !== null) return outcome;
    }
    const isOver = claimed.epoch === 1 || isBetweenAttempts(history);
    if (orders.stop !== null && isOver && !this.#ending.isUndoExpected())
      return this.#ending.stop(orders.stop);
    while (holding.hasFacts()) await this.#record();
    return null;
  }

  /** Reads what the code is called with, and calls it; an outcome where that cannot be had. */
  #startCode(): Outcome | null | Promise<Outcome | null> {
    const { claimed, workflow, history, payloads } = this.#parts;
    const parsed = history.find(({ kind }) => kind === inputParsed.kind);
    let input: unknown;
    try {
      const place =
        parsed === undefined ? placeOfInput(claimed.runId) : placeOfEvent(claimed.runId, inputParsed);
      input = payloads.decode(parsed === undefined ? claimed.input : parsed.data, place);
    } catch (error) {
      return this.#ending.blockUnreadable(error);
    }
    if (claimed.isRaw && workflow.inputSchema !== null && parsed === undefined)
      return this.#parseAndCall(workflow.inputSchema, input);
    this.#code.call(input);
    return null;
  }

  /** An input that came from SQL is parsed by the first holder, once: what the schema makes of it becomes a fact. */
  async #parseAndCall(schema: StandardSchemaV1, raw: unknown): Promise<Outcome | null> {
    const { claimed, workflow, holding, payloads } = this.#parts;
    const what = `input of workflow ${workflow.name}`;
    let input: unknown;
    try {
      input = await parseWith(schema, raw, what);
      const data = payloads.encode(input, placeOfEvent(claimed.runId, inputParsed), `The ${what}`);
      holding.add({ ...inputParsed, data });
    } catch (thrown) {
      return this.#ending.finish({ kind: "threw", error: asFinal(thrown) });
    }
    while (holding.hasFacts()) await this.#record();
    this.#code.call(input);
    return null;
  }

  isReplaying(): boolean {
    return this.#isReplaying;
  }

  watched<T>(call: () => T): T {
    const { watch } = this.#parts;
    return watch === undefined ? call() : watch.inside(this.#place(), call);
  }

  ended(end: CodeEnd): void {
    if (this.#codeEnd !== null) return;
    this.#codeEnd = end;
    this.#moves += 1;
    this.#parts.bell.ring();
  }

  stopHere(
    asked: { readonly family: string; readonly key: string },
    branch: Branch | null,
    end: () => void,
  ): Promise<never> {
    if (this.#refusal !== null && !this.#isOver()) return Promise.reject(this.#refusal);
    if (isLost(branch)) return Promise.reject(withdrawnError(asked));
    end();
    return new Promise(() => {});
  }

  withdrawHandlers(): boolean {
    let areAnswered = false;
    for (const request of this.#requests.all()) {
      if (request.family !== "update") continue;
      if (request.state === "answering" || this.#delivery.hasAnswer(request.id)) areAnswered = true;
      else this.#requests.settle(request);
    }
    return areAnswered;
  }

  #place(): WatchedPlace {
    const { workflow, version } = this.#parts.claimed;
    return { workflow, version, step: null };
  }

  /** Nobody records the side that code takes which goes on by itself: the run is replayed. */
  patch(id: string): boolean {
    this.#patches ??= createPatches(this.#parts, () => this.#delivery.isSpent());
    if (!this.#isOver()) return this.#patches.isNew(id);
    this.#moves += 1;
    return true;
  }

  ask(terms: RequestTerms, branch: Branch | null): Promise<unknown> {
    this.#parts.watch?.asked(`${terms.family} "${terms.key}"`);
    if (this.#isOver()) return this.#ignore(terms);
    if (this.#refusal !== null) return Promise.reject(this.#refusal);
    const calling = this.#parts.steps.calling();
    if (calling !== null) return Promise.reject(nestedError(calling, terms));
    if (isLost(branch)) return Promise.reject(withdrawnError(terms));
    const request = createRequest(terms);
    enterBranch(request, branch);
    for (const mark of this.#delivery.ask(request.id)) {
      if (mark.kind === "timer_set" && "dueAt" in request) request.dueAt = mark.dueAt;
      if (mark.kind === "child_started" && request.family === "child") request.childId = idOfChild(mark.data);
      if (mark.kind === "paused" && request.family === "pause") request.pausedSeq = mark.seq;
      if (["timer_set", "child_started", "paused"].includes(mark.kind)) request.state = "issued";
    }
    if (request.family === "child" && request.childId !== null) request.state = "issued";
    this.#requests.add(request);
    if (request.family === "step" && request.terms.undo !== null)
      (this.#undos ??= new Map()).set(request.key, request.terms.undo);
    this.#failures.asked();
    this.#moves += 1;
    this.#parts.bell.ring();
    return request.promise;
  }

  /** Answers whether this is the promise of a request, and one that can be in the branch. */
  adopt(promise: Promise<unknown>, branch: Branch): boolean {
    const request = requestOf(promise);
    if (request === undefined || request.branch !== branch.outer) return false;
    if (request.state !== "settled") enterBranch(request, branch);
    return true;
  }

  /** Another branch has won. */
  withdraw(branch: Branch): void {
    branch.isLost = true;
    for (const request of branch.open) {
      const isBegun = request.state === "issued" && leavesMark(request);
      const isKnown = this.#delivery.isWithdrawn(request.id) || this.#delivery.hasAnswer(request.id);
      if (isBegun && !isKnown) this.#withdrawn.push(request);
      const error = withdrawnError(request);
      this.#requests.settle(request);
      if (request.family === "step") this.#parts.steps.withdraw(request.key, error);
      rejectRequest(request, error);
    }
  }

  /** Whatever the code still does concerns nobody. */
  #isOver(): boolean {
    return this.#outcome !== null || this.#codeEnd !== null;
  }

  /** Nobody will answer: the run is in other hands, or over. */
  #ignore({ family, key }: RequestTerms): Promise<never> {
    this.#moves += 1;
    if (this.#outcome === "parked") {
      const message =
        "The run was parked while its code awaited something other than its context: put that into a step.";
      this.#parts.log.warn(message, { family, key });
    }
    return new Promise(() => {});
  }

  /** The code rests. Does the one thing that comes next; null: let it rest again. What need not wait is done at once. */
  #advance(): Outcome | null | Promise<Outcome | null> {
    const { orders, steps, isReleasing } = this.#parts;
    const unasked = this.#refusal === null ? this.#delivery.firstUnasked() : null;
    if (this.#codeEnd !== null) {
      if (unasked !== null && orders.stop === null) return this.#block();
      return this.#finish(this.#codeEnd);
    }
    const next = this.#delivery.peek();
    // Whatever this attempt has recorded after a start was recorded after the new one: code that has not asked for it does not fit.
    const isUnfit = next?.isVacant === true && unasked !== null && orders.stop === null;
    const isNext =
      next !== null &&
      !isUnfit &&
      (unasked === null || next.seq < unasked.seq || unasked.seq <= this.#givenUpSeq);
    // What the last steps brought goes to the code first: it may be all that it needed to come to its end.
    const isWaiting = this.#isReplaying || (this.#requests.size() > 0 && !isNext);
    if (isReleasing() && steps.size() === 0 && isWaiting) return this.#release();
    if (isNext) return next.isVacant === true ? this.#beginAnew(next) : this.#deliver(next);
    return unasked === null ? this.#live() : this.#awaitAsking(unasked, isUnfit ? null : next);
  }

  #finish(end: CodeEnd): Promise<Outcome> {
    // A child that lost a race would go on after the run, or in its next attempt.
    if (this.#withdrawn.length > 0)
      return this.#giveUpWithdrawn(({ family }) => family === "child").then(() => this.#finish(end));
    return completeAtOnce(this.#parts, end, this.#madeEnding !== null) ?? this.#ending.finish(end);
  }

  async #release(): Promise<Outcome | null> {
    const { holding } = this.#parts;
    if (holding.hasFacts()) return this.#record();
    await holding.release();
    return "released";
  }

  #deliver(event: RunEvent): null | Promise<Outcome> {
    const { payloads, claimed } = this.#parts;
    this.#delivery.take();
    // Nobody's code has been given that yet.
    if (event.seq === claimed.fired?.seq) this.#isReplaying = false;
    this.#code.given(event);
    this.#movesAtDelivery = this.#moves;
    if (event.kind === "cancel_requested" || event.kind === "undo_began") this.#cancel(event);
    const meaning = meaningOf(event);
    const request = meaning === null ? undefined : this.#requests.find(meaning);
    if (request !== undefined) {
      this.#requests.settle(request);
      this.#lastGiven = `${request.family} "${request.key}"`;
      try {
        const answer = readAnswer(request, event, placeOfEvent(claimed.runId, event), payloads);
        this.#failures.given(event, answer.kind === "failure" ? answer.error : null);
        if (answer.kind === "failure") rejectRequest(request, answer.error);
        else request.resolve(answer.value);
      } catch (error) {
        return this.#ending.blockUnreadable(error);
      }
    }
    return null;
  }

  /**
   * Others came after the start of this child, and may rest on it: it is started before they are given. What holds for whatever
   * begins holds here, too.
   */
  #beginAnew(vacant: RunEvent): Outcome | null | Promise<Outcome | null> {
    const { holding, orders, isReleasing } = this.#parts;
    if (holding.isTold()) return this.#heed();
    orders.obey();
    const request = this.#requests.find({ family: "start", key: vacant.name ?? "" });
    // A run that is to stop starts nothing: its code gets the child that it had.
    const isStopping = orders.stop !== null || orders.isUndoing;
    if (request?.family !== "start" || isStopping) return this.#deliver(vacant);
    if (isReleasing() || orders.isPaused()) return this.#holdUp();
    try {
      this.#agenda.begin(request);
    } catch (error) {
      if (error instanceof Lost) throw error;
      return this.#ending.blockUnreadable(error);
    }
    return this.#record();
  }

  /** Reads what has come in, and obeys. */
  async #heed(): Promise<null> {
    const { holding, inbox, orders } = this.#parts;
    inbox.fill(await holding.readInbox());
    orders.obey();
    return null;
  }

  /** Lets go of the run once its steps have ended. */
  #holdUp(): Outcome | null | Promise<Outcome | null> {
    const { holding, steps, isReleasing } = this.#parts;
    if (steps.size() === 0) return isReleasing() ? this.#release() : this.#ending.pause();
    steps.beginIntended();
    return holding.hasFacts() ? this.#record() : this.#rest();
  }

  /** Nothing begins any more. Steps that have begun are waited for: the code learns what they did. */
  #cancel(event: RunEvent): void {
    const { steps, claimed, orders } = this.#parts;
    this.#refusal ??=
      event.kind === "undo_began" && orders.stop === null
        ? new PawlError("RUN_FAILED", `Run ${claimed.runId} has failed, and is undone.`)
        : stopError(stopOf(event), claimed.runId, event.data);
    steps.abort(this.#refusal);
    steps.refuse(this.#refusal);
    for (const request of this.#requests.all()) {
      const hasBegun =
        request.family === "step" && (request.state !== "held" || this.#delivery.hasAnswer(request.id));
      if (hasBegun) continue;
      this.#requests.settle(request);
      rejectRequest(request, this.#refusal);
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
  #live(): Outcome | null | Promise<Outcome | null> {
    const { holding, inbox, orders, steps } = this.#parts;
    this.#isReplaying = false;
    if (holding.isTold() || !inbox.isEmpty() || this.#withdrawn.length > 0) return this.#liveTold();
    orders.obey();
    if (orders.stop === null) steps.beginIntended();
    return this.#begin();
  }

  /** The same where something has come in, or must be given up. */
  async #liveTold(): Promise<Outcome | null> {
    const { holding, inbox, orders, steps } = this.#parts;
    if (holding.isTold()) inbox.fill(await holding.readInbox());
    orders.obey();
    if (orders.stop === null) steps.beginIntended();
    try {
      if (!this.#isHalted()) {
        await this.#agenda.takeMessages();
        await this.#giveUpWithdrawn();
      }
    } catch (error) {
      if (error instanceof Lost) throw error;
      return this.#ending.blockUnreadable(error);
    }
    // The code may have come to its end meanwhile, and then nothing begins any more.
    return this.#codeEnd === null ? this.#begin() : null;
  }

  /** Begins what the code asks for, and whose time has come. */
  #begin(): Outcome | null | Promise<Outcome | null> {
    const { holding, orders, steps, isReleasing } = this.#parts;
    try {
      // The store has said that the run was resumed, or its holder reads so now.
      const resumedSeq = orders.takeResumed() ? Infinity : this.#resumedSeq;
      if (orders.stop === null && this.#requests.isPaused()) this.#agenda.endPauses(resumedSeq);
      if (!this.#isHalted()) {
        this.#agenda.issue();
        this.#agenda.fireTimers();
      }
    } catch (error) {
      if (error instanceof Lost) throw error;
      return this.#ending.blockUnreadable(error);
    }
    const isSoonBusy = steps.hasShortWait() && !this.#isHalted();
    const isBusy = steps.size() > 0 || isSoonBusy || this.#requests.size() === 0;
    if (holding.hasAnswers() || holding.hasTooMany() || (holding.hasPressing() && isBusy))
      return this.#record();
    if (isBusy) return this.#rest();
    if (isReleasing()) return null;
    return this.#isPaused() ? this.#ending.pause(this.#requests.isPaused()) : this.#park();
  }

  async #giveUpWithdrawn(isMeant: (request: Request) => boolean = () => true): Promise<void> {
    const withdrawn = this.#withdrawn.filter(isMeant);
    this.#withdrawn = [];
    for (const request of withdrawn) await this.#agenda.withdraw(request);
  }

  /** Nothing new begins. */
  #isHalted(): boolean {
    const { orders, isReleasing } = this.#parts;
    return orders.stop !== null || this.#isPaused() || orders.isUndoing || isReleasing();
  }

  /** By somebody's order, or by the code. */
  #isPaused(): boolean {
    return this.#parts.orders.isPaused() || this.#requests.isPaused();
  }

  #record(): Promise<null> {
    this.#recorded ??= (events) => {
      this.#absorb(events);
      return null;
    };
    return this.#parts.holding.record().then(this.#recorded);
  }

  #absorb(events: readonly RunEvent[]): void {
    for (const event of events) {
      this.#delivery.add(event);
      this.#parts.steps.recorded(event);
      if (event.kind === "cancel_requested") this.#parts.cancelRecorded();
      if (isResumption(event)) this.#resumedSeq = event.seq;
      const isMark = event.kind === "timer_set" || event.kind === "paused";
      const meaning = isMark ? meaningOf(event) : null;
      const request = meaning === null ? undefined : this.#requests.find(meaning);
      if (request?.family === "pause") request.pausedSeq = event.seq;
      else if (request !== undefined && "dueAt" in request) request.dueAt = event.dueAt;
    }
  }

  /** A step runs, or the code does: waits until something happens, or is due. Code that does not heed a stop is given up. */
  #rest(): Promise<Outcome | null> {
    const { bell, orders, steps, watch } = this.#parts;
    if (watch !== undefined && steps.size() === 0 && this.#codeEnd === null)
      watch.strayed(this.#place(), this.#lastGiven);
    if (orders.stop !== null || orders.isUndoing) return this.#restPatiently();
    const dueAt = earliest(this.#isHalted() ? null : this.#agenda.nextDueAt(), this.#deadlineAt());
    return dueAt === null ? bell.wait().then(goOn) : this.#restUntil(dueAt);
  }

  async #restPatiently(): Promise<Outcome | null> {
    const { bell, holding, steps, log } = this.#parts;
    if (await bell.wait(patienceMs)) return null;
    holding.assertHeld();
    log.warn("The run was told to stop, and ends without its code.", { steps: steps.running() });
    return this.#ending.giveUp();
  }

  async #restUntil(dueAt: number): Promise<null> {
    const { bell, holding } = this.#parts;
    const leftMs = Math.max(1, dueAt - holding.time.estimate());
    const rung = await bell.wait(leftMs);
    if (!rung) await holding.lookAtClock();
    return null;
  }

  #deadlineAt(): number | null {
    return this.#parts.orders.stop === null ? this.#parts.claimed.deadlineAt : null;
  }

  async #park(): Promise<Outcome | null> {
    const { bell, holding, inbox, parkGraceMs } = this.#parts;
    // The last fact led to nothing: the code waits for others, or for something that the engine cannot see.
    if (this.#movesAtDelivery === this.#moves) {
      // What has gathered does not wait for that: a timer counts from its record.
      if (holding.hasPressing()) return this.#record();
      if (await bell.wait(parkGraceMs)) return null;
    }
    const deadlineAt = this.#deadlineAt();
    const dueAt = earliest(this.#agenda.nextDueAt(), deadlineAt);
    const { answer, events } = await holding.park({
      reason: "waiting",
      dueAt,
      fires: dueAt === null || dueAt === deadlineAt ? undefined : this.#agenda.firesAt(dueAt),
      delayMs: null,
      wants: [...this.#agenda.wants(), "cancel", "pause"],
      attemptFailed: false,
    });
    this.#absorb(events ?? []);
    if (answer.outcome === "parked") {
      if (events !== null) this.#movesAtPark = this.#moves;
      return "parked";
    }
    if (answer.outcome === "told") inbox.fill(answer.messages);
    return null;
  }
}

function goOn(): null {
  return null;
}

/** Whether the history says that this has begun, before it says how it ended. */
function leavesMark(request: Request): boolean {
  if (request.family === "child") return request.child !== null;
  if (request.family === "pause") return true;
  return request.family === "sleep" || (request.family === "wait" && request.timer !== null);
}

/** Its record would not be asked for once that of the step is there. */
function nestedError(step: string, { family, key }: RequestTerms): PawlError {
  const message =
    `The function of step "${step}" asks for ${family} "${key}": a step may not use the workflow's context. ` +
    "Ask before or after the step, or put what belongs together into a workflow and call that.";
  const details = { step, family, key };
  return Object.assign(new PawlError("NESTED_REQUEST", message, details), { retryable: false });
}

function withdrawnError({ family, key }: { readonly family: string; readonly key: string }): PawlError {
  return new PawlError("WITHDRAWN", `Another branch has won the race that the ${family} "${key}" was in.`, {
    family,
    key,
  });
}

/** Somebody has let the run go on, whatever it paused for. */
function isResumption({ kind, name }: RunEvent): boolean {
  return kind === "resumed" && name === null;
}

/** The last attempt, or life, is over, and the next has not left a trace. */
function isBetweenAttempts(history: readonly RunEvent[]): boolean {
  const last = history.findLast((event) => !isOrder(event) && event.kind !== "rescheduled")?.kind;
  return last === "attempt_failed" || last === "redriven";
}
