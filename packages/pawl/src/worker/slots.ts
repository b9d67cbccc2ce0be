import type { RunId } from "../core/ids.ts";
import type { Execution } from "../runtime/execution.ts";

/** A run this worker holds and executes. */
export interface HeldRun {
  readonly runId: RunId;
  readonly epoch: number;
  readonly execution: Execution;
  /** Its code has come to its end, and that is being written down. */
  isEnding: boolean;
}

/**
 * What a worker executes at once, at most `concurrency` runs. Those whose end is being written down take no slot, up to as many again:
 * so it claims while they are, and is never idle in between.
 */
export interface Slots<Held extends HeldRun = HeldRun> {
  size(): number;
  free(): number;
  isEmpty(): boolean;
  add(held: Held): void;
  /** Keeps a slot for a run that this worker may hold from its start: the answer will tell. */
  expect(runId: RunId): void;
  /** It is known now. */
  unexpect(runId: RunId): void;
  /** The code of this run has come to its end. */
  ending(runId: RunId, epoch: number): void;
  remove(held: Held): void;
  /** Lets go of a run that is no longer this worker's. Its slot is free at once, though a step may take long to end. */
  drop(held: Held): void;
  /** The run as held now; with an epoch, only if it is held under that one. */
  get(runId: RunId, epoch?: number): Held | undefined;
  held(): readonly Held[];
  expected(): readonly RunId[];
}

/** With so few slots the order of runs can be seen, and claims are rare: order comes before speed. */
export const fewSlots = 3;

export function createSlots<Held extends HeldRun = HeldRun>(concurrency: number): Slots<Held> {
  const byRun = new Map<RunId, Held>();
  const expected = new Set<RunId>();
  let ending = 0;
  const size = (): number => byRun.size + expected.size;
  const remove = (held: Held): void => {
    if (byRun.get(held.runId) !== held) return;
    byRun.delete(held.runId);
    if (held.isEnding) ending -= 1;
  };
  const get: Slots<Held>["get"] = (runId, epoch) => {
    const held = byRun.get(runId);
    return epoch === undefined || held?.epoch === epoch ? held : undefined;
  };
  return {
    size,
    free: () => concurrency - size() + (concurrency > fewSlots ? Math.min(ending, concurrency) : 0),
    isEmpty: () => size() === 0,
    add(held) {
      const before = byRun.get(held.runId);
      before?.execution.drop();
      if (before?.isEnding === true) ending -= 1;
      byRun.set(held.runId, held);
    },
    expect: (runId) => void expected.add(runId),
    unexpect: (runId) => void expected.delete(runId),
    remove,
    drop(held) {
      remove(held);
      held.execution.drop();
    },
    ending(runId, epoch) {
      const held = get(runId, epoch);
      if (held === undefined || held.isEnding) return;
      held.isEnding = true;
      ending += 1;
    },
    get,
    held: () => [...byRun.values()],
    expected: () => [...expected],
  };
}
