import { PawlError } from "../../packages/pawl/src/core/error.ts";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Transaction } from "../../packages/pawl/src/core/transaction.ts";
import type { Transactor } from "../../packages/pawl/src/core/transactor.ts";
import type { UpdateSchemas } from "../../packages/pawl/src/core/workflow-ref.ts";
import type { Context } from "../../packages/pawl/src/runtime/context.ts";
import type { StepContext, UndoContext } from "../../packages/pawl/src/runtime/step-context.ts";
import type { StepOptions } from "../../packages/pawl/src/runtime/step-options.ts";
import type { TransactionOptions } from "../../packages/pawl/src/runtime/transaction-options.ts";
import { workflow, type Workflow } from "../../packages/pawl/src/runtime/workflow.ts";
import {
  attemptChoices,
  kindOfUpdate,
  pathOfUpdate,
  updateName,
  type Attempts,
  type Database,
  type Op,
  type Program,
  type StepOp,
  type Tries,
} from "./program.ts";

/** A program, and under which epoch its code begins; whoever claims writes that into it. */
interface StampedProgram extends Program {
  readonly epoch?: number;
}

/** A class, since V8 keeps the getters of an object literal, and all they refer to, among what lives long. */
class Execution {
  readonly run: RunId;
  readonly attempt: number;
  readonly #epochNow: () => number;

  constructor(run: RunId, attempt: number, epochNow: () => number) {
    this.run = run;
    this.attempt = attempt;
    this.#epochNow = epochNow;
  }

  get epoch(): number {
    return this.#epochNow();
  }
}

export type { Execution };

/** One call of a step's function, known to the world outside. */
interface StepCall {
  /** Unique; what the step returns. */
  readonly token: string;
  readonly fails: boolean;
  end(): void;
}

/** As the step, or what undoes it, was told. */
interface StepTold {
  /** The step's key in its run. */
  readonly key: string;
  readonly attempt: number;
}

interface UndoTold extends StepTold {
  readonly inDoubt: boolean;
  readonly result: string | null;
}

/** What a step writes in its transaction. */
interface Effect {
  readonly run: RunId;
  readonly step: string;
  readonly key: string;
  readonly token: string;
}

/** What the code was given. */
export interface Given {
  /** Counts from 0 in one execution of the code. */
  readonly index: number;
  readonly type: "ok" | "fail";
  readonly value: string;
  /** What `ctx.now()` and `ctx.random()` said just then. */
  readonly now: number;
  readonly random: number;
}

/** What the process that executes a program lends it. */
export interface ProgramHost {
  /** The epoch under which code is executed now that began under this one; a parked run may go on under a later one. */
  epochNow?(run: RunId, began: number): number;
  beginStep(execution: Execution, op: StepOp, told: StepTold): StepCall | Promise<StepCall>;
  beginUndo(execution: Execution, op: StepOp, told: UndoTold): StepCall | Promise<StepCall>;
  /** Writes down in the transaction itself which call of which step was in it. */
  writeEffect?(tx: Transaction, effect: Effect): Promise<unknown>;
  work(ms: number): Promise<void>;
  /** Whether its code is the one since the change. Default: it is. */
  readonly isChanged?: boolean;
  /** Which side of a patch the code was told to take. */
  patched?(execution: Execution, id: string, isNew: boolean): void;
  /** Begins the transactions of a library in this database. */
  transactorOf?(database: Exclude<Database, "own">): Transactor<Transaction>;
  asked(execution: Execution, step: string, waitMs: number): void;
  delivered(execution: Execution, step: string, given: Given): void;
  /** Something happened in the code that should never happen. */
  unforeseen?(what: string): void;
}

export type ProgramWorkflow = Workflow<StampedProgram>;

export interface ProgramSettings {
  readonly crashLimit: number;
  readonly retryMs: number;
}

/** The workflows that execute programs, by the number of attempts they make. */
export function createProgramWorkflows(
  host: ProgramHost,
  { crashLimit, retryMs }: ProgramSettings,
): ReadonlyMap<Attempts, ProgramWorkflow> {
  const workflows = new Map<Attempts, ProgramWorkflow>();
  for (const attempts of attemptChoices) {
    const retry = { attempts, backoff: "fixed", initial: retryMs } as const;
    workflows.set(
      attempts,
      workflow(
        { name: `program${attempts}`, version: 1, crashLimit, retry, updates },
        (ctx, program: StampedProgram) => interpret(ctx, program, host, workflows),
      ),
    );
  }
  return workflows;
}

/** Refuses the updates that are to be. */
const updates: UpdateSchemas = {
  [updateName]: {
    input: {
      "~standard": {
        version: 1,
        vendor: "verify",
        validate: (value: unknown) =>
          kindOfUpdate(String(value)) === "refused"
            ? { issues: [{ message: "refused" }] }
            : { value: String(value) },
      },
    },
  },
};

