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
  /** Keeps a slot for a run that this worker may hold from its start: the answer will tell. */
  expect(runId: RunId): void;
  /** It is known now. */
  unexpect(runId: RunId): void;
  remove(held: HeldRun): void;
  /** Lets go of a run that is no longer this worker's. Its slot is free at once, though a step may take long to end. */
  drop(held: HeldRun): void;
  /** The run as held now; with an epoch, only if it is held under that one. */
  get(runId: RunId, epoch?: number): HeldRun | undefined;
  held(): readonly HeldRun[];
  expected(): readonly RunId[];
}

export function createSlots(concurrency: number): Slots {
  const byRun = new Map<RunId, HeldRun>();
  const expected = new Set<RunId>();
  const size = (): number => byRun.size + expected.size;
  const remove = (held: HeldRun): void => {
    if (byRun.get(held.runId) === held) byRun.delete(held.runId);
  };
  return {
    size,
    free: () => concurrency - size(),
    isEmpty: () => size() === 0,
    add(held) {
      byRun.get(held.runId)?.execution.drop();
      byRun.set(held.runId, held);
    },
    expect: (runId) => void expected.add(runId),
    unexpect: (runId) => void expected.delete(runId),
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
    expected: () => [...expected],
  };
}
