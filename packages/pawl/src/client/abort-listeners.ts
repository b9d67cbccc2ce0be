import type { Check } from "../core/options.ts";

/** Waits for signals to abort, with one listener a signal however many wait: platforms warn of a leak beyond ten. */
export interface AbortListeners {
  /** Calls back when the signal aborts, unless the returned function is called first. */
  add(signal: AbortSignal, callback: () => void): () => void;
}

export function createAbortListeners(): AbortListeners {
  const callbacks = new WeakMap<AbortSignal, Set<() => void>>();

  const listen = (signal: AbortSignal): Set<() => void> => {
    const waiting = new Set<() => void>();
    callbacks.set(signal, waiting);
    const abort = (): void => {
      for (const callback of waiting) callback();
    };
    signal.addEventListener("abort", abort, { once: true });
    return waiting;
  };

  return {
    add(signal, callback) {
      const waiting = callbacks.get(signal) ?? listen(signal);
      waiting.add(callback);
      return () => waiting.delete(callback);
    },
  };
}

export const checkAbortSignal: Check = (value) => {
  const { aborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function"
    ? null
    : "must be an AbortSignal";
};
