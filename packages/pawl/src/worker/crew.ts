import type { Clock } from "../core/clock.ts";
import type { Probe } from "../core/crash-point.ts";
import type { Ids, RunId } from "../core/ids.ts";
import type { LoadMeter } from "../core/load.ts";
import type { Loop, LoopSeams } from "../core/loop.ts";
import type { Emit, PawlEvent } from "../core/pawl-event.ts";
import type { Payloads } from "../core/payloads.ts";
import { pawlVersion } from "../core/version.ts";
import type { Watch } from "../core/watch.ts";
import { createExecution, type ExecutionDeps } from "../runtime/execution.ts";
import type { Workflow } from "../runtime/workflow.ts";
import type { Audience } from "../store/audience.ts";
import type { Hint } from "../store/hint.ts";
import type { HolderTransactions } from "../store/holder-transactions.ts";
import type { ClaimedRun, Lane } from "../store/lease.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { Store } from "../store/store.ts";
import type { Taker } from "../store/taker.ts";
import type { NewWorker, SweepAnswer } from "../store/worker-record.ts";
import { createClaimLoop, type ClaimLoop } from "./claim-loop.ts";
import { createDoorstep } from "./doorstep.ts";
import { createDueTimer, type DueTimer } from "./due-timer.ts";
import { createExecutor, type Executor, type OwnedHeld, type OwnedRun } from "./executor.ts";
import { createHeartbeat, type Heartbeat } from "./heartbeat.ts";
import { createInboxRelay, type InboxRelay } from "./inbox-relay.ts";
import { observeParks } from "./observe-parks.ts";
import { createRegistration, type Registration } from "./registration.ts";
import { createRunCache } from "./run-cache.ts";
import { createSampler } from "./sampler.ts";
import { createSlots, type Slots } from "./slots.ts";
import { createSweeper } from "./sweeper.ts";
import type { WorkerSettings } from "./worker-options.ts";

export interface WorkerDeps extends LoopSeams {
  readonly store: Store;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly ids: Ids;
  /** What the store can do inside a user's transaction. Default: nothing. */
  readonly transactions?: HolderTransactions | undefined;
  readonly probe: Probe;
  /** Default: without a codec, up to 1 MiB. */
  readonly payloads?: Payloads;
  /** Resolves when whatever could go on has gone on. */
  readonly settle: () => Promise<void>;
  /** Where it runs, for people. */
  readonly host: string;
  readonly pid: number;
  /** The platform and its version, for people. */
  readonly platform?: string;
  /** Measures this process's load. Default: no samples are stored. */
  readonly startLoad?: () => LoadMeter;
  /** Looks over the code's shoulder. Default: nobody does. */
  readonly watch?: Watch | undefined;
  /** Is told what happens. Default: nobody is. */
  readonly emit?: Emit | undefined;
  /** Who in this process waits for runs to end. Default: nobody is known. */
  readonly audiences?: Set<Audience> | undefined;
  /** Where those who start runs in this process find this worker. Default: nowhere. */
  readonly takers?: Set<Taker> | undefined;
}

/** The parts of a worker, wired up. */
export interface Crew {
  readonly slots: Slots;
  readonly registration: Registration;
  readonly executor: Executor;
  readonly heartbeat: Heartbeat;
  readonly claimLoop: ClaimLoop;
  readonly dueTimer: DueTimer;
  readonly sweeper: Loop;
  readonly inboxRelay: InboxRelay;
  readonly doorstep: Taker;
}

