import { jittered } from "../core/back-off.ts";
import type { Clock } from "../core/clock.ts";
import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { createLoop, type LoopSeams } from "../core/loop.ts";
import type { Hint } from "../store/hint.ts";
import type { Store } from "../store/store.ts";
import { createAbortListeners } from "./abort-listeners.ts";

/** Waits for something to happen to runs, for everybody in this process together. */
export interface Watch<Subject, News> {
  /**
   * Resolves when there is news. Waits as long as that takes, through outages too.
   * @throws {PawlError} `CLOSED` when the watch is closed first; the signal's reason when it aborts; what a look answers, or
   * the store, but for `STORE_UNAVAILABLE`
   */
  wait(subject: Subject, signal?: AbortSignal): Promise<News>;
  /** Gives news to those who wait for it now, without a look. Null: nobody does. */
  waitingFor(subject: Subject): ((news: News) => void) | null;
  close(): Promise<void>;
}

export interface WatchSeams extends LoopSeams {
  readonly store: Store;
  readonly clock: Clock;
}

export interface WatchTerms<Subject, News> {
  /** What it does, for the log. */
  readonly name: string;
  /** What is awaited, for whoever awaits it when the watch is closed. */
  readonly awaited: string;
  /** The same for subjects that one look serves. */
  keyOf(subject: Subject): string;
  runOf(subject: Subject): RunId;
  /** Whether somebody in this process will most likely tell of it soon: the first look can wait. Default: nobody will. */
  isUnderWay?(subject: Subject): boolean;
  /** Hints about a run after which a look at its subjects is worth while. */
  readonly hears: readonly Hint["kind"][];
  /** News by key, or the error that there will never be any; no entry: none yet. */
  look(subjects: readonly Subject[]): Promise<ReadonlyMap<string, News | PawlError>>;
}

interface Waiter<News> {
  settle(news: News): void;
  fail(error: unknown): void;
}

interface Awaited<Subject, News> {
  readonly subject: Subject;
  readonly waiters: Set<Waiter<News>>;
}

const mostPerLook = 1_000;
/** Under load, looks gather what comes in for so long; the first one after a pause is not delayed. */
const shortestPauseMs = 5;
/** So long a first look waits for somebody who will tell. */
const longestTrustMs = 250;
/** How long an end that was announced may take to be answered. */
const shortestTrustMs = 20;
const firstPollMs = 1_000;
const longestPollMs = 5_000;

