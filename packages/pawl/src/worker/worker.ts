import { parseDuration, type Duration } from "../core/duration.ts";
import { PawlError } from "../core/error.ts";
import { checkDuration, checkOptions } from "../core/options.ts";
import type { PawlEvent } from "../core/pawl-event.ts";
import { retryUnavailable } from "../core/retry-unavailable.ts";
import { createCrew, hearHints, type Crew, type WorkerDeps } from "./crew.ts";
import type { OwnedRun } from "./executor.ts";
import { createRunTally, waitUntilIdle, type IdleSummary } from "./until-idle.ts";
import { readWorkerOptions, type WorkerOptions } from "./worker-options.ts";

export type { WorkerDeps } from "./crew.ts";

/** What `stop` and `close` take. */
export interface StopOptions {
  /** How long running steps may take to end. Default `"30s"`; 0 does not wait for them. */
  readonly timeout?: Duration;
}

/** What `runUntilIdle` takes. */
export interface UntilIdleOptions {
  /** After this long it takes no more runs, and stops as `stop()` does. Default: as long as there is work. */
  readonly timeout?: Duration;
  /** Once nothing else is left it waits this long, but only for runs that are due until then. Default 0. */
  readonly linger?: Duration;
}

/** Executes runs in this process. */
export interface Worker {
  /** Resolves when the worker is registered and takes runs. @throws {PawlError} `STORE_UNAVAILABLE`, `CLOSED` */
  start(): Promise<void>;
  /**
   * Executes all that can be executed now, and what becomes ready meanwhile; then stops. For cron jobs and serverless
   * functions. Instead of `start`: a worker used so cannot be started again.
   * @throws {PawlError} `STORE_UNAVAILABLE`, `CLOSED`, `INVALID_OPTION`
   */
  runUntilIdle(options?: UntilIdleOptions): Promise<IdleSummary>;
  /**
   * Takes no more runs, lets running steps end, and gives its runs back to be continued elsewhere, but for those that
   * need no more than that to end; resolves when that is done. A second call with a shorter timeout shortens the wait. A stopped worker does not start again.
   */
  stop(options?: StopOptions): Promise<void>;
}

/** Executes runs until it is stopped. */
export function createWorker(deps: WorkerDeps, options: WorkerOptions): Worker {
  const settings = readWorkerOptions(options);
  for (const { name, version, warnings = [] } of settings.workflows)
    for (const warning of warnings) deps.log.warn(warning, { workflow: name, version });
  const { clock, timers } = deps;
  let crew: Crew | null = null;
  let starting: Promise<void> | null = null;
  let stopping: Promise<void> | null = null;
  let unsubscribe = (): void => {};
  const stopAsked = new AbortController();
  let giveUp = (): void => {};
  const givenUp = new Promise<void>((resolve) => {
    giveUp = resolve;
  });

  /** Whoever counts what becomes of runs listens too. */
  let emit = deps.emit;

  const begin = async (begun: Crew): Promise<void> => {
    // Both at once: there are two open connections then, for the loops that begin.
    await Promise.all([
      retryUnavailable(deps, () => deps.storeClock.learn()),
      retryUnavailable(deps, () => begun.registration.ensure()),
    ]);
    if (stopping !== null) throw stopped();
    // Before the first look, so that nothing falls between.
    unsubscribe = deps.store.subscribe(hearHints(settings.queues, begun));
    const { queues, concurrency } = settings;
    emit?.({ kind: "worker.started", ...aboutWorker(begun), queues, concurrency });
    for (const loop of [begun.heartbeat, ...loopsOf(begun)]) loop.start();
    deps.takers?.add(begun.doorstep);
  };

  const windDown = async (): Promise<void> => {
    stopAsked.abort();
    if (crew === null) return;
    const { executor, heartbeat, registration, doorstep } = crew;
    deps.takers?.delete(doorstep);
    const idle = Promise.all(loopsOf(crew).map((loop) => loop.stop()));
    executor.release();
    await Promise.race([executor.ended(), givenUp]);
    const left = executor.giveUp();
    await idle;
    await starting?.catch(() => {});
    await heartbeat.stop();
    unsubscribe();
    if (registration.aliveUntil === null) return;
    try {
      await retryUnavailable(deps, () => deps.store.retireWorker(registration.workerId));
      for (const run of left) emit?.(describeReleased(run, deps));
    } catch (error) {
      deps.log.warn("The worker could not be signed off; its peers will find out.", { error });
    }
    emit?.({ kind: "worker.stopped", ...aboutWorker(crew) });
  };

  const aboutWorker = ({ registration }: Crew) => ({
    at: new Date(deps.storeClock.now()),
    workerId: registration.workerId,
  });

  const start = async (): Promise<void> => {
    if (stopping !== null) throw stopped();
    crew ??= createCrew(deps, settings);
    starting ??= begin(crew).catch((error: unknown) => {
      starting = null;
      throw error;
    });
    await starting;
  };

  const stop = async (stopOptions: StopOptions = {}): Promise<void> => {
    checkOptions("stop", stopOptions, { timeout: checkDuration });
    const cancel = timers.after(parseDuration(stopOptions.timeout ?? "30s", "timeout"), giveUp);
    try {
      await (stopping ??= windDown());
    } finally {
      cancel();
    }
  };

  let isUsed = false;

  return {
    async start() {
      if (isUsed) throw usedUp();
      await start();
    },
    async runUntilIdle(idleOptions = {}) {
      checkOptions("runUntilIdle", idleOptions, { timeout: checkDuration, linger: checkDuration });
      if (stopping !== null) throw stopped();
      if (isUsed || crew !== null) throw usedUp();
      isUsed = true;
      const tally = createRunTally(deps.emit);
      emit = tally.emit;
      crew = createCrew({ ...deps, emit }, settings, true);
      const lingerMs = parseDuration(idleOptions.linger ?? 0, "linger");
      const { timeout } = idleOptions;
      const cancelTimeout =
        timeout === undefined ? () => {} : timers.after(parseDuration(timeout), () => stopAsked.abort());
      let isIdle = false;
      try {
        await start();
        isIdle = await waitUntilIdle(crew, tally, { clock, timers, lingerMs, signal: stopAsked.signal });
      } finally {
        cancelTimeout();
        await stop();
      }
      return { isIdle, ...tally.counts() };
    },
    stop,
  };
}

/** Sweeping comes first, then claiming: they have the connections that are open, and what a dead worker left has waited longest. */
function loopsOf({ claimLoop, dueTimer, sweeper, inboxRelay }: Crew) {
  return [sweeper, claimLoop, dueTimer, inboxRelay];
}

function describeReleased({ claimed, workerId }: OwnedRun, { storeClock }: WorkerDeps): PawlEvent {
  const { runId, workflow, version, queue, attempt } = claimed;
  const at = new Date(storeClock.now());
  return { kind: "run.released", at, runId, workflow, version, queue, workerId, attempt };
}

function stopped(): PawlError {
  return new PawlError("CLOSED", "This worker was stopped; make a new one.");
}

function usedUp(): PawlError {
  return new PawlError("CLOSED", "A worker is started once, or run until it is idle once: make a new one.");
}
