import { cancelError } from "../core/cancel-error.ts";
import type { Clock } from "../core/clock.ts";
import { encode } from "../core/codec.ts";
import { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import { isOrder } from "../core/fact.ts";
import { describeFailedAttempt } from "../core/failed-attempt.ts";
import type { Ids, RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import { placeOfError, placeOfEvent, placeOfInput, placeOfOutput } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { describeError, revive } from "../core/recorded-error.ts";
import type { Continuation } from "../store/lease.ts";
import type { RunEnd } from "../store/run-record.ts";
import { earliest } from "./agenda.ts";
import type { ContinuationTerms } from "./continue-as.ts";
import type { CodeEnd, Difference } from "./difference.ts";
import { errorOf, type Fate } from "./fate.ts";
import type { ParkTerms } from "./holding.ts";
import { planNextAttempt } from "./next-attempt.ts";
import { stopError, type Stop } from "./orders.ts";
import { createUndoing, type CourseOfCode, type Undoing, type UndoingParts } from "./undoing.ts";
import type { Workflow } from "./workflow.ts";

/** What became of a run in this worker's hands. */
export type Outcome = "ended" | "parked" | "released" | "lost";

/** The ways in which a run whose code goes no further leaves its holder. */
export interface Ending {
  /** The code has come to its end. */
  finish(end: CodeEnd): Promise<Outcome>;
  /** Ends it without its code. */
  stop(stop: Stop): Promise<Outcome>;
  /** Ends it as it was told, though its code does not come to its end. */
  giveUp(): Promise<Outcome>;
  /** Whether something may have to be undone before it ends, for which its code is needed. */
  isUndoExpected(): boolean;
  /** The code does not fit the history. */
  block(difference: Difference): Promise<Outcome>;
  /** What the run was given, has done or gives cannot be read or written here: leaves it to a process that can. */
  blockUnreadable(error: unknown): Promise<Outcome>;
  /** A later build has written this fact of its history: leaves it to one that understands it. */
  blockNewer(event: RunEvent): Promise<Outcome>;
  /** Null: it is to go on after all. `isNoted`: its code pauses it, and the fact that says so is there. */
  pause(isNoted?: boolean): Promise<Outcome | null>;
}

export interface EndingParts extends UndoingParts {
  readonly workflow: Workflow;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** What the code's course knows and does. */
export interface EndingCourse extends CourseOfCode {
  /** Failures that the code had dealt with when it threw this. */
  readonly handledFailures: (thrown: unknown) => readonly number[];
}

const firstBlockMs = 5_000;
const longestBlockMs = 600_000;
/** How long a step that was told to stop may go on before the run ends without it. */
export const patienceMs = 30_000;

export function createEnding(parts: EndingParts, course: EndingCourse): Ending {
  const { claimed, history, holding, inbox, orders, steps, bell, log, payloads } = parts;
  let undoing: Undoing | null = null;
  const { runId } = claimed;
  const attempt = () => ({ name: null, attempt: claimed.attempt, beganAt: holding.heldSince() });

  const getUndoing = (): Undoing => (undoing ??= createUndoing(parts, course));

  /** How the run will end, where that is settled: something is, or was, undone. */
  const settledFate = (): Fate | null => (orders.isUndoing || undoing !== null ? getUndoing().fate() : null);

  const recordSurplus = async (): Promise<void> => {
    while (holding.hasTooMany()) course.absorb(await holding.record());
  };

  const end = async (
    end: RunEnd,
    data: Payload | null = null,
    next: Continuation | null = null,
  ): Promise<Outcome> => {
    await recordSurplus();
    if (next !== null) holding.add({ kind: "continued", name: null, data: encode({ id: next.id }) });
    return endRun(parts, end, data, next);
  };

  /** What was done is undone first. How it ends is settled by the first that says so. `thrown`: by the code, if it was. */
  const conclude = async (wanted: Fate, thrown?: unknown): Promise<Outcome> => {
    const fate = settledFate() ?? wanted;
    const undone = await getUndoing().run(fate);
    if (typeof undone === "string") return undone;
    const { status } = fate;
    const error = errorOf(fate, undone.notUndone, runId, payloads);
    const isFailed = status === "failed" && error !== null;
    const data = isFailed ? describeFailedAttempt(error, course.handledFailures(thrown)) : null;
    const outcome = await end({ status, output: null, error }, data);
    if (isFailed) log.error("The run has failed.", { error: readError(error), attempt: claimed.attempt });
    return outcome;
  };

  const readError = (error: Payload): unknown => {
    try {
      return payloads.decodeError(error, placeOfError(runId));
    } catch (unreadable) {
      return unreadable;
    }
  };

  const stop = (stop: Stop): Promise<Outcome> => {
    const error = stop === "cancelled" ? cancelError(orders.cancelData) : null;
    return conclude({ status: stop, error });
  };

  const complete = (output: Payload | null, next: Continuation | null = null): Promise<Outcome> => {
    // Whatever still runs has lost a race, or was forgotten, and nobody waits for it.
    if (steps.size() > 0) {
      log.warn("The run has returned while steps were in progress: await every step, or use ctx.race.", {
        steps: steps.running(),
      });
      // An error is costly to make, and mostly nothing runs.
      steps.abort(new PawlError("RUN_ENDED", `Run ${runId} has completed.`, { runId }));
      // What they bring in from here on would come after the last fact.
      steps.giveUp();
    }
    return end({ status: "completed", output, error: null }, null, next);
  };

  const goOn = ({ input, ...terms }: ContinuationTerms): Promise<Outcome> => {
    const id = parts.ids.next();
    try {
      return complete(null, { id, ...terms, input: payloads.seal(input, placeOfInput(id)) });
    } catch (error) {
      return blockUnreadable(error);
    }
  };

  /** Logs what has become of it once the store knows: whoever has lost the run keeps silent. */
  const fail = async (thrown: unknown, mayRetry: boolean): Promise<Outcome> => {
    const said = { error: revive(describeError(thrown)), attempt: claimed.attempt };
    const failures = Math.max(claimed.failures, countFailedAttempts(history)) + 1;
    const now = holding.time.estimate();
    const { retry: policy, retryIf } = parts.workflow;
    const retrying = { policy: claimed.retry ?? policy, retryIf };
    const next = mayRetry ? planNextAttempt(thrown, failures, { ...parts, retrying, now }) : null;
    if (next === null)
      return conclude({ status: "failed", error: payloads.encodeError(thrown, placeOfError(runId)) }, thrown);
    const fact = { kind: "attempt_failed", ...attempt() } as const;
    const error = payloads.encodeError(thrown, placeOfEvent(runId, fact));
    holding.add({ ...fact, data: describeFailedAttempt(error, course.handledFailures(thrown)) });
    const dueAt = earliest(claimed.deadlineAt, next.dueAt);
    const outcome = await layDown({
      ...unlessOrdered(),
      ...next,
      dueAt,
      reason: "retry",
      attemptFailed: true,
    });
    const nextTryInMs = next.delayMs ?? Math.max(0, next.dueAt - now);
    log.warn("An attempt has failed.", { ...said, nextTryInMs: outcome === "parked" ? nextTryInMs : null });
    return outcome;
  };

  /** A run that is undone cannot be ordered to end otherwise. */
  const unlessOrdered = (): Pick<ParkTerms, "dueAt" | "wants"> =>
    orders.isUndoing
      ? { dueAt: null, wants: ["pause"] }
      : { dueAt: claimed.deadlineAt, wants: ["cancel", "pause"] };

  const park = async (terms: ParkTerms): Promise<Outcome | null> => {
    await recordSurplus();
    const { answer, events } = await holding.park(terms);
    if (answer.outcome === "parked") return "parked";
    course.absorb(events ?? []);
    inbox.fill(answer.messages);
    orders.obey();
    return null;
  };

  const pause = (attemptFailed: boolean, isNoted = false): Promise<Outcome | null> => {
    if (!isNoted) orders.pause();
    const { dueAt } = unlessOrdered();
    const wants = orders.isUndoing ? (["resume"] as const) : (["cancel", "resume"] as const);
    return park({ reason: "paused", dueAt, delayMs: null, wants, attemptFailed });
  };

  /** Parks a run that has no more to do for now, unless it is ordered to do something else. */
  const layDown = async (terms: ParkTerms): Promise<Outcome> => {
    for (;;) {
      orders.obey();
      if (orders.stop !== null) return stop(orders.stop);
      const outcome = orders.isPaused() ? await pause(terms.attemptFailed) : await park(terms);
      if (outcome !== null) return outcome;
    }
  };

  /** Orders come in while steps outlast the code, too: they are told of a stop. */
  const heedOrders = async (): Promise<void> => {
    const { stop: before } = orders;
    if (before !== null) return;
    if (holding.isTold()) inbox.fill(await holding.readInbox());
    orders.obey();
    const { stop: ordered } = orders;
    if (ordered !== null) steps.abort(stopError(ordered, runId, orders.cancelData));
  };

  /** A run with a step in progress is not parked: what the step did is recorded first. */
  const stepsEnded = async (): Promise<void> => {
    while (steps.size() > 0) {
      await heedOrders();
      if (holding.hasFacts()) course.absorb(await holding.record());
      if (orders.stop === null) steps.beginIntended();
      else steps.refuse(stopError(orders.stop, runId, orders.cancelData));
      const isGivenUp = orders.stop !== null;
      const leftMs = isGivenUp ? Infinity : (claimed.deadlineAt ?? Infinity) - holding.time.estimate();
      const rung = await bell.wait(Math.max(1, Math.min(patienceMs, leftMs)));
      holding.assertHeld();
      if (rung) continue;
      if (leftMs < Infinity) await holding.lookAtClock();
      if (leftMs <= patienceMs) continue;
      log.warn("The run waits for steps that do not return.", { steps: steps.running(), isGivenUp });
      if (isGivenUp) return steps.giveUp();
    }
  };

  /** The code has come to its end, and not well: its steps are told to stop, and those that do not heed it are given up. */
  const stepsStopped = async (reason: PawlError): Promise<void> => {
    steps.abort(reason);
    steps.refuse(reason);
    const givenUpAt = parts.clock.now() + patienceMs;
    while (steps.size() > 0) {
      await heedOrders();
      if (holding.hasFacts()) course.absorb(await holding.record());
      const leftMs = givenUpAt - parts.clock.now();
      if (leftMs <= 0) {
        log.warn("The run ends without steps that do not return.", { steps: steps.running() });
        return steps.giveUp();
      }
      const deadlineMs =
        orders.stop === null ? (claimed.deadlineAt ?? Infinity) - holding.time.estimate() : Infinity;
      const rung = await bell.wait(Math.max(1, Math.min(leftMs, deadlineMs)));
      holding.assertHeld();
      if (!rung && deadlineMs < leftMs) await holding.lookAtClock();
    }
  };

  const blockedFact = { kind: "blocked", name: null } as const;
  const blockedPlace = placeOfEvent(runId, blockedFact);

  const block = (difference: Difference, data: Payload | null): Promise<Outcome> => {
    const timesBlocked = countBlocks(history);
    const delayMs = Math.min(longestBlockMs, firstBlockMs * 2 ** timesBlocked);
    log.error(difference.message, { expected: difference.expected, found: difference.found });
    // Once it is tried at long intervals only, saying the same again would make the history grow for ever.
    if (delayMs < longestBlockMs || !isLastBlock(difference)) holding.add({ ...blockedFact, data });
    return layDown({ ...unlessOrdered(), reason: "blocked", delayMs, attemptFailed: false });
  };

  /** The code itself has said so. */
  const blockAsTold = async (reason: string): Promise<Outcome> => {
    await stepsEnded();
    const difference = { message: reason, expected: [], found: [] };
    return block(difference, payloads.encode(difference, blockedPlace));
  };

  const blockUnreadable = async (error: unknown): Promise<Outcome> => {
    // Messages that come in while a step runs may be what cannot be read.
    await stepsEnded();
    const message = `The run waits for a process that can read and write its payloads. ${describeError(error).message}`;
    const difference = { message, expected: [], found: [] };
    log.error("A payload cannot be read or written here.", { error });
    // Never sealed: with the wrong codec here, nobody else could read it.
    return block(difference, encode(difference));
  };

  const isLastBlock = (difference: Difference): boolean => {
    try {
      const last = payloads.decode(history.findLast(isBlock)?.data ?? null, blockedPlace);
      return JSON.stringify(last) === JSON.stringify(difference);
    } catch {
      return false;
    }
  };

  return {
    stop,
    isUndoExpected: () => getUndoing().isExpected(),
    pause: (isNoted) => pause(false, isNoted),
    giveUp() {
      steps.giveUp();
      // Without an order it was being undone, and what was settled then holds.
      return stop(orders.stop ?? "cancelled");
    },
    async finish(end) {
      const fate = settledFate();
      if (fate !== null) return conclude(fate, end.kind === "threw" ? end.error : undefined);
      const ordered = orders.stop;
      if (ordered !== null) {
        await stepsStopped(stopError(ordered, runId, orders.cancelData));
        return stop(ordered);
      }
      if (end.kind === "continued") return goOn(end.terms);
      if (end.kind === "blocked") return blockAsTold(end.reason);
      const result = encodeResult(end, (output) => encodeOutput(output, runId, payloads));
      if (result.kind === "returned") return complete(result.output);
      // What the run did is not lost with a codec that is out of order: its steps are recorded.
      if (end.kind === "returned" && PawlError.is(result.error, "CODEC_FAILED"))
        return blockUnreadable(result.error);
      await stepsStopped(new PawlError("RUN_FAILED", `The code of run ${runId} has failed.`, { runId }));
      if (orders.stop !== null) return stop(orders.stop);
      return fail(result.error, end.kind === "threw");
    },
    block: (difference) => block(difference, payloads.encode(difference, blockedPlace)),
    blockUnreadable,
    blockNewer({ seq, kind, format = 1 }) {
      const message =
        `A newer Pawl has written event ${seq} of this run (${kind}, format ${format}), which this one does not understand. ` +
        "Nothing was executed. Upgrade this worker; others that are newer may go on with the run.";
      const difference = { message, expected: [], found: [] };
      return block(difference, encode(difference));
    },
  };
}

/** The terminal fact is the last, whatever a step that nobody waits for may still bring in. */
function endRun(
  { claimed, holding }: Pick<EndingParts, "claimed" | "holding">,
  end: RunEnd,
  data: Payload | null = null,
  next: Continuation | null = null,
): Promise<Outcome> {
  const { attempt } = claimed;
  holding.add({ kind: end.status, name: null, attempt, beganAt: holding.heldSince(), data });
  return holding.end(end, next);
}

/**
 * Ends a run whose code has returned, where nothing stands in the way: what most runs come to. Null: look closer.
 * @param hasEnding something has been done about its end already
 */
export function completeAtOnce(
  parts: EndingParts,
  end: CodeEnd,
  hasEnding: boolean,
): Promise<Outcome> | null {
  const { claimed, holding, orders, steps, payloads } = parts;
  if (end.kind !== "returned" || hasEnding || orders.stop !== null || orders.isUndoing) return null;
  if (steps.size() > 0 || holding.hasTooMany()) return null;
  const result = encodeResult(end, (output) => encodeOutput(output, claimed.runId, payloads));
  if (result.kind !== "returned") return null;
  return endRun(parts, { status: "completed", output: result.output, error: null });
}

function encodeOutput(output: unknown, runId: RunId, payloads: Payloads): Payload | null {
  return payloads.encode(output, placeOfOutput(runId), "The output of the run");
}

type Result =
  | { readonly kind: "returned"; readonly output: Payload | null }
  | { readonly kind: "threw"; readonly error: unknown };

/** An output that cannot be written down is a failure. */
function encodeResult(
  end: Extract<CodeEnd, { readonly kind: Result["kind"] }>,
  encodeOutput: (output: unknown) => Payload | null,
): Result {
  if (end.kind === "threw") return end;
  try {
    return { kind: "returned", output: encodeOutput(end.output) };
  } catch (error) {
    return { kind: "threw", error };
  }
}

/** Since it was last redriven: another life has limits of its own. */
function countFailedAttempts(history: readonly RunEvent[]): number {
  const lastLife = history.findLastIndex(({ kind }) => kind === "redriven");
  return history.slice(lastLife + 1).filter(({ kind }) => kind === "attempt_failed").length;
}

/** How often it was blocked since it last got anywhere. */
function countBlocks(history: readonly RunEvent[]): number {
  const asides = ["blocked", "rescheduled", "attempt_crashed"];
  const lastMove = history.findLastIndex((event) => !isOrder(event) && !asides.includes(event.kind));
  return history.slice(lastMove + 1).filter(isBlock).length;
}

function isBlock(event: RunEvent): boolean {
  return event.kind === "blocked";
}
