import { PawlError } from "../core/error.ts";
import type { Log } from "../core/log.ts";
import type { Timers } from "../core/timers.ts";
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
  readonly stream: StepContext["stream"];
  readonly log: Log;
  readonly timers: Timers;
  /** Says how far it has come: at most once in 5 s, unless it has failed and there is something newer. */
  readonly progressed: (details: unknown) => void;
}

const progressEveryMs = 5_000;

/** Calls the function at once. */
export function beginAttempt(parts: AttemptParts): StepAttempt {
  const { key, call, idempotencyKey, attempt, timeoutMs, progress, stream, log, timers } = parts;
  const controller = new AbortController();
  const { signal } = controller;
  const heart = createHeart(parts, signal);

  let cancelTimeout = (): void => {};
  const timeOut = new Promise<never>((_, reject) => {
    if (timeoutMs === null) return;
    cancelTimeout = timers.after(timeoutMs, () => {
      const message = `Attempt ${attempt} at step "${key}" took longer than its timeout of ${timeoutMs} ms.`;
      const error = new PawlError("STEP_TIMED_OUT", message, { step: key, attempt, timeoutMs });
      controller.abort(error);
      reject(error);
    });
  });

  const run = async (): Promise<AttemptEnd> => {
    try {
      const given = { signal, idempotencyKey, attempt, progress, heartbeat: heart.beat, log, stream };
      const called = (async () => call(given))();
      return {
        kind: "returned",
        result: await (timeoutMs === null ? called : Promise.race([called, timeOut])),
      };
    } catch (error) {
      heart.flush();
      return { kind: "threw", error, wasStopped: signal.aborted };
    } finally {
      heart.stop();
      cancelTimeout();
    }
  };
  return { ended: run(), abort: (reason) => controller.abort(reason) };
}

interface Heart {
  readonly beat: (details?: unknown) => void;
  /** Passes on what was told last, if that was not. */
  flush(): void;
  stop(): void;
}

/** Passes on the first details at once, and then the newest at most once in a while. */
function createHeart({ timers, progressed }: AttemptParts, signal: AbortSignal): Heart {
  let isStopped = false;
  let isResting = false;
  let newest: { readonly details: unknown } | null = null;
  let cancelRest = (): void => {};

  const flush = (): void => {
    if (newest === null || isStopped) return;
    const { details } = newest;
    newest = null;
    progressed(details);
  };

  const passOn = (): void => {
    // One that was told to stop must not be kept alive by what it says.
    if (newest === null || isStopped || isResting || signal.aborted) return;
    isResting = true;
    cancelRest = timers.after(progressEveryMs, () => {
      isResting = false;
      passOn();
    });
    flush();
  };

  return {
    flush,
    beat(details) {
      if (isStopped || details === undefined) return;
      newest = { details };
      passOn();
    },
    stop() {
      isStopped = true;
      cancelRest();
    },
  };
}
