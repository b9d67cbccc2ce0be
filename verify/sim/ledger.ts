import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Execution, ProgramHost } from "../gen/program-workflow.ts";
import type { StepEntry, Recorder, UndoEntry } from "../hist/record.ts";
import type { SimProcess } from "./sim-process.ts";

const insertEffect = "insert into effect (run, step, key, token) values ($1, $2, $3, $4)";

/** The world outside, on which steps act: it remembers every call of every step's function, whoever made it. */
export class Ledger {
  readonly #recorder: Recorder;
  readonly #calls = new Map<string, number>();
  #tokens = 0;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** What a process lends to the programs it executes. A dead process acts no more. */
  hostFor(process: SimProcess): ProgramHost {
    const recorder = this.#recorder;
    return {
      beginStep: (execution, { path, failures, undo, transaction, failsOnCrash }, told) => {
        const token = `${path}#${this.#tokens++}`;
        const fails = this.#countCall(execution.run, path, process) <= failures;
        const note = (type: StepEntry["type"]): void => {
          if (!process.isAlive) return;
          const { run, epoch, attempt } = execution;
          const who = process.name;
          recorder.add({
            by: "step",
            type,
            at: recorder.now,
            process: who,
            run,
            step: path,
            epoch,
            attempt,
            token,
            key: told.key,
            stepAttempt: told.attempt,
            isUndoable: undo !== null,
            ...(transaction === null ? {} : { isTransactional: true }),
            ...(failsOnCrash === true ? { failsOnCrash } : {}),
          });
        };
        note("invoke");
        return { token, fails, end: () => note(fails ? "fail" : "ok") };
      },
      beginUndo: ({ run, epoch }, { path, undo }, { attempt: undoAttempt, ...told }) => {
        const token = `${path}#undo${this.#tokens++}`;
        const fails = this.#countCall(run, `undo ${path}`, process) <= (undo?.failures ?? 0);
        const note = (type: UndoEntry["type"]): void => {
          if (!process.isAlive) return;
          const who = { by: "undo", type, at: recorder.now, process: process.name } as const;
          recorder.add({ ...who, run, step: path, epoch, undoAttempt, ...told });
        };
        note("invoke");
        return { token, fails, end: () => note(fails ? "fail" : "ok") };
      },
      work: (ms) => process.work(ms),
      writeEffect: (tx, { run, step, key, token }) => tx.query(insertEffect, [run, step, key, token]),
      asked: ({ run, epoch }: Execution, step, waitMs) => {
        if (!process.isAlive) return;
        recorder.add({ by: "ask", at: recorder.now, process: process.name, run, step, epoch, waitMs });
      },
      patched: ({ run, epoch }: Execution, id, isNew) => {
        if (!process.isAlive) return;
        recorder.add({ by: "patch", at: recorder.now, process: process.name, run, epoch, id, isNew });
      },
      delivered: ({ run, epoch }: Execution, step, given) => {
        if (!process.isAlive) return;
        recorder.add({ by: "delivery", at: recorder.now, process: process.name, run, step, epoch, ...given });
      },
    };
  }

  #countCall(run: RunId, path: string, process: SimProcess): number {
    const key = `${run} ${path}`;
    const calls = (this.#calls.get(key) ?? 0) + 1;
    if (process.isAlive) this.#calls.set(key, calls);
    return calls;
  }
}
