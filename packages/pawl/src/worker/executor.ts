import type { RunId } from "../core/ids.ts";
import type { Execution } from "../runtime/execution.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { HeldRun, Slots } from "./slots.ts";

export interface ExecutorParts {
  readonly slots: Slots;
  readonly begin: (claimed: ClaimedRun, workerId: string) => Execution;
  /** The worker no longer executes this run. */
  readonly freed: (runId: RunId) => void;
}

/** Owns the executions a worker has begun. One that is dropped has ended, whatever its steps still do. */
export interface Executor {
  execute(claimed: ClaimedRun, workerId: string): void;
  /** Begins nothing more, and asks every run to be given back as soon as its running steps have ended. */
  release(): void;
  /** Resolves when nothing is executed any more. */
  ended(): Promise<void>;
}

export function createExecutor({ slots, begin, freed }: ExecutorParts): Executor {
  const executing = new Set<Promise<void>>();
  let isReleasing = false;

  const own = async (held: HeldRun): Promise<void> => {
    await held.execution.done;
    slots.remove(held);
    freed(held.runId);
  };

  return {
    execute(claimed, workerId) {
      // What was claimed while stopping is given back with the rest.
      if (isReleasing) return;
      const held: HeldRun = {
        runId: claimed.runId,
        epoch: claimed.epoch,
        execution: begin(claimed, workerId),
      };
      slots.add(held);
      const owned = own(held).finally(() => executing.delete(owned));
      executing.add(owned);
    },
    release() {
      isReleasing = true;
      for (const { execution } of slots.held()) execution.release();
    },
    async ended() {
      while (executing.size > 0) await Promise.all(executing);
    },
  };
}
