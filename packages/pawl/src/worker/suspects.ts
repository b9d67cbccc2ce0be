import { jittered } from "../core/back-off.ts";
import type { Clock } from "../core/clock.ts";
import type { RunId } from "../core/ids.ts";
import type { Random } from "../core/random.ts";

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
 * then empties itself, for a while: long steps may keep it from ever being empty, and ordinary work must go on.
 */
export interface Suspects {
  next(isEmpty: boolean): NextClaim;
  /** What a claim answered: how many runs, and whether suspects are left. */
  seen(kind: "ordinary" | "suspect", runIds: readonly RunId[], areWaiting: boolean): void;
  /** The worker no longer holds this run. Answers whether it was the one being tried. */
  freed(runId: RunId): boolean;
}

export function createSuspects(clock: Clock, random: Random, leaseMs: number): Suspects {
  let waitingSince: number | null = null;
  /** How long to leave them to idle peers; jittered, so that the fleet does not empty itself all at once. */
  let patienceMs = 0;
  let tried: RunId | null = null;
  /** Nothing ordinary was found, so suspects have the next turn. They never have two in a row. */
  let isTheirTurn = false;
  /** The last try for one brought none: somebody else has them, or they cannot be claimed now. */
  let isRefused = false;

  const drainMs = 4 * leaseMs;
  const waitAnew = (leases: number): void => {
    waitingSince = clock.now();
    patienceMs = jittered(leases * leaseMs, random, 0.33);
  };

  return {
    next(isEmpty) {
      if (tried !== null) return { kind: "nothing", ms: Number.POSITIVE_INFINITY };
      if (waitingSince === null) return { kind: "ordinary", isUrgent: false };
      const drainLeftMs = waitingSince + patienceMs + drainMs - clock.now();
      const isDraining = drainLeftMs <= drainMs && drainLeftMs > 0;
      if (isEmpty && (isTheirTurn || isDraining)) return { kind: "suspect" };
      if (isDraining) return { kind: "nothing", ms: drainLeftMs };
      if (drainLeftMs <= 0) waitAnew(12);
      return { kind: "ordinary", isUrgent: isEmpty && !isRefused };
    },
    seen(kind, runIds, areWaiting) {
      if (!areWaiting) waitingSince = null;
      else if (kind === "suspect") waitAnew(runIds.length > 0 ? 1.5 : 12);
      else if (waitingSince === null) waitAnew(1.5);
      isTheirTurn = kind === "ordinary" && runIds.length === 0;
      if (kind === "suspect" || !areWaiting) isRefused = areWaiting && runIds.length === 0;
      if (kind === "suspect") tried = runIds[0] ?? null;
    },
    freed(runId) {
      if (runId !== tried) return false;
      tried = null;
      return true;
    },
  };
}
