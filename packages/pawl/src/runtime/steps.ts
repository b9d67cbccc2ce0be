import type { Clock } from "../core/clock.ts";
import type { Probe } from "../core/crash-point.ts";
import { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { Payload } from "../core/json.ts";
import type { Log } from "../core/log.ts";
import { placeOfEvent, type PayloadPlace } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { Random } from "../core/random.ts";
import { publishedWith } from "../core/request-key.ts";
import type { Timers } from "../core/timers.ts";
import type { Watch } from "../core/watch.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { Fact } from "./gathered.ts";
import type { Holding } from "./holding.ts";
import { planNextAttempt } from "./next-attempt.ts";
import type { CallStanding, StepRequest } from "./request.ts";
import { RunningList, type Listed } from "./running-list.ts";
import { Settled } from "./settled.ts";
import { Shown } from "./shown.ts";
import { StepAttempt, type AttemptEnd, type AttemptParts } from "./step-attempt.ts";
import type { StepContext } from "./step-context.ts";
import { createStepPasts, describeIntent, markDoubtful, type StepPasts } from "./step-past.ts";
import type { Streams } from "./streams.ts";

/** A step in progress: since when by the store's clock, as far as it is known, and by this process's. */
export interface RunningStep {
  readonly key: string;
  readonly beganAt: number;
  readonly since: number;
  /** What it has said of how far it has come, as it is stored. */
  readonly progress: Payload | null;
}

/** The steps that have begun: those that are executed, and those that wait for their next attempt. */
export interface Steps {
  /** How many are executed, or are about to be: the run cannot be let go of. */
  size(): number;
  /** Whether one waits for an attempt that is due so soon that parking the run is not worth it. */
  hasShortWait(): boolean;
  /** When the next attempt is due. */
  nextDueAt(): number | null;
  /** The step whose function is being called at this moment: what runs is not the workflow's code. */
  calling(): string | null;
  /** Keys of the running steps, in the order started. */
  running(): readonly string[];
  inProgress(): readonly RunningStep[];
  /** Keys of those that ran at this instant of the process's clock, or have since; of those that ended only the last. */
  ranSince(at: number): readonly string[];
  /** What the history tells of them. */
  pasts(): StepPasts;
  /** Takes note of the history, and of what was undone before it, before anything starts. */
  remember(history: readonly RunEvent[], undoneBefore: ReadonlyMap<string, number>): void;
  /** This fact is in the history now. */
  recorded(event: RunEvent): void;
  start(request: StepRequest): void;
  /** Calls the functions of the steps whose intent is recorded by now. */
  beginIntended(): void;
  /** Begins the attempts whose time has certainly come. */
  beginDue(): void;
  /** Those that are not executed at this moment do not begin any more. */
  refuse(reason: Error): void;
  /** Nobody waits for this one any more: tells it so, and does not try it again. */
  withdraw(key: string, reason: Error): void;
  /** Tells all that are executed that their result is no longer wanted. */
  abort(reason: Error): void;
  /** Waits for none of them any more: whatever they still do is not recorded. */
  giveUp(): void;
  /** Calls what undoes a step; seen, and told when the run is lost, like a step. Never rejects. */
  callUndo(key: string, attempt: number, call: (step: StepContext) => unknown): Promise<AttemptEnd>;
}

export interface StepsParts {
  readonly claimed: ClaimedRun;
  readonly holding: Holding;
  readonly streams: Streams;
  readonly probe: Probe;
  readonly log: Log;
  readonly payloads: Payloads;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly watch?: Watch | undefined;
  /** Called when something is there to be recorded, or when a step does not begin because the run is lost. */
  readonly changed: () => void;
}

interface Execution extends RunningStep, Listed {
  attempt: StepAttempt | null;
}

/** A run keeps its place in the worker for a next attempt that is due within this time. */
export const shortWaitMs = 5_000;

export function createSteps(parts: StepsParts): Steps {
  return new RunSteps(parts);
}

interface WaitingStep {
  readonly request: StepRequest;
  readonly dueAt: number;
}

/** What few runs need is made when it is needed: most have no step that waits, or says first that it begins. */
class RunSteps implements Steps {
  readonly #parts: StepsParts;
  /** A fact about them must be in the history before they go on. */
  #recording: Map<string, StepRequest> | null = null;
  #intended: Map<string, StepRequest> | null = null;
  #waiting: Map<string, WaitingStep> | null = null;
  readonly #running = new RunningList<Execution>();
  #pasts: StepPasts | null = null;
  #undone: ReadonlyMap<string, number> | null = null;
  /** Nothing is tried again. */
  #isStopped = false;
  #calling: string | null = null;
  #lastEnded: { readonly key: string; readonly at: number } | null = null;

  constructor(parts: StepsParts) {
    this.#parts = parts;
  }

  size(): number {
    return this.#running.size + (this.#recording?.size ?? 0) + (this.#intended?.size ?? 0);
  }

  hasShortWait(): boolean {
    if (this.#waiting === null || this.#waiting.size === 0) return false;
    const soon = this.#parts.holding.time.estimate() + shortWaitMs;
    return [...this.#waiting.values()].some(({ dueAt }) => dueAt <= soon);
  }

  nextDueAt(): number | null {
    if (this.#waiting === null || this.#waiting.size === 0) return null;
    return Math.min(...[...this.#waiting.values()].map(({ dueAt }) => dueAt));
  }

  calling(): string | null {
    return this.#calling;
  }

  running(): readonly string[] {
    return this.#running.all().map(({ key }) => key);
  }

  inProgress(): readonly RunningStep[] {
    return this.#running.all();
  }

  ranSince(at: number): readonly string[] {
    const last = this.#lastEnded;
    return last !== null && last.at >= at ? [...this.running(), last.key] : this.running();
  }

  pasts(): StepPasts {
    return (this.#pasts ??= createStepPasts([]));
  }

  remember(history: readonly RunEvent[], undoneBefore: ReadonlyMap<string, number>): void {
    if (history.length > 0) this.#pasts = createStepPasts(history);
    if (undoneBefore.size > 0) this.#undone = undoneBefore;
  }

  recorded(event: RunEvent): void {
    this.pasts().add(event);
    const { kind, name } = event;
    if (name === null || (kind !== "step_intended" && kind !== "step_retried")) return;
    const request = this.#recording?.get(name);
    if (request === undefined) return;
    this.#recording?.delete(name);
    if (request.state === "settled") return;
    if (kind === "step_intended") (this.#intended ??= new Map()).set(name, request);
    else this.#wait(request, event.dueAt ?? 0);
  }

  start(request: StepRequest): void {
    const { holding } = this.#parts;
    const { isOpen, dueAt } = this.pasts().of(request.key);
    if (isOpen && request.terms.failsOnCrash) this.#failUnbegun(request, crashError(request.key), true);
    else if (dueAt !== null && dueAt > holding.time.reached) this.#wait(request, dueAt);
    else this.#prepare(request);
  }

  beginIntended(): void {
    if (this.#intended === null) return;
    for (const [key, request] of this.#intended) {
      this.#intended.delete(key);
      this.#begin(request);
    }
  }

  beginDue(): void {
    if (this.#waiting === null) return;
    for (const [key, { request, dueAt }] of this.#waiting) {
      if (dueAt > this.#parts.holding.time.reached) continue;
      this.#waiting.delete(key);
      this.#prepare(request);
    }
  }

  refuse(reason: Error): void {
    this.#isStopped = true;
    this.#waiting = null;
    const unbegun = [...(this.#recording?.values() ?? []), ...(this.#intended?.values() ?? [])];
    for (const request of unbegun) this.#failUnbegun(request, reason, false);
    this.#recording = null;
    this.#intended = null;
  }

  withdraw(key: string, reason: Error): void {
    this.#waiting?.delete(key);
    const unbegun = this.#recording?.get(key) ?? this.#intended?.get(key);
    this.#recording?.delete(key);
    this.#intended?.delete(key);
    // Else its intent would tell of something that may have happened.
    if (unbegun !== undefined) this.#failUnbegun(unbegun, reason, false);
    this.#running.find(key)?.attempt?.abort(reason);
  }

  abort(reason: Error): void {
    this.#isStopped = true;
    for (const { attempt } of this.#running.all()) attempt?.abort(reason);
  }

  giveUp(): void {
    this.#running.clear();
  }

  async callUndo(key: string, number: number, call: (step: StepContext) => unknown): Promise<AttemptEnd> {
    const { holding, probe, log, clock, timers } = this.#parts;
    const name = `undo ${key}`;
    probe("undo.before");
    holding.assertHeld();
    const beganAt = holding.time.estimate();
    const running = { key: name, beganAt, since: clock.now(), progress: null };
    const execution: Execution = { ...running, attempt: null, place: 0, order: 0 };
    this.#running.enter(execution);
    const end = await new Promise<AttemptEnd>((ended) => {
      execution.attempt = new StepAttempt({
        key: name,
        number,
        timeoutMs: null,
        log,
        timers,
        call,
        idempotencyKey: () => this.idempotencyKeyOf(key),
        earlierProgress: () => undefined,
        stream: () => this.streamOf(execution, number),
        progressed: () => {},
        ended,
      });
    });
    this.#leave(execution);
    probe("undo.after");
    return end;
  }

  /** The same for every attempt at the step, and for its undo. Whoever knows what was undone under it must not answer that. */
  idempotencyKeyOf(key: string): string {
    const { runId } = this.#parts.claimed;
    const since = this.#undone?.get(key);
    return since === undefined ? `${runId}/${key}` : `${runId}/${key}#since${since}`;
  }

  streamOf(execution: Execution, number: number): StepContext["stream"] {
    return this.#parts.streams.ofStep(execution.key, number, () => this.isAwaited(execution));
  }

  isAwaited(execution: Execution): boolean {
    return this.#running.has(execution);
  }

  /** Nothing else may win a race meanwhile: a wait would take a signal that nobody is there to get. */
  isAhead(call: StepCall, is: boolean): void {
    const { request } = call;
    if (request.state !== (is ? "issued" : "answering") || !this.isAwaited(call)) return;
    request.state = is ? "answering" : "issued";
    if (!is) this.#parts.changed();
  }

  /** Calls the function, while the first part of which runs the code's context is not to be used. */
  call(stepCall: StepCall, step: StepContext): unknown {
    const { watch, claimed } = this.#parts;
    const { key, request } = stepCall;
    this.#calling = key;
    try {
      if (watch === undefined) return request.call(step, stepCall);
      // As development mode sees it.
      const place = { workflow: claimed.workflow, version: claimed.version, step: key };
      return watch.inside(place, () => request.call(step, stepCall));
    } finally {
      this.#calling = null;
    }
  }

  /** What cannot be read is no reason to fail. */
  readProgress(key: string, progress: Payload | null): unknown {
    if (progress === null) return undefined;
    try {
      return this.#parts.payloads.decode(progress, this.#placeOf(key));
    } catch (error) {
      this.#parts.log.warn("The progress of a step cannot be read, and is left out.", { step: key, error });
      return undefined;
    }
  }

  progressed(call: StepCall, details: unknown): void {
    const { holding, payloads, log, changed } = this.#parts;
    const { key, number } = call;
    try {
      const data = payloads.encode(details, this.#placeOf(key), `The progress of step "${key}"`);
      if (this.isAwaited(call)) call.progress = data;
      holding.add({ kind: "step_progressed", name: key, attempt: number, data });
      changed();
    } catch (error) {
      log.warn("The progress of a step cannot be recorded, and is left out.", { step: key, error });
    }
  }

  ended(call: StepCall, end: AttemptEnd): void {
    this.#parts.probe("step.after");
    // It was given up meanwhile.
    if (!this.isAwaited(call)) return;
    // First of all: whatever goes wrong from here on, nobody waits for it in vain.
    call.tookMs = this.#leave(call) - call.since;
    if (end.kind === "returned") this.#answer(call, end.result);
    else this.#fail(call, end.error, end.wasStopped);
    this.#parts.changed();
  }

  #placeOf(key: string): PayloadPlace {
    return placeOfEvent(this.#parts.claimed.runId, { kind: "step_completed", name: key });
  }

  #wait(request: StepRequest, dueAt: number): void {
    request.state = "held";
    (this.#waiting ??= new Map()).set(request.key, { request, dueAt });
  }

  /** Says so first, where somebody must know of the attempt though its worker may die in it. */
  #prepare(request: StepRequest): void {
    const { key, terms } = request;
    const past = this.pasts().of(key);
    request.state = "issued";
    // One that is taken over says nothing new; one that is open and must not be repeated does not come here.
    const mustBeKnown = terms.undo !== null || terms.failsOnCrash;
    if (!mustBeKnown || past.isOpen) return this.#begin(request);
    this.#noteRecording(request);
    const data = describeIntent(terms.undo !== null);
    this.#parts.holding.add({ kind: "step_intended", name: key, attempt: past.attempts + 1, data });
  }

  #noteRecording(request: StepRequest): void {
    (this.#recording ??= new Map()).set(request.key, request);
  }

  #begin(request: StepRequest): void {
    const { holding, probe, log, clock, timers, changed } = this.#parts;
    const { attempts, progress } = this.pasts().of(request.key);
    probe("step.before");
    if (!holding.isHeld()) return changed();
    const call = new StepCall(this, request, attempts + 1, progress, {
      log,
      timers,
      beganAt: holding.time.estimate(),
      since: clock.now(),
    });
    this.#running.enter(call);
    call.attempt = new StepAttempt(call);
  }

  /** What the step returns is written down before the code sees it, so a result that cannot be is a failure. */
  #answer(call: StepCall, answer: unknown): void {
    const { key } = call;
    if (answer instanceof Settled) return this.#settle(call, answer);
    const values = answer instanceof Shown ? answer.values : null;
    const result = answer instanceof Shown ? answer.result : answer;
    let data: Payload | null;
    let shown: readonly Fact[] | null = null;
    try {
      data = this.#parts.payloads.encode(result, this.#placeOf(key), `The result of step "${key}"`);
      if (values !== null) shown = this.#factsOfShown(key, values);
    } catch (error) {
      return this.#addAnswer(call, "step_failed", this.#encodeFailure(call.request, error, true));
    }
    this.#addAnswer(call, "step_completed", data);
    if (shown !== null) for (const fact of shown) this.#parts.holding.add(fact);
  }

  #factsOfShown(key: string, values: ReadonlyMap<string, Payload | null>): readonly Fact[] {
    const { payloads, claimed } = this.#parts;
    return [...values].map(([name, value]) => {
      const fact = { kind: "published", name: publishedWith(key, name) } as const;
      return { ...fact, data: payloads.seal(value, placeOfEvent(claimed.runId, fact)) };
    });
  }

  #fail(call: StepCall, error: unknown, wasStopped: boolean): void {
    const { holding, random, log } = this.#parts;
    const { request, beganAt } = call;
    const { key, terms } = request;
    const past = this.pasts().of(key);
    const now = holding.time.estimate();
    const isUnwanted = this.#isStopped || request.state === "settled";
    const next = isUnwanted
      ? null
      : planNextAttempt(error, past.failures + 1, { retrying: terms.retrying, random, log, now });
    const data = this.#encodeFailure(request, error, wasStopped);
    if (next === null) return this.#addAnswer(call, "step_failed", data);
    this.#noteRecording(request);
    const dueAt = next.dueAt ?? Math.ceil(now + next.delayMs);
    const attempt = past.attempts + 1;
    holding.add({ kind: "step_retried", name: key, attempt, beganAt, dueAt, data });
    log.warn("An attempt at a step has failed.", {
      step: key,
      attempt,
      error,
      nextTryInMs: Math.max(0, Math.round(dueAt - now)),
    });
  }

  #encodeFailure({ key, terms }: StepRequest, error: unknown, isDoubtful: boolean): Payload {
    const data = this.#parts.payloads.encodeError(error, this.#placeOf(key));
    return isDoubtful && terms.undo !== null ? markDoubtful(data) : data;
  }

  /** It has taken care of its record. */
  #settle(call: StepCall, { fact }: Settled): void {
    if (fact !== null) this.#addAnswer(call, fact.kind, fact.data);
    else if (call.request.state === "issued") call.request.state = "answering";
  }

  #addAnswer(call: StepCall, kind: "step_completed" | "step_failed", data: Payload | null): void {
    const { holding, claimed } = this.#parts;
    const { request, beganAt, tookMs } = call;
    if (request.state === "issued") request.state = "answering";
    const fact = { kind, name: request.key, attempt: claimed.attempt, beganAt, data };
    holding.add(fact, undefined, tookMs);
  }

  /** Answers when. */
  #leave(execution: Execution): number {
    this.#running.leave(execution);
    const at = this.#parts.clock.now();
    this.#lastEnded = { key: execution.key, at };
    return at;
  }

  /** A step that does not begin, or not again. */
  #failUnbegun(request: StepRequest, error: Error, isDoubtful: boolean): void {
    const { holding, claimed, changed } = this.#parts;
    const { key } = request;
    if (request.state !== "settled") request.state = "answering";
    const data = this.#encodeFailure(request, error, isDoubtful);
    holding.add({ kind: "step_failed", name: key, attempt: claimed.attempt, data });
    changed();
  }
}

function crashError(key: string): Error {
  const message = `The worker died in step "${key}", which is not called again: it may have happened.`;
  return Object.assign(new PawlError("STEP_CRASHED", message, { step: key }), { retryable: false });
}

/** A call of a step's function: seen by whoever asks what runs, by its attempt, and by the function where that needs to know. */
class StepCall implements Execution, AttemptParts, CallStanding {
  readonly request: StepRequest;
  readonly number: number;
  readonly log: Log;
  readonly timers: Timers;
  readonly beganAt: number;
  readonly since: number;
  attempt: StepAttempt | null = null;
  progress: Payload | null;
  /** Once it has ended. */
  tookMs = 0;
  place = 0;
  order = 0;
  readonly #steps: RunSteps;
  readonly #earlier: Payload | null;

  constructor(
    steps: RunSteps,
    request: StepRequest,
    number: number,
    progress: Payload | null,
    { log, timers, beganAt, since }: Pick<StepCall, "log" | "timers" | "beganAt" | "since">,
  ) {
    this.request = request;
    this.number = number;
    this.log = log;
    this.timers = timers;
    this.beganAt = beganAt;
    this.since = since;
    this.progress = progress;
    this.#steps = steps;
    this.#earlier = progress;
  }

  get key(): string {
    return this.request.key;
  }

  get timeoutMs(): number | null {
    return this.request.terms.timeoutMs;
  }

  call(step: StepContext): unknown {
    return this.#steps.call(this, step);
  }

  idempotencyKey(): string {
    return this.#steps.idempotencyKeyOf(this.key);
  }

  earlierProgress(): unknown {
    return this.#steps.readProgress(this.key, this.#earlier);
  }

  stream(): StepContext["stream"] {
    return this.#steps.streamOf(this, this.number);
  }

  progressed(details: unknown): void {
    this.#steps.progressed(this, details);
  }

  ended(end: AttemptEnd): void {
    this.#steps.ended(this, end);
  }

  isAwaited(): boolean {
    return this.#steps.isAwaited(this);
  }

  isAhead(is: boolean): void {
    this.#steps.isAhead(this, is);
  }
}
