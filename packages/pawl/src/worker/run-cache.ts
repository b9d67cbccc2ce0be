import type { RunId } from "../core/ids.ts";
import type { Execution } from "../runtime/execution.ts";

/**
 * Parked runs whose code waits in this process. They hold neither slot nor lease: whoever claims one first has it, and
 * what is kept here is of use only if that is this worker and nothing was recorded in between.
 */
export interface RunCache {
  keep(runId: RunId, workerId: string, execution: Execution): void;
  /** Whether anything is kept of this run. */
  has(runId: RunId): boolean;
  /** What was kept of this run, if anything; it is kept no longer. */
  take(runId: RunId, workerId: string): Execution | undefined;
  clear(): void;
}

/** Of the facts that they hold on to, together. What users' code holds on to is not known. */
const mostBytes = 64_000_000;

/** @param mostRuns beyond that, and beyond `mostBytes`, those go first that were parked longest ago */
export function createRunCache(mostRuns: number): RunCache {
  const kept = new Map<RunId, { readonly execution: Execution; readonly bytes: number }>();
  let bytes = 0;
  /** A worker that goes on under another id lets go of all it held, and of what it kept. */
  let owner: string | null = null;

  const clear = (): void => {
    kept.clear();
    bytes = 0;
  };

  const belongTo = (workerId: string): void => {
    if (owner !== workerId) clear();
    owner = workerId;
  };

  const remove = (runId: RunId): Execution | undefined => {
    const run = kept.get(runId);
    kept.delete(runId);
    bytes -= run?.bytes ?? 0;
    return run?.execution;
  };

  return {
    clear,
    has: (runId) => kept.has(runId),
    keep(runId, workerId, execution) {
      belongTo(workerId);
      remove(runId);
      kept.set(runId, { execution, bytes: execution.bytes() });
      bytes += execution.bytes();
      for (const oldest of kept.keys()) {
        if (kept.size <= mostRuns && bytes <= mostBytes) return;
        remove(oldest);
      }
    },
    take(runId, workerId) {
      belongTo(workerId);
      return remove(runId);
    },
  };
}
