/** Waiting in this process. Delays may be of any length; an implementation splits what its platform cannot hold. */
export interface Timers {
  /** Calls back once after `ms`, unless the returned function is called first. */
  after(ms: number, callback: () => void): () => void;
}

/** Resolves after `ms`, or as soon as the signal aborts: callers look at the signal, nothing is thrown. */
export function delay(timers: Timers, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = timers.after(ms, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}
