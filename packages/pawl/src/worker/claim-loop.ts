import { jittered } from "../core/back-off.ts";
import type { Clock } from "../core/clock.ts";
import type { Probe } from "../core/crash-point.ts";
import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { createLoop, type Loop, type LoopSeams } from "../core/loop.ts";
import type { Claim, ClaimedRun, ClaimRequest, DueAnswer, Lane } from "../store/lease.ts";
import type { Store } from "../store/store.ts";
import { createAhead } from "./ahead.ts";
import { createClaimMarks, type Look } from "./claim-marks.ts";
import type { Registration } from "./registration.ts";
import { fewSlots, type Slots } from "./slots.ts";
import { createSuspects } from "./suspects.ts";

export interface ClaimLoopParts extends LoopSeams {
  readonly store: Store;
  readonly clock: Clock;
  readonly probe: Probe;
  readonly registration: Registration;
  readonly slots: Slots;
  readonly lanes: readonly Lane[];
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  /** Takes a run into a slot and executes it. */
  readonly execute: (run: ClaimedRun, workerId: string) => void;
  /** The store says that this id has expired. */
  readonly expired: (workerId: string) => void;
  /** The worker may hold something now. */
  readonly awake: () => void;
  /** It has taken all that was claimable, or has got done most of what was due, and could take more. */
  readonly hungry: () => void;
  /** Whether the code of this run waits in memory, and need not be given its history. */
  readonly remembers: (runId: RunId) => boolean;
}

export interface ClaimLoop extends Pick<Loop, "start" | "stop" | "turned"> {
  /** Wakes what is due, of as many as `most` that are looked at; where it has room it takes at once what it can of its own, and no more of it. */
  wakeDue(most: number): Promise<DueAnswer>;
  /** A notification says that work may be there. */
  hint(): void;
  /** This worker has reason to believe that work is there. */
  look(): void;
  /** Notifications may have been lost: look from the beginning. */
  lookAtAll(): void;
  /** A slot is free again. `slotMs`: how long this run had it; null: it had none. */
  freed(runId: RunId, slotMs: number | null): void;
  /** One will be: the code of its run has come to its end. */
  ending(): void;
  /** A claim has found something within the last second. */
  isFed(): boolean;
  /** Whether a run may be taken that nobody has queued: nothing is known to wait there, or to have been put there, and no suspect is tried alone. */
  mayTake(): boolean;
}

/** One claim takes no more than this, however many slots are free: its answer carries the runs' inputs. */
const mostPerClaim = 350;
/** Of what is due it takes less at a time: where many are due at once, others want the database, too. */
const mostDuePerClaim = 150;
/** With work waiting, a claim waits until a quarter of the slots is free, but never longer than this. */
const longestBatchingMs = 5;
/** Others take for so long what a claim of theirs has locked, until their commit: soon, or as long as it waits for a standby. */
const shortestTakingMs = 5;
const longestTakingMs = 50;
const fedForMs = 1_000;
/** What is due and of none of its lanes it leaves for so long to those who can hold it. */
const sparesMs = 1_000;
/** Polls grow this much rarer while notifications announce all there is to find. */
const rarestPoll = 5;

