import { PawlError } from "../core/error.ts";
import type { Log } from "../core/log.ts";
import type { Timers } from "../core/timers.ts";
import { createRunLog } from "./run-log.ts";
import type { StepContext } from "./step-context.ts";

/** One call of a step's function. */
export interface StepAttempt {
  /** Never rejects. */
  readonly ended: Promise<AttemptEnd>;
  abort(reason: Error): void;
}

export type AttemptEnd =
  | { readonly kind: "returned"; readonly result: unknown }
  /** `wasStopped`: it was told to stop before it threw. */
  | { readonly kind: "threw"; readonly error: unknown; readonly wasStopped: boolean };

interface AttemptParts {
  readonly key: string;
  readonly call: (step: StepContext) => unknown;
  readonly idempotencyKey: string;
  readonly attempt: number;
  readonly timeoutMs: number | null;
  readonly progress: unknown;
  readonly stream: () => StepContext["stream"];
  readonly log: Log;
  readonly timers: Timers;
  /** Says how far it has come: at most once in 5 s, unless it has failed and there is something newer. */
  readonly progressed: (details: unknown) => void;
}

const progressEveryMs = 5_000;

/** Calls the function at once. */
export function beginAttempt(parts: AttemptParts): StepAttempt {
  return new Attempt(parts);
}

class Attempt implements StepAttempt {
  readonly ended: Promise<AttemptEnd>;
  readonly #parts: AttemptParts;
  #controller: AbortController | null = null;
  #isStopped = false;
  #isResting = false;
  #newest: { readonly details: unknown } | null = null;
  #cancelRest: (() => void) | null = null;

  constructor(parts: AttemptParts) {
    this.#parts = parts;
    this.ended = this.#run();
  }

  abort(reason: Error): void {
    this.#getController().abort(reason);
  }

  async #run(): Promise<AttemptEnd> {
    const { call, timeoutMs } = this.#parts;
    const given = this.#give();
    try {
      const result = await (timeoutMs === null ? call(given) : this.#callWithin(timeoutMs, given));
      return { kind: "returned", result };
    } catch (error) {
      this.#flush();
      return { kind: "threw", error, wasStopped: this.#isAborted() };
    } finally {
      this.#isStopped = true;
      this.#cancelRest?.();
    }
  }

  /** A plain object. Most functions ask for none of what is costly to make: so it is made when they do. */
  #give(): StepContext {
    const { idempotencyKey, attempt, progress, log, stream } = this.#parts;
    const getController = (): AbortController => this.#getController();
    const beat = (details?: unknown): void => this.#beat(details);
    let writers: StepContext["stream"] | null = null;
    let ownLog: Log | null = null;
    return {
      idempotencyKey,
      attempt,
      progress,
      heartbeat: beat,
      get signal() {
        return getController().signal;
      },
      get log() {
        return (ownLog ??= createRunLog(log, {}));
      },
      get stream() {
        return (writers ??= stream());
      },
    };
  }

  async #callWithin(timeoutMs: number, given: StepContext): Promise<unknown> {
    const { key, attempt, call, timers } = this.#parts;
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
      return await Promise.race([(async () => call(given))(), timeOut]);
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

  #beat(details: unknown): void {
    if (this.#isStopped || details === undefined) return;
    this.#newest = { details };
    this.#passOn();
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
