import { jittered } from "../core/back-off.ts";
import type { Clock } from "../core/clock.ts";
import { createLoop, type Loop, type LoopSeams } from "../core/loop.ts";
import type { DueAnswer } from "../store/lease.ts";

export interface DueTimerParts extends LoopSeams {
  /** Wakes what is due, so many at most. */
  readonly wakeDue: (most: number) => Promise<DueAnswer>;
  readonly clock: Clock;
  readonly pollMs: number;
  /** Runs were made claimable. */
  readonly woken: () => void;
  /** This worker has lately claimed something: what is due may be its own. */
  readonly isFed: () => boolean;
}

export interface DueTimer extends Loop {
  /** A run parked until this long from now. */
  parked(dueInMs: number): void;
  /** This worker has claimed all that was made claimable, or has got done most of what it took, and could take more. */
  hungry(): void;
  /** In how many ms the next run that it knows of is due. */
  dueInMs(): number;
}

const mostPerTurn = 500;
/** Where many are due at once, it rests for so many times as long as it has worked: others want the database, too. */
const restTimes = 3;
/** What is due is for others, it seems, who wake it as they can take it. */
const restTimesUnfed = 20;
/** What it has taken itself it gets done, and then rests for this part of the time that took. */
const restPart = 0.15;
/** However slow the database is, or this process. */
const longestRestMs = 250;

/** Wakes parked runs when their time has come: on time those it knows of, and at the next poll all others. */
export function createDueTimer(parts: DueTimerParts): DueTimer {
  const { clock, random } = parts;
  /** The earliest due time known, by this process's clock. */
  let nextAt = Number.POSITIVE_INFINITY;
  let pollAt = 0;
  /** The same, as it was known before the look that is under way. */
  let knownAt = Number.POSITIVE_INFINITY;

  /** Somebody waits until nothing is due. */
  let isHurried = false;
  /** More is due than was woken: when that was asked for. */
  let restsSince: number | null = null;

  const restMs = (): number => Math.min(nextAt, pollAt) - clock.now();

  const wakeDue = async (): Promise<void> => {
    knownAt = nextAt;
    nextAt = Number.POSITIVE_INFINITY;
    pollAt = 0;
    const sentAt = clock.now();
    const { woken, held, hasMore, nextDueAt, now } = await parts.wakeDue(mostPerTurn);
    knownAt = Number.POSITIVE_INFINITY;
    const rest = parts.isFed() ? restTimes : restTimesUnfed;
    restsSince = hasMore ? sentAt : null;
    if (!hasMore || woken === 0) isHurried = false;
    // It asks for more when it has got done what it took, and need not hurry where all was for others.
    const isPatient = held.length > 0 || woken === 0;
    const wantedMs = isPatient ? longestRestMs : rest * (clock.now() - sentAt);
    const leastMs = !hasMore || isHurried ? 1 : Math.min(longestRestMs, wantedMs);
    if (nextDueAt !== null) nextAt = Math.min(nextAt, clock.now() + Math.max(leastMs, nextDueAt - now));
    if (!isHurried) pollAt = clock.now() + (hasMore ? leastMs : jittered(parts.pollMs, random));
    if (woken > held.length) parts.woken();
  };

  const loop = createLoop("due timer", parts, async () => {
    if (restMs() <= 0) await wakeDue();
    return restMs();
  });

  return {
    ...loop,
    poke() {
      pollAt = 0;
      loop.poke();
    },
    turned() {
      pollAt = 0;
      isHurried = true;
      return loop.turned();
    },
    hungry() {
      if (restsSince === null) return;
      const tookMs = clock.now() - restsSince;
      restsSince = null;
      nextAt = Math.min(nextAt, clock.now() + restPart * tookMs);
      loop.poke();
    },
    dueInMs: () => Math.min(nextAt, knownAt) - clock.now(),
    parked(dueInMs) {
      const at = clock.now() + dueInMs;
      if (at >= nextAt) return;
      nextAt = at;
      if (at < pollAt) loop.poke();
    },
  };
}
