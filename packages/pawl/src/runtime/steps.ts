import type { Clock } from "../core/clock.ts";
import type { Probe } from "../core/crash-point.ts";
import { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { Payload } from "../core/json.ts";
import type { Log } from "../core/log.ts";
import { placeOfEvent } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { Random } from "../core/random.ts";
import type { Timers } from "../core/timers.ts";
import type { Watch } from "../core/watch.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { Holding } from "./holding.ts";
import { planNextAttempt } from "./next-attempt.ts";
import type { StepRequest } from "./request.ts";
import { Settled } from "./settled.ts";
import { beginAttempt, type AttemptEnd, type StepAttempt } from "./step-attempt.ts";
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

interface Execution extends RunningStep {
  attempt: StepAttempt | null;
  progress: Payload | null;
}

/** A run keeps its place in the worker for a next attempt that is due within this time. */
export const shortWaitMs = 5_000;

export function createSteps(parts: StepsParts): Steps {
  const { claimed, holding, streams, probe, log, payloads, clock, timers, random, changed } = parts;
  const { runId } = claimed;
  /** A fact about them must be in the history before they go on. */
  const recording = new Map<string, StepRequest>();
  const intended = new Map<string, StepRequest>();
  const waiting = new Map<string, { readonly request: StepRequest; readonly dueAt: number }>();
  const running = new Map<string, Execution>();
  let pasts = createStepPasts([]);
  let undone: ReadonlyMap<string, number> = new Map();
  /** Nothing is tried again. */
  let isStopped = false;
  let calling: string | null = null;
  let lastEnded: { readonly key: string; readonly at: number } | null = null;

  const placeOf = (key: string) => placeOfEvent(runId, { kind: "step_completed", name: key });

  /** The same for every attempt at the step, and for its undo. Whoever knows what was undone under it must not answer that. */
  const idempotencyKeyOf = (key: string): string => {
    const since = undone.get(key);
    return since === undefined ? `${runId}/${key}` : `${runId}/${key}#since${since}`;
  };

  /** Says so first, where somebody must know of the attempt though its worker may die in it. */
  const prepare = (request: StepRequest): void => {
    const { key, terms } = request;
    const past = pasts.of(key);
    request.state = "issued";
    // One that is taken over says nothing new; one that is open and must not be repeated does not come here.
    const mustBeKnown = terms.undo !== null || terms.failsOnCrash;
    if (!mustBeKnown || past.isOpen) return begin(request);
    recording.set(key, request);
    const data = describeIntent(terms.undo !== null);
    holding.add({ kind: "step_intended", name: key, attempt: past.attempts + 1, data });
  };

  const begin = (request: StepRequest): void => {
    const { key, terms, call } = request;
    const past = pasts.of(key);
    const number = past.attempts + 1;
    probe("step.before");
    if (!holding.isHeld()) return changed();
    const beganAt = holding.time.estimate();
    const execution: Execution = { key, beganAt, since: clock.now(), attempt: null, progress: past.progress };
    running.set(key, execution);
    const isAwaited = (): boolean => running.get(key) === execution;
    // Nothing else may win a race meanwhile: a wait would take a signal that nobody is there to get.
    const isAhead = (is: boolean): void => {
      if (request.state !== (is ? "issued" : "answering") || !isAwaited()) return;
      request.state = is ? "answering" : "issued";
      if (!is) changed();
    };
    const attempt = beginAttempt({
      key,
      call: entered(
        key,
        watched(key, (step) => call(step, { isAwaited, isAhead })),
      ),
      idempotencyKey: idempotencyKeyOf(key),
      attempt: number,
      timeoutMs: terms.timeoutMs,
      progress: readProgress(key, past.progress),
      stream: streams.ofStep(key, number, isAwaited),
      log,
      timers,
      progressed: (details) => noteProgress(key, number, details),
    });
    execution.attempt = attempt;
    void end(request, execution, attempt);
  };

  /** The function, while the first part of which runs the code's context is not to be used. */
  const entered =
    (key: string, call: (step: StepContext) => unknown): typeof call =>
    (step) => {
      calling = key;
      try {
        return call(step);
      } finally {
        calling = null;
      }
    };

  /** The function as development mode sees it. */
  const watched = (key: string, call: (step: StepContext) => unknown): typeof call => {
    const { watch } = parts;
    if (watch === undefined) return call;
    const place = { workflow: claimed.workflow, version: claimed.version, step: key };
    return (step) => watch.inside(place, () => call(step));
  };

  const end = async (request: StepRequest, execution: Execution, { ended }: StepAttempt): Promise<void> => {
    const { key } = request;
    const attemptEnd = await ended;
    probe("step.after");
    // It was given up meanwhile.
    if (running.get(key) !== execution) return;
    if (attemptEnd.kind === "returned") answer(request, execution, attemptEnd.result);
    else fail(request, execution, attemptEnd.error, attemptEnd.wasStopped);
    changed();
  };

  /** What the step returns is written down before the code sees it, so a result that cannot be is a failure. */
  const answer = (request: StepRequest, execution: Execution, result: unknown): void => {
    const { key } = request;
    if (result instanceof Settled) return settle(request, execution, result);
    let data: Payload | null;
    try {
      data = payloads.encode(result, placeOf(key), `The result of step "${key}"`);
    } catch (error) {
      return addAnswer(request, execution, "step_failed", encodeFailure(request, error, true));
    }
    addAnswer(request, execution, "step_completed", data);
  };

  const fail = (request: StepRequest, execution: Execution, error: unknown, wasStopped: boolean): void => {
    const { key, terms } = request;
    const past = pasts.of(key);
    const now = holding.time.estimate();
    const isUnwanted = isStopped || request.state === "settled";
    const next = isUnwanted
      ? null
      : planNextAttempt(error, past.failures + 1, { retrying: terms.retrying, random, log, now });
    const data = encodeFailure(request, error, wasStopped);
    if (next === null) return addAnswer(request, execution, "step_failed", data);
    leave(execution);
    recording.set(key, request);
    const dueAt = next.dueAt ?? Math.ceil(now + next.delayMs);
    const { attempts } = past;
    holding.add({
      kind: "step_retried",
      name: key,
      attempt: attempts + 1,
      beganAt: execution.beganAt,
      dueAt,
      data,
    });
    log.warn("An attempt at a step has failed.", {
      step: key,
      attempt: attempts + 1,
      error,
      nextTryInMs: Math.max(0, Math.round(dueAt - now)),
    });
  };

  const encodeFailure = ({ key, terms }: StepRequest, error: unknown, isDoubtful: boolean): Payload => {
    const data = payloads.encodeError(error, placeOf(key));
    return isDoubtful && terms.undo !== null ? markDoubtful(data) : data;
  };

  /** It has taken care of its record. */
  const settle = (request: StepRequest, execution: Execution, { fact }: Settled): void => {
    if (fact !== null) return addAnswer(request, execution, fact.kind, fact.data);
    leave(execution);
    if (request.state === "issued") request.state = "answering";
  };

  const addAnswer = (
    request: StepRequest,
    execution: Execution,
    kind: "step_completed" | "step_failed",
    data: Payload | null,
  ): void => {
    const { key } = request;
    leave(execution);
    if (request.state === "issued") request.state = "answering";
    const tookMs = clock.now() - execution.since;
    holding.add(
      { kind, name: key, attempt: claimed.attempt, beganAt: execution.beganAt, data },
      undefined,
      tookMs,
    );
  };

  const leave = ({ key }: Execution): void => {
    running.delete(key);
    lastEnded = { key, at: clock.now() };
  };

  /** A step that does not begin, or not again. */
  const failUnbegun = (request: StepRequest, error: Error, isDoubtful: boolean): void => {
    const { key } = request;
    if (request.state !== "settled") request.state = "answering";
    const data = encodeFailure(request, error, isDoubtful);
    holding.add({ kind: "step_failed", name: key, attempt: claimed.attempt, data });
    changed();
  };

  /** What cannot be read is no reason to fail. */
  const readProgress = (key: string, progress: Payload | null): unknown => {
    try {
      return payloads.decode(progress, placeOf(key));
    } catch (error) {
      log.warn("The progress of a step cannot be read, and is left out.", { step: key, error });
      return undefined;
    }
  };

  const noteProgress = (key: string, attempt: number, details: unknown): void => {
    try {
      const data = payloads.encode(details, placeOf(key), `The progress of step "${key}"`);
      const execution = running.get(key);
      if (execution !== undefined) execution.progress = data;
      holding.add({ kind: "step_progressed", name: key, attempt, data });
      changed();
    } catch (error) {
      log.warn("The progress of a step cannot be recorded, and is left out.", { step: key, error });
    }
  };

  return {
    size: () => running.size + recording.size + intended.size,
    hasShortWait() {
      const soon = holding.time.estimate() + shortWaitMs;
      return [...waiting.values()].some(({ dueAt }) => dueAt <= soon);
    },
    nextDueAt() {
      const dueAts = [...waiting.values()].map(({ dueAt }) => dueAt);
      return dueAts.length === 0 ? null : Math.min(...dueAts);
    },
    calling: () => calling,
    running: () => [...running.keys()],
    inProgress: () => [...running.values()],
    ranSince: (at) => [
      ...running.keys(),
      ...(lastEnded !== null && lastEnded.at >= at ? [lastEnded.key] : []),
    ],
    pasts: () => pasts,
    remember(history, undoneBefore) {
      pasts = createStepPasts(history);
      undone = undoneBefore;
    },
    recorded(event) {
      pasts.add(event);
      const { kind, name } = event;
      if (name === null || (kind !== "step_intended" && kind !== "step_retried")) return;
      const request = recording.get(name);
      if (request === undefined) return;
      recording.delete(name);
      if (request.state === "settled") return;
      if (kind === "step_intended") intended.set(name, request);
      else wait(request, event.dueAt ?? 0);
    },
    start(request) {
      const { isOpen, dueAt } = pasts.of(request.key);
      if (isOpen && request.terms.failsOnCrash) failUnbegun(request, crashError(request.key), true);
      else if (dueAt !== null && dueAt > holding.time.reached) wait(request, dueAt);
      else prepare(request);
    },
    beginIntended() {
      for (const [key, request] of intended) {
        intended.delete(key);
        begin(request);
      }
    },
    beginDue() {
      for (const [key, { request, dueAt }] of waiting) {
        if (dueAt > holding.time.reached) continue;
        waiting.delete(key);
        prepare(request);
      }
    },
    refuse(reason) {
      isStopped = true;
      waiting.clear();
      for (const request of [...recording.values(), ...intended.values()])
        failUnbegun(request, reason, false);
      recording.clear();
      intended.clear();
    },
    withdraw(key, reason) {
      waiting.delete(key);
      const unbegun = recording.get(key) ?? intended.get(key);
      recording.delete(key);
      intended.delete(key);
      // Else its intent would tell of something that may have happened.
      if (unbegun !== undefined) failUnbegun(unbegun, reason, false);
      running.get(key)?.attempt?.abort(reason);
    },
    abort(reason) {
      isStopped = true;
      for (const { attempt } of running.values()) attempt?.abort(reason);
    },
    giveUp: () => running.clear(),
    async callUndo(key, number, call) {
      const name = `undo ${key}`;
      probe("undo.before");
      holding.assertHeld();
      const beganAt = holding.time.estimate();
      const execution: Execution = { key: name, beganAt, since: clock.now(), attempt: null, progress: null };
      running.set(name, execution);
      const idempotencyKey = idempotencyKeyOf(key);
      const given = {
        key: name,
        call,
        idempotencyKey,
        attempt: number,
        timeoutMs: null,
        progress: undefined,
      };
      const stream = streams.ofStep(name, number, () => running.get(name) === execution);
      execution.attempt = beginAttempt({ ...given, stream, log, timers, progressed: () => {} });
      const end = await execution.attempt.ended;
      leave(execution);
      probe("undo.after");
      return end;
    },
  };

  function wait(request: StepRequest, dueAt: number): void {
    request.state = "held";
    waiting.set(request.key, { request, dueAt });
  }
}

function crashError(key: string): Error {
  const message = `The worker died in step "${key}", which is not called again: it may have happened.`;
  return Object.assign(new PawlError("STEP_CRASHED", message, { step: key }), { retryable: false });
}
