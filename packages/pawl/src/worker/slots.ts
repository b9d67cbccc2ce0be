import type { RunId } from "../core/ids.ts";
import type { Execution } from "../runtime/execution.ts";

/** A run this worker holds and executes. */
export interface HeldRun {
  readonly runId: RunId;
  readonly epoch: number;
  readonly execution: Execution;
  /** It has no slot yet. */
  isWaiting: boolean;
  /** Its code has come to its end, and that is being written down. */
  isEnding: boolean;
}

/**
 * What a worker executes at once, at most `concurrency` runs. Those whose end is being written down take no slot, up to three
 * times as many: so it claims while they are, and is never idle in between. Those that wait for a slot have none.
 */
export interface Slots<Held extends HeldRun = HeldRun> {
  size(): number;
  free(): number;
  waiting(): number;
  isEmpty(): boolean;
  add(held: Held): void;
  /** Keeps a slot for a run that this worker may hold from its start: the answer will tell. */
  expect(runId: RunId): void;
  /** It is known now. */
  unexpect(runId: RunId): void;
  /** A run that has waited takes its slot. */
  begin(held: Held): void;
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

/** As many as one call to the store ends. */
const mostEnding = 500;

export function createSlots<Held extends HeldRun = HeldRun>(concurrency: number): Slots<Held> {
  const byRun = new Map<RunId, Held>();
  const expected = new Set<RunId>();
  let ending = 0;
  let waiting = 0;
  const size = (): number => byRun.size + expected.size;
  const forget = (held: Held): void => {
    if (held.isEnding) ending -= 1;
    if (held.isWaiting) waiting -= 1;
  };
  const remove = (held: Held): void => {
    if (byRun.get(held.runId) !== held) return;
    byRun.delete(held.runId);
    forget(held);
  };
  const get: Slots<Held>["get"] = (runId, epoch) => {
    const held = byRun.get(runId);
    return epoch === undefined || held?.epoch === epoch ? held : undefined;
  };
  return {
    size,
    free: () =>
      concurrency -
      size() +
      waiting +
      (concurrency > fewSlots ? Math.min(ending, 3 * concurrency, concurrency + mostEnding) : 0),
    waiting: () => waiting,
    isEmpty: () => size() === 0,
    add(held) {
      const before = byRun.get(held.runId);
      before?.execution.drop();
      if (before !== undefined) forget(before);
      byRun.set(held.runId, held);
      if (held.isWaiting) waiting += 1;
    },
    begin(held) {
      held.isWaiting = false;
      waiting -= 1;
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