/** What becomes of a step that takes too long, or whose worker dies. */
export const stepErrors = ["STEP_TIMED_OUT", "STEP_CRASHED"] as const;

/** How a run ended that did not complete. */
const stops = ["RUN_FAILED", "RUN_CANCELLED", "RUN_TIMED_OUT", "RUN_EXPIRED"] as const;

/** The run whose end this error tells of; null for any other error. */
function stoppedRun(error: unknown): unknown {
  return stops.some((code) => PawlError.is(error, code)) ? (error as PawlError).details["runId"] : null;
}

function programError(message: string): Error {
  return Object.assign(new Error(message), { name: "ProgramError" });
}

function limitOf({ timeoutMs }: { readonly timeoutMs?: number }): { readonly timeout?: number } {
  return timeoutMs === undefined ? {} : { timeout: timeoutMs };
}

function retryOf({ attempts, pauseMs }: Tries): NonNullable<StepOptions["retry"]> {
  return { attempts, backoff: "fixed", initial: pauseMs };
}

async function interpret(
  ctx: Context,
  program: StampedProgram,
  host: ProgramHost,
  workflows: ReadonlyMap<Attempts, ProgramWorkflow>,
): Promise<unknown> {
  const { id: run, attempt } = ctx.run;
  const began = program.epoch ?? 0;
  const execution = new Execution(run, attempt, () => host.epochNow?.(run, began) ?? began);
  let deliveries = 0;
  /** It has learnt that it is to stop, and nothing it does from here on has any effect. */
  let isStopped = false;

  /** The error of an operation, as opposed to one that the engine throws to stop the code. */
  const isOwnError = (error: unknown): boolean => {
    if (error instanceof Error && error.name === "ProgramError") return true;
    if (stepErrors.some((code) => (error as { readonly code?: unknown }).code === code)) return true;
    const stopped = stoppedRun(error);
    return stopped !== null && stopped !== execution.run;
  };

  const note = (op: Op, type: "ok" | "fail", value: string): void => {
    if (isStopped) return;
    host.delivered(execution, op.path, {
      index: deliveries++,
      type,
      value,
      now: ctx.now(),
      random: ctx.random(),
    });
  };

  /** Writes down what the code is given, in the order in which it is given. */
  const deliver = async <T>(op: Op, request: Promise<T>): Promise<T> => {
    try {
      const value = await request;
      note(op, "ok", JSON.stringify(value === undefined ? null : value));
      return value;
    } catch (error) {
      // No fact says so: it follows from what the winner was given.
      if (PawlError.is(error, "WITHDRAWN")) throw error;
      isStopped ||= stoppedRun(error) === execution.run;
      note(op, "fail", error instanceof Error ? error.message : String(error));
      throw error;
    }
  };

  const toldOf = ({ idempotencyKey, attempt }: StepContext | UndoContext): StepTold => ({
    // One that is done again after it was undone has another key; what it is called is the same.
    key: idempotencyKey.slice(run.length + 1).replace(/#since\d+$/, ""),
    attempt,
  });

  const performStep = async (op: StepOp, step: StepContext): Promise<string> => {
    const call = await host.beginStep(execution, op, toldOf(step));
    const { signal } = step;
    const hangs = call.fails && op.timeoutMs !== undefined;
    if (hangs && !signal.aborted)
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    else await host.work(op.workMs);
    call.end();
    // Whatever it returns once its time is over concerns nobody.
    if (call.fails && !PawlError.is(signal.reason, "STEP_TIMED_OUT")) throw programError(call.token);
    return call.token;
  };

  const performUndo = async (op: StepOp, result: string | undefined, undo: UndoContext): Promise<void> => {
    const told = { ...toldOf(undo), inDoubt: undo.inDoubt, result: result ?? null };
    const call = await host.beginUndo(execution, op, told);
    await host.work(op.workMs);
    call.end();
    if (call.fails) throw programError(call.token);
  };

  /** What it writes is there exactly if the step's result is recorded. */
  const performIn = async (tx: Transaction, op: StepOp, step: StepContext): Promise<string> => {
    const told = toldOf(step);
    const call = await host.beginStep(execution, op, told);
    await host.writeEffect?.(tx, { run, step: op.path, key: told.key, token: call.token });
    await host.work(op.workMs);
    call.end();
    if (call.fails) throw programError(call.token);
    return call.token;
  };

  const transactionOptionsOf = ({ transaction, retry }: StepOp): TransactionOptions<Transaction> => {
    const on = transaction === null || transaction === "own" ? undefined : host.transactorOf?.(transaction);
    return {
      // However often the database is in conflict, or cannot be reached: it heals.
      conflictAttempts: 1_000,
      ...(retry === null ? {} : { retry: retryOf(retry) }),
      ...(on === undefined ? {} : { on }),
    };
  };

  const optionsOf = (op: StepOp): StepOptions<string> => ({
    ...(op.retry === null ? {} : { retry: retryOf(op.retry) }),
    ...(op.timeoutMs === undefined ? {} : { timeout: op.timeoutMs }),
    ...(op.failsOnCrash === true ? { onCrash: "fail" } : {}),
    ...(op.undo === null
      ? {}
      : { undo: (result, undo) => performUndo(op, result, undo), undoRetry: retryOf(op.undo) }),
  });

  const childOf = ({ attempts }: Program): ProgramWorkflow => {
    const child = workflows.get(attempts);
    if (child === undefined) throw new Error(`No workflow makes ${attempts} attempts.`);
    return child;
  };

  const perform = async (op: Op, ctx: Context): Promise<unknown> => {
    switch (op.kind) {
      case "step":
        if (op.transaction !== null) {
          const work = (tx: Transaction, step: StepContext): Promise<string> => performIn(tx, op, step);
          return deliver(op, ctx.transaction(op.name, work, transactionOptionsOf(op)));
        }
        return deliver(
          op,
          ctx.step(op.name, (step) => performStep(op, step), optionsOf(op)),
        );
      case "sleep":
        host.asked(execution, op.path, op.ms);
        await deliver(op, ctx.sleep(op.ms));
        return "slept";
      case "pause":
        await deliver(op, ctx.pause(op.path));
        return "resumed";
      case "wait": {
        if (op.timeoutMs === null) return deliver(op, ctx.waitForSignal(op.signal));
        host.asked(execution, op.path, op.timeoutMs);
        return (await deliver(op, ctx.waitForSignal(op.signal, { timeout: op.timeoutMs }))) ?? "timeout";
      }
      case "call":
        return deliver(op, ctx.call(childOf(op.program), op.program, limitOf(op)));
      case "start": {
        const handle = await ctx.start(childOf(op.program), op.program, limitOf(op));
        const between = await performChain(op.between, ctx);
        return [between, await deliver(op, handle.result())];
      }
      case "all":
        return Promise.all(
          op.chains.map((chain, index) =>
            op.isScoped
              ? ctx.scope(`chain ${index}`, (inner) => performChain(chain, inner))
              : performChain(chain, ctx),
          ),
        );
      case "patch": {
        // Each side has names of its own: nothing of one is taken for the other.
        const isNew = host.isChanged !== false && ctx.patch(op.path);
        if (host.isChanged !== false) host.patched?.(execution, op.path, isNew);
        const side = `${isNew ? "new" : "old"} ${op.path}`;
        return {
          isNew,
          values: await ctx.scope(side, (inner) => performChain(op.chains[isNew ? 1 : 0], inner)),
        };
      }
      case "map": {
        let active = 0;
        let failedAt: number | null = null;
        const call = async (chain: readonly Op[], inner: Context): Promise<unknown> => {
          if (++active > op.concurrency) host.unforeseen?.(`more than ${op.concurrency} at a time in a map`);
          if (failedAt !== null && deliveries > failedAt)
            host.unforeseen?.("a map took another item after one had failed");
          try {
            return await performChain(chain, inner);
          } catch (error) {
            failedAt ??= deliveries;
            throw error;
          } finally {
            active -= 1;
          }
        };
        return ctx.map(op.path, op.chains, call, { concurrency: op.concurrency });
      }
      case "publish":
        await ctx.publish(op.key, op.path);
        return "published";
      case "stream": {
        const stream = ctx.stream(op.stream);
        for (let index = 0; index < op.items; index++) await stream.write(`${op.path}:${index}`);
        if (op.closes) await stream.close();
        return "written";
      }
      case "race": {
        const racer = (chain: readonly Op[]) => (inner: Context) => performChain(chain, inner);
        return ctx.race(Object.fromEntries(op.chains.map((chain, index) => [String(index), racer(chain)])));
      }
      case "try":
        try {
          return await performChain(op.body, ctx);
        } catch (error) {
          if (isOwnError(error)) return "caught";
          throw error;
        }
      case "throw":
        throw programError(op.path);
      default:
        return op satisfies never;
    }
  };

  const performChain = async (ops: readonly Op[], ctx: Context): Promise<readonly unknown[]> => {
    const results: unknown[] = [];
    for (const op of ops) results.push(await perform(op, ctx));
    return results;
  };

  /** Answers an update with what its step returned. */
  const answer = async (payload: string, ctx: Context): Promise<string> => {
    if (kindOfUpdate(payload) === "failed") throw programError(payload);
    const op: StepOp = {
      kind: "step",
      path: pathOfUpdate(program, payload),
      name: "answer",
      workMs: 0,
      failures: 0,
      retry: null,
      undo: null,
      transaction: null,
    };
    return deliver(
      op,
      ctx.step(op.name, (step) => performStep(op, step)),
    );
  };

  if (program.serves === true) ctx.onUpdate<string>(updateName, (payload, inner) => answer(payload, inner));
  const results = await performChain(program.ops, ctx);
  return program.next === null ? results : ctx.continueAs(program.next);
}
