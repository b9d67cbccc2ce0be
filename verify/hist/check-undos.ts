import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Lives } from "./lives.ts";
import type { DeliveryEntry, RecordedFact, StepEntry, StoreEntry, UndoEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

export interface UndoCheck {
  step(entry: StepEntry): void;
  undo(entry: UndoEntry): void;
  delivery(entry: DeliveryEntry): void;
  store(entry: StoreEntry): void;
}

type Write = StoreEntry & { readonly run: RunId; readonly epoch: number };

/** An undoable step of a run. */
interface Undoable {
  /** Somebody who held the run has done it, and it was not undone since. */
  effect: StepEntry | null;
  completed: { readonly seq: number; readonly token: string; readonly entry: Write } | null;
  /** In the present life. */
  undone: { readonly kind: "undo_completed" | "undo_failed"; readonly entry: Write } | null;
  /** How calls of its undo ended in the present life. */
  readonly undoEnds: Set<UndoEntry["type"]>;
  /** By epoch and attempt at the undo. */
  readonly callBy: Map<string, UndoEntry>;
}

interface UndoneRun {
  epoch: number;
  lastSeq: number;
  /** When each epoch was claimed, the run had been redriven this often. */
  readonly redrivesAtClaim: Map<number, number>;
  readonly steps: Map<string, Undoable>;
  /** Since when the present life is undone. */
  began: Write | null;
  /** The last completed step that was undone in this life. */
  lastUndone: { readonly seq: number; readonly entry: Write } | null;
  /** The fact after which the present attempt began. */
  attemptSeq: number;
  /** What was undone, and in which life. */
  readonly undoneTokens: Map<string, number>;
}

/**
 * I24: when a life of a run ends otherwise than by completing, and not by force, every step is undone that can be and was
 * done: the last first, each recorded once, with what it returned, or in doubt. Nothing is undone before it is settled that
 * the run does not complete, nor again once that is recorded. What was undone is done again in another life.
 */
export function createUndoCheck(lives: Lives, report: Report): UndoCheck {
  const runs = new Map<RunId, UndoneRun>();

  const runOf = (id: RunId): UndoneRun => {
    let run = runs.get(id);
    if (run === undefined) {
      run = {
        epoch: 0,
        lastSeq: 0,
        redrivesAtClaim: new Map(),
        steps: new Map(),
        began: null,
        lastUndone: null,
        attemptSeq: 0,
        undoneTokens: new Map(),
      };
      runs.set(id, run);
    }
    return run;
  };

  const isOfThisLife = ({ run, epoch }: { readonly run: RunId; readonly epoch: number }): boolean =>
    runOf(run).redrivesAtClaim.get(epoch) === lives.redrivesOf(run);

  const stepOf = ({ run, key }: StepEntry | UndoEntry): Undoable => {
    const { steps } = runOf(run);
    let step = steps.get(key);
    if (step === undefined)
      steps.set(
        key,
        (step = { effect: null, completed: null, undone: null, undoEnds: new Set(), callBy: new Map() }),
      );
    return step;
  };

  const checkCall = (entry: UndoEntry): void => {
    const run = runOf(entry.run);
    const step = stepOf(entry);
    if (!isOfThisLife(entry)) return;
    if (run.began === null) report("I24", "an undo began in a run that may yet complete", entry);
    if (step.undone !== null && entry.epoch >= step.undone.entry.epoch)
      report("I24", "a step was undone again", step.undone.entry, entry);
    const callId = `${entry.epoch} ${entry.undoAttempt}`;
    const twin = step.callBy.get(callId);
    if (twin !== undefined) report("I24", "one holder undid a step twice in one attempt", twin, entry);
    step.callBy.set(callId, entry);
    // A zombie does not know what others have done.
    if (entry.epoch !== run.epoch) return;
    const isRight = entry.inDoubt
      ? step.completed === null && entry.result === null
      : step.completed?.token === entry.result;
    if (!isRight) report("I24", "an undo was given another result", step.completed?.entry ?? null, entry);
    for (const other of run.steps.values()) {
      if (other.completed === null || other.undone !== null || step.completed === null) continue;
      if (other.completed.seq > step.completed.seq)
        report("I24", "a step was undone before one that completed later", other.completed.entry, entry);
    }
  };

  const learnUndone = (
    entry: Write,
    key: string,
    kind: "undo_completed" | "undo_failed",
    data: string | null,
  ): void => {
    const run = runOf(entry.run);
    const step = run.steps.get(key);
    if (step === undefined) return report("I24", "what nobody did was undone", entry);
    if (run.began === null) report("I24", "a step was undone in a run that may yet complete", entry);
    if (step.undone !== null) report("I24", "a step was undone twice", step.undone.entry, entry);
    // A step of an earlier attempt that the last one did not come to: nothing is there to undo it with, and that is reported.
    const isEarlier = (step.completed?.seq ?? 0) < run.attemptSeq;
    const isMissing = isEarlier && data?.includes('"UNDO_MISSING"') === true;
    if (!isMissing && !step.undoEnds.has(kind === "undo_completed" ? "ok" : "fail"))
      report("I24", `${kind} was recorded of an undo that did not end so`, entry);
    step.undone = { kind, entry };
    if (kind === "undo_completed") step.effect = null;
    const { completed } = step;
    if (completed === null) return;
    const { lastUndone } = run;
    if (lastUndone !== null && lastUndone.seq < completed.seq)
      report("I24", "undos are recorded in another order", lastUndone.entry, entry);
    run.lastUndone = { seq: completed.seq, entry };
    if (kind === "undo_completed") run.undoneTokens.set(completed.token, lives.redrivesOf(entry.run));
  };

  const learn = (entry: Write, { kind, name, seq, data }: RecordedFact): void => {
    const run = runOf(entry.run);
    // A write whose answer was lost is repeated.
    if (seq <= run.lastSeq) return;
    run.lastSeq = seq;
    if (kind === "attempt_failed") run.attemptSeq = seq;
    if (kind === "undo_began") {
      if (run.began !== null) report("I24", "undoing began twice", run.began, entry);
      run.began = entry;
    } else if (name === null) return;
    else if (kind === "step_completed") {
      const step = run.steps.get(name);
      if (step !== undefined) step.completed = { seq, token: JSON.parse(data ?? "null") as string, entry };
    } else if (kind === "undo_completed" || kind === "undo_failed") learnUndone(entry, name, kind, data);
  };

  const checkEnd = (entry: StoreEntry & { op: "end" }): void => {
    const run = runOf(entry.run);
    if (entry.status === "completed") {
      if (run.began !== null) report("I24", "a run completed though it was undone", run.began, entry);
      return;
    }
    for (const [key, { completed, effect, undone }] of run.steps) {
      if ((completed !== null || effect !== null) && undone === null)
        report("I24", `step ${key} was not undone`, completed?.entry ?? null, effect, entry);
    }
    const failed = [...run.steps].filter(([, { undone }]) => undone?.kind === "undo_failed");
    const error = JSON.parse(entry.result) as { readonly notUndone?: readonly string[] } | null;
    // Of a past life nothing but its history may be left.
    if (error === null) return;
    const { notUndone = [] } = error;
    if (failed.length !== notUndone.length || !failed.every(([key]) => notUndone.includes(key)))
      report("I24", "the run's error does not say what was not undone", entry, ...failed);
  };

  const liveAgain = (id: RunId): void => {
    const run = runOf(id);
    run.began = null;
    run.lastUndone = null;
    run.attemptSeq = run.lastSeq + 1;
    for (const [key, step] of run.steps) {
      if (step.undone?.kind === "undo_completed") run.steps.delete(key);
      step.undone = null;
      step.undoEnds.clear();
    }
  };

  return {
    step(entry) {
      if (!entry.isUndoable) return;
      const step = stepOf(entry);
      const isHolders = entry.epoch === runOf(entry.run).epoch && isOfThisLife(entry);
      if (entry.type === "ok" && isHolders) step.effect = entry;
    },
    undo(entry) {
      if (entry.type === "invoke") checkCall(entry);
      else stepOf(entry).undoEnds.add(entry.type);
    },
    delivery(entry) {
      const run = runOf(entry.run);
      const token = /^"([^"\\]*#\d+)"$/.exec(entry.value)?.[1];
      const life = token === undefined ? undefined : run.undoneTokens.get(token);
      if (life !== undefined && (run.redrivesAtClaim.get(entry.epoch) ?? 0) > life)
        report("I24", "what was undone in an earlier life was not done again", entry);
    },
    store(entry) {
      if (entry.type === "fail") return;
      if (entry.op === "claim") {
        const run = runOf(entry.run);
        run.epoch = entry.epoch;
        run.redrivesAtClaim.set(entry.epoch, lives.redrivesOf(entry.run));
      } else if (entry.op === "record" || entry.op === "park" || entry.op === "end") {
        for (const fact of entry.facts) learn(entry, fact);
        if (entry.op === "end") checkEnd(entry);
      } else if (entry.op === "redrive")
        for (const [run, answer] of entry.answers) if (answer === "redriven") liveAgain(run);
    },
  };
}
