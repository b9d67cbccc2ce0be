import type { Clock } from "../core/clock.ts";
import type { Probe } from "../core/crash-point.ts";
import { parseDuration, type Duration } from "../core/duration.ts";
import { PawlError } from "../core/error.ts";
import type { Ids } from "../core/ids.ts";
import type { Loop, LoopSeams } from "../core/loop.ts";
import { checkDuration, checkOptions } from "../core/options.ts";
import type { Payloads } from "../core/payloads.ts";
import { retryUnavailable } from "../core/retry-unavailable.ts";
import { createExecution } from "../runtime/execution.ts";
import type { Workflow } from "../runtime/workflow.ts";
import type { Hint } from "../store/hint.ts";
import type { Lane } from "../store/lease.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { Store } from "../store/store.ts";
import { createClaimLoop, type ClaimLoop } from "./claim-loop.ts";
import { createDueTimer, type DueTimer } from "./due-timer.ts";
import { createExecutor, type Executor } from "./executor.ts";
import { createHeartbeat, type Heartbeat } from "./heartbeat.ts";
import { createInboxRelay, type InboxRelay } from "./inbox-relay.ts";
import { observeParks } from "./observe-parks.ts";
import { createRegistration, type Registration } from "./registration.ts";
import { createSlots, type Slots } from "./slots.ts";
import { createSweeper } from "./sweeper.ts";
import { readWorkerOptions, type WorkerOptions, type WorkerSettings } from "./worker-options.ts";

export interface WorkerDeps extends LoopSeams {
  readonly store: Store;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly ids: Ids;
  readonly probe: Probe;
  /** Default: without a codec, up to 1 MiB. */
  readonly payloads?: Payloads;
  /** Resolves when whatever could go on has gone on. */
  readonly settle: () => Promise<void>;
  /** Where it runs, for people. */
  readonly host: string;
  readonly pid: number;
}

export interface StopOptions {
  /** How long running steps may take to end. Default `"30s"`; 0 does not wait for them. */
  readonly timeout?: Duration;
}

export interface Worker {
  /** Resolves when the worker is registered and takes runs. @throws {PawlError} `STORE_UNAVAILABLE`, `CLOSED` */
  start(): Promise<void>;
  /**
   * Takes no more runs, lets running steps end, and gives its runs back to be continued elsewhere; resolves when that
   * is done. A second call with a shorter timeout shortens the wait. A stopped worker does not start again.
   */
  stop(options?: StopOptions): Promise<void>;
}

/** Executes runs until it is stopped. */
export function createWorker(deps: WorkerDeps, options: WorkerOptions): Worker {
  const settings = readWorkerOptions(options);
  const parts = assemble(deps, settings);
  const { registration, slots, executor, heartbeat } = parts;
  const loops = [parts.claimLoop, parts.dueTimer, parts.sweeper, parts.inboxRelay];
  const { timers, log } = deps;
  let starting: Promise<void> | null = null;
  let stopping: Promise<void> | null = null;
  let unsubscribe = (): void => {};
  let giveUp = (): void => {};
  const givenUp = new Promise<void>((resolve) => {
    giveUp = resolve;
  });

  const begin = async (): Promise<void> => {
    await retryUnavailable(deps, () => deps.storeClock.learn());
    await retryUnavailable(deps, () => registration.ensure());
    if (stopping !== null) throw stopped();
    // Before the first look, so that nothing falls between.
    unsubscribe = deps.store.subscribe(hearHints(settings.queues, parts));
    for (const loop of [heartbeat, ...loops]) loop.start();
  };

  const windDown = async (): Promise<void> => {
    const idle = Promise.all(loops.map((loop) => loop.stop()));
    executor.release();
    await Promise.race([executor.ended(), givenUp]);
    for (const held of slots.held()) slots.drop(held);
    await idle;
    await starting?.catch(() => {});
    await heartbeat.stop();
    unsubscribe();
    if (registration.aliveUntil === null) return;
    try {
      await retryUnavailable(deps, () => deps.store.retireWorker(registration.workerId));
    } catch (error) {
      log.warn("The worker could not be signed off; its peers will find out.", { error });
    }
  };

  return {
    async start() {
      if (stopping !== null) throw stopped();
      starting ??= begin().catch((error: unknown) => {
        starting = null;
        throw error;
      });
      await starting;
    },
    async stop(stopOptions = {}) {
      const { timeout = "30s" } = checkOptions("stop", stopOptions, { timeout: checkDuration });
      const cancel = timers.after(parseDuration(timeout), giveUp);
      try {
        await (stopping ??= windDown());
      } finally {
        cancel();
      }
    },
  };
}