/** A hint makes it fast, one slow poll for all waiters makes it sure. With nobody waiting it does nothing. */
export function createWatch<Subject, News>(
  seams: WatchSeams,
  terms: WatchTerms<Subject, News>,
): Watch<Subject, News> {
  const { store, clock, random } = seams;
  const waiting = new Map<string, Awaited<Subject, News>>();
  const keysOfRun = new Map<RunId, Set<string>>();
  const aborts = createAbortListeners();
  /** Keys to look at without waiting for the poll. */
  const toLook = new Set<string>();
  /** Keys that somebody will most likely tell of until then, oldest first: looked at then, unless they have been told of. */
  const trusted = new Map<string, number>();
  /** The same for those whose end in this process has been announced, and is about to be answered. */
  const announced = new Map<string, number>();
  let pollMs = firstPollMs;
  let pollAt = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;
  /** Subjects to a call. An answer can be too large to come in time: after a failure it is asked for in smaller parts. */
  let lookSize = mostPerLook;
  let isClosed = false;
  let unsubscribe = (): void => {};

  const restMs = (): number => {
    if (waiting.size === 0) return Number.POSITIVE_INFINITY;
    const [trustedUntil = Number.POSITIVE_INFINITY] = trusted.values();
    const [announcedUntil = Number.POSITIVE_INFINITY] = announced.values();
    const lookAt = toLook.size > 0 ? lookedAt + shortestPauseMs : Math.min(trustedUntil, announcedUntil);
    return Math.min(pollAt, lookAt) - clock.now();
  };

  const loop = createLoop(terms.name, seams, async () => {
    if (restMs() > 0) return restMs();
    lookedAt = clock.now();
    const isPoll = lookedAt >= pollAt;
    endTrust();
    const keys = isPoll ? [...waiting.keys()].filter((key) => !trusted.has(key)) : [...toLook];
    // Before the look: a hint that comes while it is under way asks for another one.
    toLook.clear();
    try {
      for (let at = 0; at < keys.length;) {
        const part = keys.slice(at, at + lookSize);
        at += part.length;
        await look(part);
        lookSize = Math.min(mostPerLook, lookSize * 2);
      }
    } catch (error) {
      lookSize = Math.ceil(lookSize / 4);
      for (const key of keys) toLook.add(key);
      throw error;
    }
    if (isPoll) {
      pollAt = clock.now() + jittered(pollMs, random);
      pollMs = Math.min(longestPollMs, pollMs * 1.5);
    }
    return restMs();
  });

  const endTrust = (): void => {
    for (const keys of [trusted, announced]) {
      for (const [key, until] of keys) {
        if (until > lookedAt) break;
        keys.delete(key);
        toLook.add(key);
      }
    }
  };

  const look = async (keys: readonly string[]): Promise<void> => {
    // Whoever comes while it is under way gets the next one: the answer may be of a life before the run was redriven.
    const asking = keys.flatMap((key) => {
      const awaited = waiting.get(key);
      return awaited === undefined ? [] : [{ key, subject: awaited.subject, waiters: [...awaited.waiters] }];
    });
    if (asking.length === 0) return;
    const subjects = asking.map(({ subject }) => subject);
    const found = await terms.look(subjects).catch((error: unknown) => {
      if (PawlError.is(error, "STORE_UNAVAILABLE")) throw error;
      // Asking again would bring the same answer.
      for (const { waiters } of asking) for (const waiter of waiters) waiter.fail(error);
      return null;
    });
    if (found === null) return;
    for (const { key, waiters } of asking) {
      const news = found.get(key);
      if (news === undefined) continue;
      for (const waiter of waiters) {
        if (news instanceof PawlError) waiter.fail(news);
        else waiter.settle(news);
      }
    }
  };

  const lookOrTrust = (key: string, trust: Map<string, number>, ms: number): void => {
    const awaited = waiting.get(key);
    if (awaited === undefined || terms.isUnderWay?.(awaited.subject) !== true) toLook.add(key);
    else if (!trust.has(key)) trust.set(key, clock.now() + ms);
  };

  const hear = (hint: Hint): void => {
    if (hint.kind === "reconnected") pollAt = 0;
    else if (hint.kind === "ready" || !terms.hears.includes(hint.kind)) return;
    else {
      const keys = keysOfRun.get(hint.runId);
      if (keys === undefined) return;
      // Those who waited before the end was sent are told when it is answered, and the notification may come first.
      for (const key of keys) lookOrTrust(key, announced, shortestTrustMs);
    }
    loop.poke();
  };

  const add = (subject: Subject, waiter: Waiter<News>): void => {
    if (waiting.size === 0) {
      unsubscribe = store.subscribe(hear);
      pollAt = Number.POSITIVE_INFINITY;
    }
    const key = terms.keyOf(subject);
    const others = waiting.get(key);
    if (others === undefined) {
      waiting.set(key, { subject, waiters: new Set([waiter]) });
      const runId = terms.runOf(subject);
      keysOfRun.set(runId, (keysOfRun.get(runId) ?? new Set()).add(key));
    } else others.waiters.add(waiter);
    pollMs = firstPollMs;
    pollAt = Math.min(pollAt, clock.now() + jittered(pollMs, random));
    lookOrTrust(key, trusted, longestTrustMs);
    loop.start();
    loop.poke();
  };

  const remove = (subject: Subject, waiter: Waiter<News>): void => {
    const key = terms.keyOf(subject);
    const others = waiting.get(key)?.waiters;
    others?.delete(waiter);
    if (others?.size === 0) forget(key, terms.runOf(subject));
    if (waiting.size > 0) return;
    unsubscribe();
    // Ends the rest, and with it the timer that keeps the process alive.
    loop.poke();
  };

  const forget = (key: string, runId: RunId): void => {
    waiting.delete(key);
    trusted.delete(key);
    announced.delete(key);
    const keys = keysOfRun.get(runId);
    keys?.delete(key);
    if (keys?.size === 0) keysOfRun.delete(runId);
  };

  const closed = (): PawlError =>
    new PawlError("CLOSED", `Pawl was closed while ${terms.awaited} was awaited; the run goes on.`);

  return {
    wait(subject, signal) {
      return new Promise((resolve, reject) => {
        if (isClosed) return reject(closed());
        if (signal?.aborted) return reject(signal.reason as Error);
        const leave = (): void => {
          stopListening();
          remove(subject, waiter);
        };
        const waiter: Waiter<News> = {
          settle(news) {
            leave();
            resolve(news);
          },
          fail(error) {
            leave();
            reject(error);
          },
        };
        const stopListening =
          signal === undefined ? () => {} : aborts.add(signal, () => waiter.fail(signal.reason));
        add(subject, waiter);
      });
    },
    waitingFor(subject) {
      const waiters = waiting.get(terms.keyOf(subject))?.waiters;
      if (waiters === undefined) return null;
      const present = [...waiters];
      return (news) => {
        for (const waiter of present) if (waiters.has(waiter)) waiter.settle(news);
      };
    },
    async close() {
      isClosed = true;
      for (const { waiters } of waiting.values()) for (const waiter of waiters) waiter.fail(closed());
      await loop.stop();
    },
  };
}
