import type { Clock } from "../core/clock.ts";
import type { Emit, PawlEvent } from "../core/pawl-event.ts";
import { delay, type Timers } from "../core/timers.ts";
import type { Crew } from "./crew.ts";

/** What a worker did until it was idle. A run that was taken several times counts each time. */
export interface IdleSummary {
  /** False: its time was up, or it was stopped, before nothing was left to do. */
  readonly isIdle: boolean;
  readonly claimed: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly timedOut: number;
  /** Let go until they are due or told: sleeps, waits, retries, pauses. */
  readonly parked: number;
  readonly blocked: number;
  /** Given back unfinished, since its time was up. */
  readonly released: number;
  readonly lost: number;
}

type Counts = Omit<IdleSummary, "isIdle">;

/** Counts what becomes of runs, and passes on what it is told. */
export interface RunTally {
  readonly emit: Emit;
  counts(): Counts;
}

const counted: Partial<Record<PawlEvent["kind"], keyof Counts>> = {
  "run.claimed": "claimed",
  "run.completed": "completed",
  "run.failed": "failed",
  "run.cancelled": "cancelled",
  "run.timed_out": "timedOut",
  "run.parked": "parked",
  "run.blocked": "blocked",
  "run.released": "released",
  "lease.lost": "lost",
};

export function createRunTally(passOn: Emit | undefined): RunTally {
  const counts = {
    claimed: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    timedOut: 0,
    parked: 0,
    blocked: 0,
    released: 0,
    lost: 0,
  };
  return {
    emit(event) {
      const name = counted[event.kind];
      if (name !== undefined) counts[name] += 1;
      passOn?.(event);
    },
    counts: () => ({ ...counts }),
  };
}

/**
 * Resolves with true when nothing is left to do: a sweep, a look at what is due and a look at all that can be claimed,
 * begun one after the other while nothing was held, have brought nothing, and nothing is due within `lingerMs` of when
 * that was first so. With false once the signal aborts.
 */
export async function waitUntilIdle(
  crew: Crew,
  tally: RunTally,
  terms: {
    readonly clock: Clock;
    readonly timers: Timers;
    readonly lingerMs: number;
    readonly signal: AbortSignal;
  },
): Promise<boolean> {
  const { executor, slots, sweeper, dueTimer, claimLoop } = crew;
  const { clock, signal, lingerMs } = terms;
  const isOver = (): boolean => signal.aborted;
  // What is due may be for others to execute: it must not keep this worker waiting again and again.
  let lingersUntil: number | null = null;
  while (!isOver()) {
    await unlessAborted(executor.ended(), signal);
    const { claimed } = tally.counts();
    for (const loop of [sweeper, dueTimer, claimLoop]) await unlessAborted(loop.turned(), signal);
    if (isOver()) break;
    if (!slots.isEmpty() || tally.counts().claimed !== claimed) {
      lingersUntil = null;
      continue;
    }
    lingersUntil ??= clock.now() + lingerMs;
    const dueInMs = Math.max(1, dueTimer.dueInMs());
    if (clock.now() + dueInMs > lingersUntil) return true;
    await delay(terms.timers, dueInMs, signal);
  }
  return false;
}

function unlessAborted(waiting: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      signal.removeEventListener("abort", done);
      resolve();
    };
    signal.addEventListener("abort", done, { once: true });
    waiting.then(done, reject);
  });
}