/** Fills free slots. At most one claim is in flight, of what is due or otherwise, and what comes in meanwhile leads to one more. */
export function createClaimLoop(parts: ClaimLoopParts): ClaimLoop {
  const { store, clock, random, registration, slots, concurrency, leaseMs } = parts;
  const marks = createClaimMarks(clock, concurrency <= fewSlots);
  const suspects = createSuspects(clock, random, leaseMs);
  const ahead = createAhead(clock, concurrency);

  /** Something may be claimable that no claim has looked for. */
  let isHinted = true;
  /** The last claim was full, or cut short: more is waiting. */
  let isMoreWaiting = false;
  /** How long to wait before that is asked for which others were taking, and until when. */
  let cutShortMs: number | null = null;
  let takenAt = 0;
  /** Notifications have come, and no poll has found since what none of them announced. */
  let isNotified = false;
  let roomSince = 0;
  let pollAt = 0;
  let pollTimes = 1;
  let foundAt = Number.NEGATIVE_INFINITY;
  /** The last look was not a full one, and came back short. */
  let fullLookAt = Number.POSITIVE_INFINITY;
  /** The last claim of what is due has failed. */
  let hasFailedDue = false;
  /** Of what was due last, something was not in memory. */
  let wantsHistories = true;
  /** More is due than it has taken: how many slots were free then. */
  let freeForMore: number | null = null;
  let hasStopped = false;
  /** Settles when the claim in flight is over; null: none is. */
  let inFlight: Promise<unknown> | null = null;

  /** The time of each claim's answer tells which leases this worker knows of: they come one at a time. */
  const inTurn = async <Answer>(claim: () => Promise<Answer>): Promise<Answer> => {
    while (inFlight !== null) await inFlight.catch(() => {});
    const claimed = claim();
    inFlight = claimed;
    try {
      return await claimed;
    } finally {
      inFlight = null;
    }
  };

  /** With so few slots it takes nothing for which it has none. */
  const aheadLimit = (): number => (concurrency > fewSlots ? ahead.limit() : 0);
  /** How many runs it could take. */
  const room = (limit: number): number => Math.max(0, slots.free()) + Math.max(0, limit - slots.waiting());

  const restMs = (): number => {
    const most = aheadLimit();
    const free = room(most);
    if (free === 0) return Number.POSITIVE_INFINITY;
    const next = suspects.next(slots);
    if (next.kind === "nothing") return next.ms;
    if (next.kind === "suspect") return slots.free() > 0 ? 0 : Number.POSITIVE_INFINITY;
    if (next.isUrgent) return 0;
    const now = clock.now();
    if (cutShortMs !== null && !isHinted) return takenAt - now;
    if (isMoreWaiting)
      return 4 * free >= concurrency + most || slots.isEmpty() ? 0 : roomSince + longestBatchingMs - now;
    return isHinted ? 0 : Math.min(pollAt, fullLookAt) - now;
  };

  const claim = async (): Promise<void> => {
    await registration.ensure();
    const isSuspect = suspects.next(slots).kind === "suspect";
    const look = isSuspect ? { lanes: parts.lanes, isFull: true } : marks.look(parts.lanes);
    const limit = isSuspect ? 1 : Math.min(room(aheadLimit()), mostPerClaim);
    if (limit === 0) return;
    const sentAt = clock.now();
    const isPoll = !isHinted && !isMoreWaiting && sentAt >= pollAt;
    if (!isSuspect) isHinted = false;
    // What is started meanwhile in this process need not wait for the answer.
    if (isPoll) pollAt = sentAt + parts.pollMs;

    const { workerId } = registration;
    const answer = await ask({
      workerId,
      leaseMs,
      lanes: look.lanes,
      limit,
      suspects: isSuspect,
      begin: true,
    });
    if (answer.runs.length > 0) {
      foundAt = clock.now();
      parts.awake();
      registration.claimed(workerId, sentAt);
    }
    const tookMs = clock.now() - sentAt;
    suspects.seen(isSuspect ? "suspect" : "ordinary", answer.runs, answer.suspectsWaiting);
    if (!isSuspect) learn(look, answer, limit, tookMs, isPoll);
    for (const run of answer.runs) parts.execute(run, workerId);
    const isFed = !isSuspect && answer.runs.length > 0;
    if (isFed && !isMoreWaiting && 4 * slots.free() >= concurrency) parts.hungry();
    // Claims come one at a time: a lease from before this one that is in no slot had its answer lost.
    registration.claimsKnownTo = answer.now;
  };

  const ask = async (request: ClaimRequest): Promise<Claim> => {
    const sentAt = clock.now();
    try {
      const answer = await store.claimRuns(request);
      parts.probe("claim.answered");
      assertStill(request.workerId);
      return answer;
    } catch (error) {
      marks.forget();
      unanswered(request.workerId, sentAt);
      if (PawlError.is(error, "WORKER_EXPIRED")) parts.expired(request.workerId);
      throw error;
    }
  };

  const assertStill = (workerId: string): void => {
    if (workerId === registration.workerId) return;
    throw new PawlError("WORKER_EXPIRED", "The worker expired before its claim was answered.");
  };

  /** It may hold something that it does not know of, under the lease that began with this claim. */
  const unanswered = (workerId: string, sentAt: number): void => {
    isHinted = true;
    parts.awake();
    registration.claimed(workerId, sentAt);
  };

  const wakeDue = async (most: number): Promise<DueAnswer> => {
    if (!mayTakeDue()) return wakeForAll(most);
    const freeThen = slots.free();
    const { workerId } = registration;
    const sentAt = clock.now();
    const answer = await takeDue(most, Math.min(room(aheadLimit()), mostDuePerClaim), workerId, sentAt);
    if (answer.isRenewed) {
      parts.awake();
      registration.claimed(workerId, sentAt);
    }
    if (answer.held.length > 0) {
      foundAt = clock.now();
      wantsHistories = answer.held.some(({ runId }) => !parts.remembers(runId));
    }
    for (const run of answer.held) parts.execute(run, workerId);
    registration.claimsKnownTo = answer.now;
    freeForMore = answer.hasMore && answer.held.length > 0 ? freeThen : null;
    return answer;
  };

  /** Where it has little room, others are to take what is due. */
  const mayTakeDue = (): boolean =>
    !hasStopped &&
    !hasFailedDue &&
    4 * slots.free() >= concurrency &&
    mayTake() &&
    clock.now() < (registration.aliveUntil ?? 0) &&
    registration.isAlive(registration.workerId);

  const wakeForAll = async (most: number): Promise<DueAnswer> => {
    const answer = await store.wakeDue(most, { workerId: null, leaseMs, lanes: parts.lanes, sparesMs });
    hasFailedDue = false;
    return answer;
  };

  const takeDue = async (
    limit: number,
    most: number,
    workerId: string,
    sentAt: number,
  ): Promise<DueAnswer> => {
    try {
      const waker = { workerId, leaseMs, lanes: parts.lanes, most, sparesMs, histories: wantsHistories };
      const answer = await store.wakeDue(limit, waker);
      parts.probe("claim.answered");
      assertStill(workerId);
      return answer;
    } catch (error) {
      hasFailedDue = true;
      unanswered(workerId, sentAt);
      throw error;
    }
  };

  const mayTake = (): boolean =>
    concurrency > fewSlots &&
    !isMoreWaiting &&
    !isHinted &&
    clock.now() < pollAt &&
    suspects.next(slots).kind === "ordinary";

  /** Where more is due, it is asked for once most of what was taken is done. */
  const noticeRoom = (): void => {
    if (freeForMore === null || slots.waiting() > 0 || 4 * slots.free() < 3 * freeForMore) return;
    freeForMore = null;
    parts.hungry();
  };

  const learn = (look: Look, answer: Claim, limit: number, tookMs: number, isPoll: boolean): void => {
    const found = answer.runs.length;
    marks.found(look, answer.runs, tookMs);
    roomSince = clock.now();
    const doubledMs = found > 0 || cutShortMs === null ? shortestTakingMs : 2 * cutShortMs;
    cutShortMs = answer.isCutShort === true ? Math.min(doubledMs, longestTakingMs) : null;
    if (cutShortMs !== null) takenAt = roomSince + jittered(cutShortMs, random);
    isMoreWaiting = found === limit || answer.hasLeft === true || cutShortMs !== null;
    fullLookAt = look.isFull || isMoreWaiting ? Number.POSITIVE_INFINITY : marks.fullLookDueAt();
    if (isPoll && found > 0) isNotified = false;
    pollTimes = isNotified ? Math.min(rarestPoll, pollTimes * 1.5) : 1;
    pollAt = roomSince + jittered(parts.pollMs * pollTimes, random);
  };

  const loop = createLoop("claim", parts, async () => {
    if (restMs() <= 0) await inTurn(claim);
    return restMs();
  });

  const look = (): void => {
    isHinted = true;
    loop.poke();
  };

  return {
    start: () => loop.start(),
    stop() {
      hasStopped = true;
      return loop.stop();
    },
    turned() {
      marks.forget();
      isHinted = true;
      return loop.turned();
    },
    look,
    hint() {
      isNotified = true;
      look();
    },
    lookAtAll() {
      marks.forget();
      look();
    },
    freed(runId, slotMs) {
      if (slotMs !== null) ahead.ended(slotMs);
      if (slots.free() === 1) roomSince = clock.now();
      if (suspects.freed(runId)) isHinted = true;
      noticeRoom();
      loop.poke();
    },
    ending() {
      if (slots.free() === 1) roomSince = clock.now();
      noticeRoom();
      if (isMoreWaiting) loop.poke();
    },
    isFed: () => clock.now() - foundAt < fedForMs,
    mayTake,
    wakeDue: (most) => (mayTakeDue() ? inTurn(() => wakeDue(most)) : wakeForAll(most)),
  };
}
