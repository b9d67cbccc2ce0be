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
 * the end. Each time, ordinary work goes on in between.
 */
export interface Suspects {
  next(slots: Pick<Slots, "isEmpty" | "held" | "expected">): NextClaim;
  /** What a claim answered: which runs, and whether suspects are left. */
  seen(kind: "ordinary" | "suspect", runs: readonly Seen[], areWaiting: boolean): void;
  /** The worker no longer holds this run. Answers whether it was the one being tried. */
  freed(runId: RunId): boolean;
}

type Seen = Pick<ClaimedRun, "runId" | "suspicion">;

/** An hour, with the default lease: for so long all other work may stand still where one worker is all there is. */
const mostDoublings = 6;
/** Seventeen hours: for so long no other suspect is tried beside one, whose neighbour may be what kills it again and again. */
const mostDoublingsApart = 10;

export function createSuspects(clock: Clock, random: Random, leaseMs: number): Suspects {
  let waitingSince: number | null = null;
  /** How long to leave them to idle peers; jittered, so that the fleet does not empty itself all at once. */
  let patienceMs = 0;
  /** The worker claims nothing since then, so that these may end. */
  let drain: { readonly since: number; readonly held: ReadonlySet<HeldRun> } | null = null;
  /** It has waited for them in vain. */
  const lasting = new WeakSet<HeldRun>();
  let tried: { readonly runId: RunId; readonly until: number } | null = null;
  /** Until when the suspects that it holds keep others from being tried. */
  const apartUntil = new Map<RunId, number>();
  /** Nothing ordinary was found, so suspects have the next turn. They never have two in a row. */
  let isTheirTurn = false;
  /** The last try for one brought none: somebody else has them, or they cannot be claimed now. */
  let isRefused = false;

  const drainMs = 4 * leaseMs;
  const doubled = (suspicion: number, most: number): number =>
    4 * leaseMs * 2 ** Math.min(most, Math.max(0, suspicion - 2));
  const waitAnew = (leases: number): void => {
    waitingSince = clock.now();
    patienceMs = jittered(leases * leaseMs, random, 0.33);
    drain = null;
  };
  const endTrial = (leases: number): void => {
    tried = null;
    if (waitingSince !== null) waitAnew(leases);
  };

  /** Whether the worker holds nothing but what it has waited for in vain, by now. */
  const isFreeAfter = (drained: ReadonlySet<HeldRun>, leftMs: number, held: readonly HeldRun[]): boolean => {
    const now = clock.now();
    for (const run of leftMs <= 0 ? held : [])
      if (drained.has(run) && (apartUntil.get(run.runId) ?? now) <= now) lasting.add(run);
    return held.every((run) => lasting.has(run));
  };

  return {
    next(slots) {
      const now = clock.now();
      if (tried !== null && tried.until > now) return { kind: "nothing", ms: tried.until - now };
      if (tried !== null) endTrial(6);
      if (waitingSince === null) return { kind: "ordinary", isUrgent: false };
      if (now < waitingSince + patienceMs) {
        if (slots.isEmpty() && isTheirTurn) return { kind: "suspect" };
        return { kind: "ordinary", isUrgent: slots.isEmpty() && !isRefused };
      }
      const held = slots.held();
      drain ??= { since: now, held: new Set(held) };
      const leftMs = drain.since + drainMs - now;
      const isSettled = slots.expected().length === 0;
      if (isSettled && isFreeAfter(drain.held, leftMs, held)) return { kind: "suspect" };
      if (leftMs > 0) return { kind: "nothing", ms: leftMs };
      waitAnew(12);
      return { kind: "ordinary", isUrgent: false };
    },
    seen(kind, runs, areWaiting) {
      const [first] = runs;
      if (!areWaiting) waitingSince = drain = null;
      else if (kind === "suspect") waitAnew(first !== undefined ? 1.5 : 12);
      else if (waitingSince === null) waitAnew(1.5);
      isTheirTurn = kind === "ordinary" && first === undefined;
      if (kind === "suspect" || !areWaiting) isRefused = areWaiting && first === undefined;
      if (kind !== "suspect" || first === undefined) return;
      tried = { runId: first.runId, until: clock.now() + doubled(first.suspicion, mostDoublings) };
      apartUntil.set(first.runId, clock.now() + doubled(first.suspicion, mostDoublingsApart));
    },
    freed(runId) {
      apartUntil.delete(runId);
      if (runId !== tried?.runId) return false;
      endTrial(1.5);
      return true;
    },
  };
}
