import type { Clock } from "../core/clock.ts";
import type { RunId } from "../core/ids.ts";
import type { Timers } from "../core/timers.ts";
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
  /** Since when it has its slot, or has waited for one. */
  since: number;
}

export interface ExecutorParts {
  readonly slots: Slots<OwnedHeld>;
  readonly cache: RunCache;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly create: (claimed: ClaimedRun, workerId: string, waits: boolean) => Execution;
  /** The worker no longer holds this run. `slotMs`: how long it had a slot; null: it had none. */
  readonly freed: (runId: RunId, slotMs: number | null) => void;
  /** The run is no longer this worker's, though it did not let go of it. */
  readonly lost: (run: OwnedRun) => void;
}

/**
 * Owns the executions of a worker. One that is dropped has ended, whatever its steps still do. What comes when no slot is free waits in
 * line, and is given back when that takes long: somebody else may have a slot.
 */
export interface Executor {
  execute(claimed: ClaimedRun, workerId: string): void;
  /** A slot may be free. */
  admit(): void;
  /** Begins nothing more, and asks every run to be given back as soon as its running steps have ended. */
  release(): void;
  /** Lets go of all that is still executed, whatever its steps do, and answers what that was. */
  giveUp(): readonly OwnedRun[];
  /** Resolves when nothing is executed any more. */
  ended(): Promise<void>;
}

/** So long a run waits for a slot. */
const longestWaitMs = 250;

export function createExecutor(parts: ExecutorParts): Executor {
  const { slots, cache, clock, timers, freed, lost } = parts;
  let executing = 0;
  let line: OwnedHeld[] = [];
  /** Those before it in line have left it. */
  let first = 0;
  let isAdmitting = false;
  let isWatched = false;
  /** Who waits until nothing is executed. */
  let waiting: (() => void)[] = [];
  let isReleasing = false;

  const stillWaits = (held: OwnedHeld): boolean => held.isWaiting && slots.get(held.runId) === held;

  const beginNext = (): void => {
    isAdmitting = false;
    for (; first < line.length && slots.free() > 0; first++) {
      const held = line[first] as OwnedHeld;
      if (!stillWaits(held)) continue;
      slots.begin(held);
      held.since = clock.now();
      held.execution.begin();
    }
    if (first === line.length || first > 1_000) {
      line = line.slice(first);
      first = 0;
    }
  };

  const admit = (): void => {
    if (isAdmitting || first === line.length) return;
    isAdmitting = true;
    queueMicrotask(beginNext);
  };

  const giveBack = (): void => {
    const waiting = line.slice(first).filter(stillWaits);
    line = [];
    first = 0;
    for (const { execution } of waiting) execution.release();
  };

  /** All that stands in line is given back when the first has waited for too long. */
  const watch = (): void => {
    const oldest = line[first];
    isWatched = oldest !== undefined;
    if (oldest === undefined) return;
    const leftMs = oldest.since + longestWaitMs - clock.now();
    if (leftMs > 0) return void timers.after(leftMs, watch);
    isWatched = false;
    giveBack();
  };

  const own = async (held: OwnedHeld): Promise<void> => {
    if (isReleasing) held.execution.release();
    const outcome = await held.execution.done;
    executing -= 1;
    slots.remove(held);
    admit();
    freed(held.runId, held.isWaiting ? null : clock.now() - held.since);
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
      // Whoever waits comes first.
      const isWaiting = slots.free() <= 0 || slots.waiting() > 0;
      const held: OwnedHeld = {
        claimed,
        workerId,
        isOwned: true,
        runId: claimed.runId,
        epoch: claimed.epoch,
        execution:
          cache.take(claimed.runId, workerId)?.resume(claimed, isWaiting) ??
          parts.create(claimed, workerId, isWaiting),
        since: clock.now(),
        isWaiting,
        isEnding: false,
      };
      // This worker had it before, let go of it, and has not heard yet that it did: it is not lost.
      const before = slots.get(claimed.runId);
      if (before !== undefined) before.isOwned = false;
      slots.add(held);
      void own(held);
      if (!isWaiting) return;
      line.push(held);
      admit();
      if (!isWatched) watch();
    },
    admit,
    release() {
      isReleasing = true;
      cache.clear();
      line = [];
      first = 0;
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
