import type { RunId } from "../core/ids.ts";
import type { Execution } from "../runtime/execution.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { RunCache } from "./run-cache.ts";
import type { HeldRun, Slots } from "./slots.ts";

/** A run, and the id under which the worker holds it. */
export interface OwnedRun {
  readonly claimed: ClaimedRun;
  readonly workerId: string;
}

/** A run in a slot. */
export interface OwnedHeld extends HeldRun, OwnedRun {
  /** Whether its end, however it comes, is this worker's concern. */
  isOwned: boolean;
}

export interface ExecutorParts {
  readonly slots: Slots<OwnedHeld>;
  readonly cache: RunCache;
  readonly begin: (claimed: ClaimedRun, workerId: string) => Execution;
  /** The worker no longer executes this run. */
  readonly freed: (runId: RunId) => void;
  /** The run is no longer this worker's, though it did not let go of it. */
  readonly lost: (run: OwnedRun) => void;
}

/** Owns the executions a worker has begun. One that is dropped has ended, whatever its steps still do. */
export interface Executor {
  execute(claimed: ClaimedRun, workerId: string): void;
  /** Begins nothing more, and asks every run to be given back as soon as its running steps have ended. */
  release(): void;
  /** Lets go of all that is still executed, whatever its steps do, and answers what that was. */
  giveUp(): readonly OwnedRun[];
  /** Resolves when nothing is executed any more. */
  ended(): Promise<void>;
}

export function createExecutor({ slots, cache, begin, freed, lost }: ExecutorParts): Executor {
  let executing = 0;
  /** Who waits until nothing is executed. */
  let waiting: (() => void)[] = [];
  let isReleasing = false;

  const own = async (held: OwnedHeld): Promise<void> => {
    if (isReleasing) held.execution.release();
    const outcome = await held.execution.done;
    executing -= 1;
    slots.remove(held);
    freed(held.runId);
    const { isOwned } = held;
    held.isOwned = false;
    if (outcome === "parked" && isOwned && !isReleasing)
      cache.keep(held.runId, held.workerId, held.execution);
    if (outcome === "lost" && isOwned) lost(held);
    if (executing > 0 || waiting.length === 0) return;
    const told = waiting;
    waiting = [];
    for (const tell of told) tell();
  };

  return {
    execute(claimed, workerId) {
      // What was claimed while stopping is given back with the rest.
      if (isReleasing) return;
      // Its code may begin at once, and may stop its worker.
      executing += 1;
      const held: OwnedHeld = {
        claimed,
        workerId,
        isOwned: true,
        runId: claimed.runId,
        epoch: claimed.epoch,
        execution: cache.take(claimed.runId, workerId)?.resume(claimed) ?? begin(claimed, workerId),
        isEnding: false,
      };
      // This worker had it before, let go of it, and has not heard yet that it did: it is not lost.
      const before = slots.get(claimed.runId);
      if (before !== undefined) before.isOwned = false;
      slots.add(held);
      void own(held);
    },
    release() {
      isReleasing = true;
      cache.clear();
      for (const { execution } of slots.held()) execution.release();
    },
    giveUp() {
      const givenUp = slots.held().filter(({ isOwned }) => isOwned);
      for (const held of slots.held()) {
        held.isOwned = false;
        slots.drop(held);
      }
      return givenUp;
    },
    async ended() {
      while (executing > 0) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
