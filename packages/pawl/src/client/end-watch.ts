import { jittered } from "../core/back-off.ts";
import type { Clock } from "../core/clock.ts";
import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { createLoop, type LoopSeams } from "../core/loop.ts";
import type { Hint } from "../store/hint.ts";
import type { FoundEnd } from "../store/run-record.ts";
import type { Store } from "../store/store.ts";
import { createAbortListeners } from "./abort-listeners.ts";

/** Waits for runs to end, for everybody in this process together. */
export interface EndWatch {
  /**
   * Resolves when the run has ended. Waits as long as that takes, through outages too.
   * @throws {PawlError} `RUN_NOT_FOUND`; `CLOSED` when the watch is closed first; the signal's reason when it aborts;
   * what the store answers, but for `STORE_UNAVAILABLE`
   */
  wait(runId: RunId, signal?: AbortSignal): Promise<FoundEnd>;
  close(): Promise<void>;
}

interface Waiter {
  settle(end: FoundEnd): void;
  fail(error: unknown): void;
}

const mostPerLook = 1_000;
/** Under load, looks gather what comes in for so long; the first one after a pause is not delayed. */
const shortestPauseMs = 5;
const firstPollMs = 1_000;
const longestPollMs = 5_000;

/** A hint makes it fast, one slow poll for all waiters makes it sure. With nobody waiting it does nothing. */
export function createEndWatch(
  seams: LoopSeams & { readonly store: Store; readonly clock: Clock },
): EndWatch {
  const { store, clock, random } = seams;
  const waiting = new Map<RunId, Set<Waiter>>();
  const aborts = createAbortListeners();
  /** Runs to look at without waiting for the poll. */
  const toLook = new Set<RunId>();
  let pollMs = firstPollMs;
  let pollAt = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;
  /** Runs to a call. An answer can be too large to come in time: after a failure it is asked for in smaller parts. */
  let lookSize = mostPerLook;
  let isClosed = false;
  let unsubscribe = (): void => {};

  const restMs = (): number => {
    if (waiting.size === 0) return Number.POSITIVE_INFINITY;
    return (toLook.size > 0 ? Math.min(pollAt, lookedAt + shortestPauseMs) : pollAt) - clock.now();
  };

  const loop = createLoop("look for ended runs", seams, async () => {
    if (restMs() > 0) return restMs();
    lookedAt = clock.now();
    const isPoll = lookedAt >= pollAt;
    const runIds = [...(isPoll ? waiting.keys() : toLook)];
    // Before the look: a hint that comes while it is under way asks for another one.
    toLook.clear();
    try {
      for (let at = 0; at < runIds.length;) {
        const part = runIds.slice(at, at + lookSize);
        at += part.length;
        await look(part);
        lookSize = Math.min(mostPerLook, lookSize * 2);
      }
    } catch (error) {
      lookSize = Math.ceil(lookSize / 4);
      for (const runId of runIds) toLook.add(runId);
      throw error;
    }
    if (isPoll) {
      pollAt = clock.now() + jittered(pollMs, random);
      pollMs = Math.min(longestPollMs, pollMs * 1.5);
    }
    return restMs();
  });

  const look = async (runIds: readonly RunId[]): Promise<void> => {
    // Whoever comes while it is under way gets the next one: the answer may be of a life before the run was redriven.
    const asking = new Map(runIds.map((runId) => [runId, [...(waiting.get(runId) ?? [])]]));
    const ends = await store.getEnds(runIds).catch((error: unknown) => {
      if (PawlError.is(error, "STORE_UNAVAILABLE")) throw error;
      // Asking again would bring the same answer.
      for (const waiters of asking.values()) for (const waiter of waiters) waiter.fail(error);
      return null;
    });
    if (ends === null) return;
    for (const [runId, waiters] of asking) {
      const end = ends.get(runId);
      if (end === null) continue;
      for (const waiter of waiters) {
        if (end !== undefined) waiter.settle(end);
        else waiter.fail(new PawlError("RUN_NOT_FOUND", `There is no run ${runId}.`, { runId }));
      }
    }
  };

  const hear = (hint: Hint): void => {
    if (hint.kind === "ended" && waiting.has(hint.runId)) toLook.add(hint.runId);
    else if (hint.kind === "reconnected") pollAt = 0;
    else return;
    loop.poke();
  };

  const add = (runId: RunId, waiter: Waiter): void => {
    if (waiting.size === 0) {
      unsubscribe = store.subscribe(hear);
      pollAt = Number.POSITIVE_INFINITY;
    }
    const others = waiting.get(runId);
    if (others === undefined) waiting.set(runId, new Set([waiter]));
    else others.add(waiter);
    pollMs = firstPollMs;
    pollAt = Math.min(pollAt, clock.now() + jittered(pollMs, random));
    toLook.add(runId);
    loop.start();
    loop.poke();
  };

  const remove = (runId: RunId, waiter: Waiter): void => {
    const others = waiting.get(runId);
    others?.delete(waiter);
    if (others?.size === 0) waiting.delete(runId);
    if (waiting.size > 0) return;
    unsubscribe();
    // Ends the rest, and with it the timer that keeps the process alive.
    loop.poke();
  };

  return {
    wait(runId, signal) {
      return new Promise((resolve, reject) => {
        if (isClosed) return reject(closed());
        if (signal?.aborted) return reject(signal.reason as Error);
        const leave = (): void => {
          stopListening();
          remove(runId, waiter);
        };
        const waiter: Waiter = {
          settle(end) {
            leave();
            resolve(end);
          },
          fail(error) {
            leave();
            reject(error);
          },
        };
        const stopListening =
          signal === undefined ? () => {} : aborts.add(signal, () => waiter.fail(signal.reason));
        add(runId, waiter);
      });
    },
    async close() {
      isClosed = true;
      for (const waiters of waiting.values()) for (const waiter of waiters) waiter.fail(closed());
      await loop.stop();
    },
  };
}

function closed(): PawlError {
  return new PawlError("CLOSED", "Pawl was closed while a run's result was awaited; the run goes on.");
}
