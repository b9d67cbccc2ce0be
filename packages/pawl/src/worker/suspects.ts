import { jittered } from "../core/back-off.ts";
import type { Clock } from "../core/clock.ts";
import type { RunId } from "../core/ids.ts";
import type { Random } from "../core/random.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { HeldRun, Slots } from "./slots.ts";

/**
 * What to do next: claim ordinary runs; claim one suspect; or claim nothing for so long, since a suspect is being
 * tried or the worker empties itself for one.
 */
type NextClaim =
  | { readonly kind: "suspect" }
  /** At once if suspects wait for a worker as idle as this one: they have the turn after. */
  | { readonly kind: "ordinary"; readonly isUrgent: boolean }
  | { readonly kind: "nothing"; readonly ms: number };

/**
 * Runs that were in a worker when it died are tried alone, in an empty worker, so that a run that kills its worker
 * kills no neighbour, and is found out. An idle worker tries them at once. A busy one waits for idle peers first,
 * then empties itself, for a while: what outlasts that may take for ever, or wait for the very suspect, and does not count any
 * more. For the same reason a suspect is alone for a while only: it may take for ever, or wait for a run that nobody else can
 * take. That while doubles with each crash since it last parked, so that one which takes its time to kill is alone when it does, in
 * the end.
 */
export interface Suspects {
  next(slots: Pick<Slots, "held" | "expected">): NextClaim;
  /** What a claim answered: which runs, and whether suspects are left. */
  seen(kind: "ordinary" | "suspect", runs: readonly Seen[], areWaiting: boolean): void;
  /** The worker no longer holds this run. Answers whether it was the one being tried. */
  freed(runId: RunId): boolean;
}

type Seen = Pick<ClaimedRun, "runId" | "suspicion">;

/** An hour, with the default lease: for so long all other work may stand still where one worker is all there is. */
const mostDoublings = 6;
/** While the answer to a start is awaited that this worker may hold. */
const shortestPauseMs = 20;

export function createSuspects(clock: Clock, random: Random, leaseMs: number): Suspects {
  let waitingSince: number | null = null;
  /** How long to leave them to idle peers; jittered, so that the fleet does not empty itself all at once. */
  let patienceMs = 0;
  let tried: { readonly runId: RunId; readonly until: number } | null = null;
  /** The worker has waited in vain for these to end. */
  const lasting = new WeakSet<HeldRun>();
  /** Nothing ordinary was found, so suspects have the next turn. They never have two in a row. */
  let isTheirTurn = false;
  /** The last try for one brought none: somebody else has them, or they cannot be claimed now. */
  let isRefused = false;

  const drainMs = 4 * leaseMs;
  const aloneFor = (suspicion: number): number =>
    4 * leaseMs * 2 ** Math.min(mostDoublings, Math.max(0, suspicion - 2));
  const waitAnew = (leases: number): void => {
    waitingSince = clock.now();
    patienceMs = jittered(leases * leaseMs, random, 0.33);
  };

  return {
    next(slots) {
      const aloneMs = tried === null ? 0 : tried.until - clock.now();
      if (aloneMs > 0) return { kind: "nothing", ms: aloneMs };
      tried = null;
      if (waitingSince === null) return { kind: "ordinary", isUrgent: false };
      const drainLeftMs = waitingSince + patienceMs + drainMs - clock.now();
      const isDraining = drainLeftMs <= drainMs;
      // Nothing was claimed meanwhile.
      if (drainLeftMs <= 0) for (const run of slots.held()) lasting.add(run);
      const isFree = slots.expected().length === 0 && slots.held().every((run) => lasting.has(run));
      if (isFree && (isTheirTurn || isDraining)) return { kind: "suspect" };
      if (isDraining) return { kind: "nothing", ms: Math.max(shortestPauseMs, drainLeftMs) };
      return { kind: "ordinary", isUrgent: isFree && !isRefused };
    },
    seen(kind, runs, areWaiting) {
      const [first] = runs;
      if (!areWaiting) waitingSince = null;
      else if (kind === "suspect") waitAnew(first !== undefined ? 1.5 : 12);
      else if (waitingSince === null) waitAnew(1.5);
      isTheirTurn = kind === "ordinary" && first === undefined;
      if (kind === "suspect" || !areWaiting) isRefused = areWaiting && first === undefined;
      if (kind === "suspect" && first !== undefined)
        tried = { runId: first.runId, until: clock.now() + aloneFor(first.suspicion) };
    },
    freed(runId) {
      if (runId !== tried?.runId) return false;
      tried = null;
      return true;
    },
  };
}