interface Parts {
  readonly slots: Slots;
  readonly registration: Registration;
  readonly executor: Executor;
  readonly heartbeat: Heartbeat;
  readonly claimLoop: ClaimLoop;
  readonly dueTimer: DueTimer;
  readonly sweeper: Loop;
  readonly inboxRelay: InboxRelay;
}

function assemble(deps: WorkerDeps, settings: WorkerSettings): Parts {
  const findWorkflow = (name: string, version: number): Workflow | undefined =>
    settings.workflows.find((workflow) => workflow.name === name && workflow.version === version);
  const slots = createSlots(settings.concurrency);
  const registration = createRegistration(deps, {
    host: deps.host,
    pid: deps.pid,
    leaseMs: settings.leaseMs,
    queues: settings.queues,
    concurrency: settings.concurrency,
  });
  const heartbeat = createHeartbeat({ ...deps, ...settings, registration, slots });
  const dueTimer = createDueTimer({ ...deps, pollMs: settings.pollMs, woken: () => claimLoop.look() });
  const sweeper = createSweeper({
    ...deps,
    intervalMs: settings.leaseMs / 3,
    heldOffMs: () => registration.sparesOthersUntil - deps.clock.now(),
    recovered: () => claimLoop.look(),
  });
  const store = observeParks(deps.store, (dueInMs) => dueTimer.parked(dueInMs));
  const executor = createExecutor({
    slots,
    begin(claimed, workerId) {
      const isAlive = (): boolean => registration.isAlive(workerId);
      return createExecution(claimed, { ...deps, store, workerId, findWorkflow, isAlive });
    },
    freed: (runId) => claimLoop.freed(runId),
  });
  const claimLoop = createClaimLoop({
    ...deps,
    ...settings,
    registration,
    slots,
    lanes: lanesOf(settings),
    execute: (run, workerId) => executor.execute(run, workerId),
    expired: (workerId) => heartbeat.expired(workerId),
  });
  const inboxRelay = createInboxRelay(deps);
  return { slots, registration, executor, heartbeat, claimLoop, dueTimer, sweeper, inboxRelay };
}

function hearHints(queues: readonly string[], parts: Parts): (hint: Hint) => void {
  return (hint) => {
    switch (hint.kind) {
      case "ready":
        if (queues.includes(hint.queue)) parts.claimLoop.hint();
        return;
      case "told":
        parts.slots.get(hint.runId)?.execution.told();
        return;
      case "sent":
        parts.inboxRelay.sent(hint.runId);
        return;
      case "ended":
        return;
      case "reconnected":
        parts.claimLoop.lookAtAll();
        for (const loop of [parts.heartbeat, parts.dueTimer, parts.sweeper]) loop.poke();
        return;
      default:
        hint satisfies never;
    }
  };
}

function lanesOf({ queues, workflows }: WorkerSettings): readonly Lane[] {
  return queues.flatMap((queue) =>
    workflows.map(({ name, version, crashLimit }) => ({
      queue,
      workflow: name,
      version,
      after: null,
      crashLimit,
    })),
  );
}

function stopped(): PawlError {
  return new PawlError("CLOSED", "This worker was stopped; make a new one.");
}
