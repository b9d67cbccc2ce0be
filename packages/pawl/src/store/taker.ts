import type { RunId } from "../core/ids.ts";
import type { ClaimedRun, Holder } from "./lease.ts";
import type { NewRun } from "./run-record.ts";

/** A worker of this process that may hold runs from their start. */
export interface Taker {
  /** Keeps a place for the run. Null: not for this one, or not now. */
  offer(run: NewRun): Offer | null;
  /** Whether it has the run, and will tell those who wait for it to end. */
  isUnderWay(runId: RunId): boolean;
}

/** A place that is kept until the store has said whether the run is held. */
export interface Offer {
  readonly holder: Holder;
  /** Begins the run. Null: it is not held. */
  settle(held: ClaimedRun | null): void;
  /** There was no answer: it may be held, and nobody knows. */
  giveUp(): void;
}
