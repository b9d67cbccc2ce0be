import { isDeepStrictEqual } from "node:util";
import type { Transition } from "../../src/postgres/transition.ts";
import { claimRuns } from "../../src/postgres/transitions/claim-runs.ts";
import { terminateRun } from "../../src/postgres/transitions/control.ts";
import { beginRuns, completeRun, endRuns, releaseRuns } from "../../src/postgres/transitions/end-runs.ts";
import { tellInTransaction } from "../../src/postgres/transitions/in-transaction.ts";
import { parkRuns } from "../../src/postgres/transitions/park-runs.ts";
import { wakeDue } from "../../src/postgres/transitions/wake-due.ts";
import { heartbeat, sweep } from "../../src/postgres/transitions/workers.ts";
import type { StoreSnapshot } from "../../src/store/snapshot.ts";
import type { Move } from "./move.ts";
import type { Outcome } from "./race.ts";

// Two moves at once come to what they come to in turn. All exceptions are here, each with its reason.

/** The rule: both answers and everything in the store are as after one of the two orders. */
export function isEqual(outcome: Outcome, other: Outcome): boolean {
  return (
    isDeepStrictEqual(outcome.answers, other.answers) && isDeepStrictEqual(outcome.snapshot, other.snapshot)
  );
}

const skipping: ReadonlySet<Transition> = new Set([claimRuns, wakeDue, sweep, heartbeat]);

/**
 * These pass over rows that others hold at the moment, because nobody may keep them from the rest. What they have
 * passed over they find when they are repeated, as each of them is, for ever.
 */
export function isSkipping(move: Move): boolean {
  return skipping.has(move.statement);
}

const changingWhatIsBegun: ReadonlySet<Transition> = new Set([
  beginRuns,
  parkRuns,
  endRuns,
  completeRun,
  releaseRuns,
  terminateRun,
]);

/**
 * A sweep that finds a worker dead counts the runs it had begun as everybody sees them, while the worker's last write
 * may still be under way. To wait for it would leave the worker's other runs unrecovered for as long. So whether a
 * run was alone when its worker died is evidence, and not exact. Sparing the run is the usual error.
 */
export function isEvidenceOpen(first: Move, second: Move): boolean {
  return second.statement === sweep && changingWhatIsBegun.has(first.statement);
}

/** The same state, whatever was answered on the way; without what follows from that evidence, if it is open. */
export function isSameState(one: StoreSnapshot, other: StoreSnapshot, evidenceOpen: boolean): boolean {
  if (!evidenceOpen) return isDeepStrictEqual(one, other);
  return isDeepStrictEqual(withoutEvidence(one), withoutEvidence(other));
}

function withoutEvidence(snapshot: StoreSnapshot): StoreSnapshot {
  return {
    ...snapshot,
    workers: snapshot.workers.map((worker) => ({ ...worker, heldAtEnd: null })),
    ready: snapshot.ready.map((row) => ({ ...row, crashes: 0, suspicion: 0 })),
    events: snapshot.events.map((event) =>
      event.kind === "attempt_crashed" ? { ...event, data: null } : event,
    ),
  };
}

/** What is told in a caller's transaction takes effect when its run is woken, which follows it. */
export function hasNoEffectYet(move: Move): boolean {
  return move.statement === tellInTransaction;
}

/**
 * What is told in a caller's transaction while the run goes on as another is left with the old run: neither waits for the
 * other. It is passed on when that run is woken, which follows it.
 */
export function isPassedOnLater(first: Move, second: Move): boolean {
  return (hasNoEffectYet(first) && second.isContinuing) || (first.isContinuing && hasNoEffectYet(second));
}

/**
 * A caller's transaction may stay open for as long as the caller likes, so nobody waits for it. Except who inserts
 * the same key: which of the two was first is not known before it ends.
 */
export function mayWaitFor(held: Move, waiting: Move): boolean {
  return held.isolation === null || waiting.keys.some((key) => held.keys.includes(key));
}
