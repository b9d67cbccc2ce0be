import { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { Log } from "../core/log.ts";
import { placeOfEvent } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { Random } from "../core/random.ts";
import type { ClaimedRun, ParkAnswer } from "../store/lease.ts";
import type { Bell } from "./bell.ts";
import { readFate, writeFate, type Fate } from "./fate.ts";
import type { Holding, ParkTerms } from "./holding.ts";
import type { Inbox } from "./inbox.ts";
import { planNextAttempt } from "./next-attempt.ts";
import type { Orders } from "./orders.ts";
import type { UndoTerms } from "./step-options.ts";
import type { StepPast } from "./step-past.ts";
import { shortWaitMs, type Steps } from "./steps.ts";

/**
 * Takes back what the run did, once its code has come to its end and it is settled how the run will end. Everything is a
 * fact: whoever holds the run next runs the code to its end again, which tells what undoes what, and goes on.
 */
export interface Undoing {
  /** How the run will end, once something is undone. */
  fate(): Fate | null;
  /** Whether a step of the history said that it may have to be undone. */
  isExpected(): boolean;
  /** Undoes everything; answers the steps that could not be. Or what became of the run before all was done. */
  run(fate: Fate): Promise<{ readonly notUndone: readonly string[] } | "parked" | "released">;
}

export interface UndoingParts {
  readonly claimed: ClaimedRun;
  readonly history: readonly RunEvent[];
  readonly holding: Holding;
  readonly inbox: Inbox;
  readonly orders: Orders;
  readonly steps: Steps;
  readonly bell: Bell;
  readonly random: Random;
  readonly log: Log;
  readonly payloads: Payloads;
  /** The worker wants to give the run back. */
  readonly isReleasing: () => boolean;
}

/** What the code's course knows and does. */
export interface CourseOfCode {
  /** What the code has said undoes a step, by the step's key. */
  readonly undos: ReadonlyMap<string, UndoTerms>;
  readonly absorb: (events: readonly RunEvent[]) => void;
}

interface Task {
  readonly key: string;
  readonly inDoubt: boolean;
  readonly seq: number;
}

/** How long a run waits for a process that can read the result of a step it has to undo. */
const unreadableMs = 60_000;

export function createUndoing(parts: UndoingParts, { undos, absorb }: CourseOfCode): Undoing {
  const { claimed, holding, inbox, orders, steps, bell, random, log, payloads } = parts;
  const { runId } = claimed;
  const began = parts.history.findLast(({ kind }) => kind === "undo_began");
  let fate = began === undefined ? null : readFate(began);

  const isExpected = (): boolean => {
    for (const [, past] of steps.pasts().all()) if (past.isUndoIntended) return true;
    return fate !== null;
  };

  const record = async (): Promise<void> => {
    while (holding.hasFacts()) absorb(await holding.record());
  };

  /** The last that was done is undone first. */
  const plan = (): readonly Task[] => {
    const tasks: Task[] = [];
    for (const [key, past] of steps.pasts().all()) {
      if (past.undone === null && isToUndo(past, undos.has(key)))
        tasks.push({ key, inDoubt: past.completed === null, seq: past.lastSeq });
    }
    return tasks.toSorted((a, b) => b.seq - a.seq);
  };

  const fail = (key: string, error: unknown): void => {
    const data = payloads.encodeError(error, placeOf(key));
    holding.add({ kind: "undo_failed", name: key, data });
    log.error("A step could not be undone.", { step: key, error });
  };

  const placeOf = (key: string) => placeOfEvent(runId, { kind: "step_completed", name: key });

  const park = async (
    terms: Pick<ParkTerms, "reason" | "dueAt" | "delayMs" | "wants">,
  ): Promise<ParkAnswer> => {
    const { answer, events } = await holding.park({ ...terms, attemptFailed: false });
    absorb(events ?? []);
    if (answer.outcome === "told") inbox.fill(answer.messages);
    return answer;
  };

  /** Waits for what must come before the next undo; false: the run is no longer held. */
  const mayGoOn = async (key: string): Promise<"parked" | "released" | null> => {
    for (;;) {
      holding.assertHeld();
      await record();
      if (parts.isReleasing()) {
        await holding.release();
        return "released";
      }
      if (holding.isTold()) inbox.fill(await holding.readInbox());
      orders.obey();
      const dueAt = steps.pasts().of(key).undoDueAt;
      if (orders.isPaused()) {
        orders.pause();
        const { outcome } = await park({ reason: "paused", dueAt: null, delayMs: null, wants: ["resume"] });
        if (outcome === "parked") return "parked";
      } else if (dueAt === null || dueAt <= holding.time.reached) {
        await record();
        return null;
      } else if (dueAt - holding.time.estimate() <= shortWaitMs) {
        const rung = await bell.wait(Math.max(1, dueAt - holding.time.estimate()));
        if (!rung) await holding.lookAtClock();
      } else {
        const { outcome } = await park({ reason: "waiting", dueAt, delayMs: null, wants: ["pause"] });
        if (outcome === "parked") return "parked";
      }
    }
  };

  /** One attempt: adds the fact that tells how it went. */
  const attempt = async ({ key, inDoubt }: Task, terms: UndoTerms, result: unknown): Promise<void> => {
    const { undoFailures } = steps.pasts().of(key);
    const call = await steps.callUndo(key, undoFailures + 1, (given) => {
      const { signal, idempotencyKey, attempt: number, log: ownLog } = given;
      const context = { idempotencyKey, inDoubt, signal, attempt: number, log: ownLog };
      return terms.call(inDoubt ? undefined : result, context);
    });
    holding.assertHeld();
    if (call.kind === "returned") return holding.add({ kind: "undo_completed", name: key, data: null });
    const { error } = call;
    const now = holding.time.estimate();
    const next = planNextAttempt(error, undoFailures + 1, { retrying: terms.retrying, random, log, now });
    if (next === null) return fail(key, error);
    const dueAt = next.dueAt ?? Math.ceil(now + next.delayMs);
    const data = payloads.encodeError(error, placeOf(key));
    holding.add({ kind: "undo_retried", name: key, attempt: undoFailures + 1, dueAt, data });
    log.warn("An attempt to undo a step has failed.", { step: key, attempt: undoFailures + 1, error });
  };

  const undo = async (task: Task): Promise<"parked" | "released" | null> => {
    const { key } = task;
    const terms = undos.get(key);
    if (terms === undefined) {
      const message = `The code no longer asks for step "${key}", so nothing is there to undo it with.`;
      fail(key, new PawlError("UNDO_MISSING", message, { step: key }));
    }
    while (terms !== undefined && steps.pasts().of(key).undone === null) {
      const outcome = await mayGoOn(key);
      if (outcome !== null) return outcome;
      let result: unknown;
      try {
        result = payloads.decode(steps.pasts().of(key).completed?.data ?? null, placeOf(key));
      } catch (error) {
        log.error("The result of a step that has to be undone cannot be read here.", { step: key, error });
        const wait = { reason: "blocked", dueAt: null, delayMs: unreadableMs, wants: ["pause"] } as const;
        if ((await park(wait)).outcome === "parked") return "parked";
        continue;
      }
      await attempt(task, terms, result);
      await record();
    }
    return null;
  };

  return {
    fate: () => fate,
    isExpected,
    async run(wanted) {
      if (undos.size === 0 && !isExpected()) return { notUndone: [] };
      // What the last steps did must be known before it can be undone.
      await record();
      if (fate === null) {
        if (plan().length === 0) return { notUndone: [] };
        fate = wanted;
        orders.undo();
        holding.add({ kind: "undo_began", name: null, data: writeFate(fate) });
        await record();
      }
      for (const task of plan()) {
        const outcome = await undo(task);
        if (outcome !== null) return outcome;
      }
      await record();
      const notUndone = [...steps.pasts().all()].filter(([, { undone }]) => undone === "failed");
      return { notUndone: notUndone.map(([key]) => key) };
    },
  };
}

/** One that failed by itself has done nothing, by its own account; of others nobody knows. */
function isToUndo({ completed, isUndoIntended, isOpen, hasDoubt }: StepPast, isKnown: boolean): boolean {
  if (completed !== null) return isKnown || isUndoIntended;
  return isUndoIntended && (isOpen || hasDoubt);
}