/** `isBrief`: it is to find all there is to do at once, and to leave. */
export function createCrew(deps: WorkerDeps, settings: WorkerSettings, isBrief = false): Crew {
  /** What is claimed together is most often of one workflow. */
  let found: Workflow | undefined;
  const findWorkflow = (name: string, version: number): Workflow | undefined => {
    if (found?.name !== name || found.version !== version)
      found = settings.workflows.find((workflow) => workflow.name === name && workflow.version === version);
    return found;
  };
  const { emit, clock } = deps;
  const at = (): Date => new Date(deps.storeClock.now());
  const slots = createSlots<OwnedHeld>(settings.concurrency);
  const registration = createRegistration(deps, describeWorker(deps, settings), isBrief ? 0 : undefined);
  const sampler = createSampler(clock, slots, settings.sampleMs, deps.startLoad);
  const recovered = (): void => claimLoop.look();
  const heartbeat = createHeartbeat({ ...deps, ...settings, registration, slots, sampler, recovered });
  const dueTimer = createDueTimer({
    ...deps,
    pollMs: settings.pollMs,
    wakeDue: (most) => claimLoop.wakeDue(most),
    woken: recovered,
    isFed: () => claimLoop.isFed(),
  });
  const swept = ({ expiredWorkers, recovered, failed, expiredRuns }: SweepAnswer): void => {
    const { workerId } = registration;
    emit?.({ kind: "sweep.recovered", at: at(), workerId, expiredWorkers, recovered, failed, expiredRuns });
  };
  const sweeper = createSweeper({
    ...deps,
    intervalMs: settings.leaseMs / 3,
    heldOffMs: () => registration.sparesOthersUntil() - clock.now(),
    recovered,
    found: swept,
  });
  const store = observeParks(deps.store, (dueInMs) => dueTimer.parked(dueInMs));
  const lost = ({ claimed, workerId }: OwnedRun): void => {
    const { runId, workflow, version, queue, attempt } = claimed;
    emit?.({ kind: "lease.lost", at: at(), runId, workflow, version, queue, workerId, attempt });
  };
  let executionDeps: ExecutionDeps | null = null;
  const cache = createRunCache(settings.stickyRuns);
  const executor: Executor = createExecutor({
    slots,
    cache,
    clock,
    timers: deps.timers,
    create(claimed, workerId, waits) {
      if (executionDeps?.workerId !== workerId) {
        const isAlive = (): boolean => registration.isAlive(workerId);
        const ending = (runId: RunId, epoch: number): void => {
          slots.ending(runId, epoch);
          executor.admit();
          claimLoop.ending();
        };
        executionDeps = { ...deps, store, workerId, findWorkflow, isAlive, ending };
      }
      return createExecution(claimed, executionDeps, waits);
    },
    freed: (runId, slotMs) => claimLoop.freed(runId, slotMs),
    lost,
  });
  const execute = (run: ClaimedRun, workerId: string): void => {
    emit?.(describeClaimed(run, workerId));
    executor.execute(run, workerId);
  };
  const lanes = lanesOf(settings);
  const awake = (): void => heartbeat.wake();
  const claimLoop = createClaimLoop({
    ...deps,
    ...settings,
    registration,
    slots,
    lanes,
    execute,
    expired: (workerId) => heartbeat.expired(workerId),
    awake,
    hungry: () => dueTimer.hungry(),
    remembers: (runId) => cache.has(runId),
  });
  const doorstep = createDoorstep({
    ...deps,
    ...settings,
    registration,
    slots,
    lanes,
    mayTake: () => claimLoop.mayTake(),
    freed(runId) {
      executor.admit();
      claimLoop.freed(runId, null);
    },
    execute,
    awake,
  });
  const inboxRelay = createInboxRelay(deps);
  return { slots, registration, executor, heartbeat, claimLoop, dueTimer, sweeper, inboxRelay, doorstep };
}

function describeClaimed(run: ClaimedRun, workerId: string): PawlEvent {
  const { runId, workflow, version, queue, attempt, claimedAt } = run;
  const waitedMs = Math.max(0, claimedAt - run.mark.readyAt);
  const at = new Date(claimedAt);
  return { kind: "run.claimed", at, runId, workflow, version, queue, workerId, attempt, waitedMs };
}

function describeWorker(deps: WorkerDeps, settings: WorkerSettings): Omit<NewWorker, "id"> {
  const { leaseMs, queues, concurrency, heartbeatMs, pollMs, sampleMs } = settings;
  return {
    host: deps.host,
    pid: deps.pid,
    leaseMs,
    queues,
    concurrency,
    workflows: settings.workflows.map(({ name, version }) => `${name}@${version}`),
    settings: { pawl: pawlVersion, platform: deps.platform ?? null, heartbeatMs, pollMs, sampleMs },
  };
}

export function hearHints(queues: readonly string[], crew: Crew): (hint: Hint) => void {
  return (hint) => {
    switch (hint.kind) {
      case "ready":
        if (queues.includes(hint.queue)) crew.claimLoop.hint();
        return;
      case "told":
        crew.slots.get(hint.runId)?.execution.told();
        return;
      case "sent":
        crew.inboxRelay.sent(hint.runId);
        return;
      case "ended":
      case "answered":
      case "written":
        return;
      case "reconnected":
        crew.claimLoop.lookAtAll();
        for (const loop of [crew.heartbeat, crew.dueTimer, crew.sweeper]) loop.poke();
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
