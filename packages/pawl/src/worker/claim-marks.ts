import type { Clock } from "../core/clock.ts";
import type { ClaimedRun, Lane, Mark } from "../store/lease.ts";

/** A claim's lanes, and whether it looks from the beginning of all of them. */
export interface Look {
  readonly lanes: readonly Lane[];
  readonly isFull: boolean;
}

/**
 * Lets a claim begin where the last one ended, so that it does not step over all that has been claimed before. What
 * stands before the mark (higher priority, late commits) is found by a full look, as often as its cost allows.
 */
export interface ClaimMarks {
  look(lanes: readonly Lane[]): Look;
  /** Moves the marks to what this look brought. */
  found(look: Look, runs: readonly ClaimedRun[], tookMs: number): void;
  /** Whoever skips the full look until this instant has overlooked nothing for longer than the bound. */
  fullLookDueAt(): number;
  /** The next look is a full one. */
  forget(): void;
}

/** A commit this much later than the clock it was stamped with is still behind the mark. */
const marginMs = 50;
/** While there is work, a full look comes at least this long after the last one… */
const shortestPauseMs = 50;
/** …or this many times what the last one took, so that it costs a tenth of the time at most… */
const pausePerCost = 10;
/** …but never later than this. Together they bound how long anything is overlooked. */
const longestPauseMs = 2_000;

const lowestRunId = "00000000-0000-0000-0000-000000000000";

/** @param isStrict every look is a full one: a worker of few slots keeps to the order of priorities */
export function createClaimMarks(clock: Clock, isStrict = false): ClaimMarks {
  const marks = new Map<string, Mark>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  let lookTookMs = 0;
  let isFinding = false;

  const fullLookDueAt = (): number => {
    const pauseMs = Math.max(isFinding ? shortestPauseMs : 0, pausePerCost * lookTookMs);
    return lookedAt + Math.min(longestPauseMs, pauseMs);
  };

  return {
    look(lanes) {
      if (isStrict || marks.size === 0 || clock.now() >= fullLookDueAt()) return { lanes, isFull: true };
      return {
        lanes: lanes.map((lane) => ({ ...lane, after: placeBefore(marks.get(laneKey(lane))) })),
        isFull: false,
      };
    },
    found(look, runs, tookMs) {
      isFinding = runs.length > 0;
      if (look.isFull) {
        lookedAt = clock.now();
        lookTookMs = tookMs;
      }
      // In the order of claiming: of those of one lane that follow each other the last counts.
      runs.forEach((run, index) => {
        if (!isOfLane(runs[index + 1], run)) marks.set(laneKey(run), run.mark);
      });
    },
    fullLookDueAt,
    forget() {
      marks.clear();
      lookedAt = Number.NEGATIVE_INFINITY;
    },
  };
}

function placeBefore(mark: Mark | undefined): Mark | null {
  if (mark === undefined) return null;
  return { priority: mark.priority, readyAt: mark.readyAt - marginMs, runId: lowestRunId };
}

interface LaneName {
  readonly queue: string;
  readonly workflow: string;
  readonly version: number;
}

function isOfLane(run: LaneName | undefined, lane: LaneName): boolean {
  return run?.queue === lane.queue && run.workflow === lane.workflow && run.version === lane.version;
}

function laneKey(lane: LaneName): string {
  return JSON.stringify([lane.queue, lane.workflow, lane.version]);
}
