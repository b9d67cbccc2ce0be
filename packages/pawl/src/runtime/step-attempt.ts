import { PawlError } from "../core/error.ts";
import type { Log } from "../core/log.ts";
import { isThenable } from "../core/thenable.ts";
import type { Timers } from "../core/timers.ts";
import { madeOnUse, type Makers } from "./made-on-use.ts";
import { createRunLog } from "./run-log.ts";
import type { StepContext } from "./step-context.ts";

/** One call of a step's function, or of what undoes it. */
export interface AttemptParts {
  readonly key: string;
  readonly number: number;
  readonly timeoutMs: number | null;
  readonly log: Log;
  readonly timers: Timers;
  call(step: StepContext): unknown;
  idempotencyKey(): string;
  /** What an earlier attempt said of how far it had come. */
  earlierProgress(): unknown;
  stream(): StepContext["stream"];
  /** It says how far it has come: at most once in 5 s, unless it has failed and there is something newer. */
  progressed(details: unknown): void;
  ended(end: AttemptEnd): void;
}

export type AttemptEnd =
  | { readonly kind: "returned"; readonly result: unknown }
  /** `wasStopped`: it was told to stop before it threw. */
  | { readonly kind: "threw"; readonly error: unknown; readonly wasStopped: boolean };

const progressEveryMs = 5_000;

/** One object with methods: there is one for every step, and most are told nothing, say nothing and end at once. */
export class StepAttempt {
  readonly #parts: AttemptParts;
  #controller: AbortController | null = null;
  #isStopped = false;
  #isResting = false;
  #newest: { readonly details: unknown } | null = null;
  #cancelRest: (() => void) | null = null;

  /** Calls the function at once. */
  constructor(parts: AttemptParts) {
    this.#parts = parts;
    const { timeoutMs } = parts;
    const given = madeOnUse(members, parts, this);
    let called: unknown;
    let isAtOnce = false;
    try {
      called = timeoutMs === null ? parts.call(given) : this.#callWithin(timeoutMs, given);
      isAtOnce = !isThenable(called);
    } catch (error) {
      this.#threw(error);
      return;
    }
    if (isAtOnce) this.#end({ kind: "returned", result: called });
    else void this.#await(called);
  }

  abort(reason: Error): void {
    this.#getController().abort(reason);
  }

  signal(): AbortSignal {
    return this.#getController().signal;
  }

  beat(details: unknown): void {
    if (this.#isStopped || details === undefined) return;
    this.#newest = { details };
    this.#passOn();
  }

  async #await(called: unknown): Promise<void> {
    let result: unknown;
    try {
      result = await called;
    } catch (error) {
      return this.#threw(error);
    }
    this.#end({ kind: "returned", result });
  }

  #threw(error: unknown): void {
    this.#flush();
    this.#end({ kind: "threw", error, wasStopped: this.#isAborted() });
  }

  #end(end: AttemptEnd): void {
    this.#isStopped = true;
    this.#cancelRest?.();
    this.#parts.ended(end);
  }

  async #callWithin(timeoutMs: number, given: StepContext): Promise<unknown> {
    const { key, number: attempt, timers } = this.#parts;
    let cancel = (): void => {};
    const timeOut = new Promise<never>((_, reject) => {
      cancel = timers.after(timeoutMs, () => {
        const message = `Attempt ${attempt} at step "${key}" took longer than its timeout of ${timeoutMs} ms.`;
        const error = new PawlError("STEP_TIMED_OUT", message, { step: key, attempt, timeoutMs });
        this.abort(error);
        reject(error);
      });
    });
    try {
      return await Promise.race([(async () => this.#parts.call(given))(), timeOut]);
    } finally {
      cancel();
    }
  }

  #getController(): AbortController {
    return (this.#controller ??= new AbortController());
  }

  #isAborted(): boolean {
    return this.#controller?.signal.aborted === true;
  }

  /** The first details at once, and then the newest at most once in a while. */
  #passOn(): void {
    // One that was told to stop must not be kept alive by what it says.
    if (this.#newest === null || this.#isStopped || this.#isResting || this.#isAborted()) return;
    this.#isResting = true;
    this.#cancelRest = this.#parts.timers.after(progressEveryMs, () => {
      this.#isResting = false;
      this.#passOn();
    });
    this.#flush();
  }

  /** Passes on what was told last, if that was not. */
  #flush(): void {
    if (this.#newest === null || this.#isStopped) return;
    const { details } = this.#newest;
    this.#newest = null;
    this.#parts.progressed(details);
  }
}

const members: Makers<StepContext, AttemptParts, StepAttempt> = {
  signal: (_parts, attempt) => attempt.signal(),
  idempotencyKey: (parts) => parts.idempotencyKey(),
  attempt: (parts) => parts.number,
  progress: (parts) => parts.earlierProgress(),
  heartbeat: (_parts, attempt) => (details?: unknown) => attempt.beat(details),
  log: (parts) => createRunLog(parts.log, {}),
  stream: (parts) => parts.stream(),
};
