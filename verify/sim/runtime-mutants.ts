import type { Plan } from "./plan.ts";
import type { Mistake } from "./spoiled-runtime.ts";

/** A mistake in the engine that executes runs, which the simulation must find by one of these invariants. */
export interface RuntimeMutant extends Mistake {
  readonly name: string;
  readonly breaks: readonly string[];
  /** Where it shows often enough. Default: in worlds as they are drawn. */
  readonly world?: (drawn: Plan) => Plan;
}

export const runtimeMutants: readonly RuntimeMutant[] = [
  {
    name: "what was done first is undone first",
    breaks: ["I24"],
    file: "runtime/undoing.ts",
    right: "b.seq - a.seq",
    wrong: "a.seq - b.seq",
  },
  {
    name: "a new holder undoes again what was undone",
    breaks: ["I24"],
    file: "runtime/step-past.ts",
    right: "for (const event of history) pasts.add(event);",
    wrong: `for (const event of history) if (event.kind !== "undo_completed") pasts.add(event);`,
  },
  {
    name: "an undo is called twice",
    breaks: ["I24"],
    file: "runtime/undoing.ts",
    right: "await attempt(task, terms, result);",
    wrong: "await attempt(task, terms, result); await attempt(task, terms, result);",
  },
  {
    name: "what is in doubt is not undone",
    breaks: ["I24"],
    file: "runtime/undoing.ts",
    right: "return isUndoIntended && (isOpen || hasDoubt);",
    wrong: "return false;",
  },
  {
    name: "a redriven run keeps the results of what was undone",
    breaks: ["I24"],
    file: "core/present-life.ts",
    right: `if (event.kind === "undo_completed")`,
    wrong: "if (false)",
  },
  {
    name: "the error does not say what was not undone",
    breaks: ["I24"],
    file: "runtime/fate.ts",
    right: "if (notUndone.length === 0)",
    wrong: "if (notUndone.length >= 0)",
  },
  {
    name: "attempts at a step begin at 1 again with each holder",
    breaks: ["I3"],
    file: "runtime/steps.ts",
    right: "pasts = createStepPasts(history);",
    wrong: `pasts = createStepPasts(history.filter(({ kind }) => kind !== "step_retried"));`,
  },
  {
    name: "a new holder does not wait for the next attempt at a step",
    breaks: ["I9"],
    file: "runtime/steps.ts",
    right: "dueAt !== null && dueAt > holding.time.reached",
    wrong: "dueAt !== null && dueAt < 0",
  },
  {
    name: "a wait that lost its race takes a signal",
    breaks: ["I14", "I17", "I10"],
    file: "runtime/course.ts",
    right: '      this.#requests.settle(request);\n      if (request.family === "step")',
    wrong:
      '      if (request.family !== "wait") this.#requests.settle(request);\n      if (request.family === "step")',
  },
  {
    name: "a signal is taken though another branch is about to win",
    breaks: ["I14", "I17"],
    file: "runtime/race.ts",
    right: `if (state === "answering") return true;`,
    wrong: `if (state === "answering") return false;`,
  },
  {
    name: "a child that lost its race goes on",
    breaks: ["I8"],
    file: "runtime/agenda.ts",
    right: "await holding.cancelChild(request.childId, lifeOf(history));",
    wrong: "",
  },
  {
    name: "a child goes on that lost the race with which its parent ended",
    breaks: ["I8"],
    file: "runtime/course.ts",
    right: `return this.#giveUpWithdrawn(({ family }) => family === "child").then(() => this.#finish(end));`,
    wrong: "this.#withdrawn = [];",
  },
  {
    name: "what a run has not read is lost when it goes on as another",
    breaks: ["I1", "I10", "I14", "I17"],
    file: "memory/continue.ts",
    right: "moveMessages(state, run, next);",
    wrong: "",
  },
  {
    name: "a child that went on as another is not asked to stop",
    breaks: ["I8"],
    file: "runtime/holding.ts",
    right: 'runId =\n        answer === "ended"',
    wrong: 'runId =\n        answer === "missing"',
  },
  {
    name: "a parked run goes on in memory though something was recorded meanwhile",
    breaks: ["I3", "I4", "I14", "I17", "I19", "I5"],
    file: "runtime/holding.ts",
    right: "if (!isNext || again.lastSeq !== lastSeq || !this.isHeld()) return false;",
    wrong: "if (again.attempt !== this.#claimed.attempt || !this.isHeld()) return false;",
  },
  {
    name: "a run is parked without a look at what it was told",
    breaks: ["I17", "I8"],
    file: "runtime/course.ts",
    right: "if (holding.isTold()) inbox.fill(await holding.readInbox());",
    wrong: "",
  },
];
