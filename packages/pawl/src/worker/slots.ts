import type { RunId } from "../core/ids.ts";
import type { Execution } from "../runtime/execution.ts";

/** A run this worker holds and executes. */
export interface HeldRun {
  readonly runId: RunId;
  readonly epoch: number;
  readonly execution: Execution;
}

/** What a worker executes at once, at most `concurrency` runs. */
export interface Slots {
  size(): number;
  free(): number;
  isEmpty(): boolean;
  add(held: HeldRun): void;
  remove(held: HeldRun): void;
  /** Lets go of a run that is no longer this worker's. Its slot is free at once, though a step may take long to end. */
  drop(held: HeldRun): void;
  /** The run as held now; with an epoch, only if it is held under that one. */
  get(runId: RunId, epoch?: number): HeldRun | undefined;
  held(): readonly HeldRun[];
}

export function createSlots(concurrency: number): Slots {
  const byRun = new Map<RunId, HeldRun>();
  const remove = (held: HeldRun): void => {
    if (byRun.get(held.runId) === held) byRun.delete(held.runId);
  };
  return {
    size: () => byRun.size,
    free: () => concurrency - byRun.size,
    isEmpty: () => byRun.size === 0,
    add(held) {
      byRun.get(held.runId)?.execution.drop();
      byRun.set(held.runId, held);
    },
    remove,
    drop(held) {
      remove(held);
      held.execution.drop();
    },
    get(runId, epoch) {
      const held = byRun.get(runId);
      return epoch === undefined || held?.epoch === epoch ? held : undefined;
    },
    held: () => [...byRun.values()],
  };
}
