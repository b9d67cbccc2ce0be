import type { Clock } from "../core/clock.ts";
import type { Probe } from "../core/crash-point.ts";
import type { RunId } from "../core/ids.ts";
import { createLoop, type Loop, type LoopSeams } from "../core/loop.ts";
import type { Emit, StepPlace } from "../core/pawl-event.ts";
import { firstEpoch } from "../store/lease.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { Store } from "../store/store.ts";
import { findLongSteps } from "./long-steps.ts";
import type { Registration } from "./registration.ts";
import type { Sampler } from "./sampler.ts";
import type { HeldRun, Slots } from "./slots.ts";

export interface HeartbeatParts extends LoopSeams {
  readonly store: Store;
  readonly clock: Clock;
  readonly probe: Probe;
  readonly storeClock: StoreClock;
  readonly registration: Registration;
  readonly slots: Slots;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly sampler: Sampler;
  /** Runs were made claimable. */
  readonly recovered: () => void;
  readonly emit?: Emit | undefined;
}

export interface Heartbeat extends Loop {
  /** It may hold something now: if it rested, it is heard at once, and as often as usual. */
  wake(): void;
  /** This id is no longer alive: let go of all it held, and go on under a new one. */
  expired(workerId: string): void;
}

/** A worker that holds nothing has so many leases at once, and is heard once in so many: nobody waits for its runs. */
const restLeases = 12;
const restBeats = 4;

/** More unanswered heartbeats than this would only pile up behind a store that does not answer. */
const mostUnanswered = 3;

/**
 * Proves to the store that this worker lives, and compares what each of the two believes it to hold. Lets go of
 * everything once the last proof must have run out, also while a heartbeat is still unanswered.
 */
export function createHeartbeat(parts: HeartbeatParts): Heartbeat {
  const { store, clock, timers, log, registration, slots, leaseMs, heartbeatMs } = parts;
  const unanswered = new Set<Promise<void>>();
  /** When the next turn begins at the latest, unless something blocks the event loop. */
  let turnDueAt = Number.POSITIVE_INFINITY;
  let wasBlocked = false;
  /** The id that the last turn was taken under. */
  let lastId: string | null = null;
  let cancelExpiry = (): void => {};
  const storeTime = (): Date => new Date(parts.storeClock.now());

  const expired = (workerId: string): void => {
    if (workerId !== registration.workerId || registration.aliveUntil === null) return;
    cancelExpiry();
    const held = slots.held();
    log.warn("The worker's lease has expired; it lets go of its runs and goes on under a new id.", {
      workerId,
      runs: held.length,
      wasBlocked,
    });
    // A run that blocks the event loop for a whole lease counts as crashed: given back for free, it would do so for ever.
    registration.renew(wasBlocked);
    parts.emit?.({ kind: "worker.expired", at: storeTime(), workerId, held: held.length, wasBlocked });
    wasBlocked = false;
    for (const run of held) slots.drop(run);
  };

  const isOverdue = (): boolean => clock.now() >= (registration.aliveUntil ?? Number.POSITIVE_INFINITY);

  const expireInTime = (): void => {
    cancelExpiry();
    const { aliveUntil, workerId } = registration;
    if (aliveUntil === null) return;
    cancelExpiry = timers.after(Math.max(0, aliveUntil - clock.now()), () => {
      noticeBlock();
      if (isOverdue()) expired(workerId);
      else expireInTime();
    });
  };

  const noticeBlock = (): void => {
    const lateMs = clock.now() - turnDueAt;
    if (lateMs <= leaseMs / 3) return;
    // A step that blocked to its end has ended by now, and its run may wait for an answer only.
    const steps = slots.held().flatMap((held) => stepsSince(held, turnDueAt));
    turnDueAt = Number.POSITIVE_INFINITY;
    wasBlocked = true;
    const blockedMs = Math.round(lateMs);
    log.warn("The event loop was blocked: move long computations off the main thread, or peers take over.", {
      blockedMs,
      steps,
    });
    const { workerId } = registration;
    parts.emit?.({ kind: "worker.blocked_loop", at: storeTime(), workerId, blockedMs, steps });
  };

  const beat = async (): Promise<void> => {
    const { workerId } = registration;
    const held = slots.held().map(({ runId, epoch }) => ({ runId, epoch }));
    // Not to be given back: the answer that says that it is held may be on its way. Nor lost, where it is not held yet.
    const expected = slots.expected().map((runId) => ({ runId, epoch: firstEpoch }));
    const epochs = new Map<RunId, number>(held.map((run) => [run.runId, run.epoch]));
    const sentAt = clock.now();
    parts.probe("heartbeat.before");
    const longSteps = findLongSteps(slots, sentAt - heartbeatMs);
    const sample = parts.sampler.take();
    const answer = await store.heartbeat({
      workerId,
      held: [...held, ...expected],
      claimsKnownTo: registration.claimsKnownTo,
      leaseMs: slots.isEmpty() && registration.mayRest() ? restLeases * leaseMs : leaseMs,
      ...(longSteps.length > 0 && { longSteps }),
      ...(sample !== null && { sample }),
    });
    if (answer.leaseMs === null) return expired(workerId);

    wasBlocked = false;
    registration.heard(workerId, sentAt, answer.leaseMs);
    parts.storeClock.heard(answer.now, sentAt);
    expireInTime();
    for (const runId of answer.told) slots.get(runId, epochs.get(runId))?.execution.told();
    for (const runId of answer.lost) {
      const epoch = epochs.get(runId);
      const lost = epoch === undefined ? undefined : slots.get(runId, epoch);
      if (lost?.execution.isLeaving() === false) slots.drop(lost);
    }
    if (answer.returned === 0) return;
    log.info("Gave back runs whose claim was lost.", { runs: answer.returned });
    parts.recovered();
  };

  /** Sends a heartbeat and waits until it is answered, or the next one is due. */
  const beatInTime = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const cancel = timers.after(heartbeatMs, () => {
        log.warn("A heartbeat is unanswered; another one is sent.", { workerId: registration.workerId });
        resolve();
      });
      const sent = beat()
        .then(resolve, reject)
        .finally(() => {
          cancel();
          unanswered.delete(sent);
        });
      unanswered.add(sent);
    });

  /** Its registration was as good as a heartbeat, a moment ago. */
  const isJustRegistered = (): boolean => {
    const { workerId, aliveUntil } = registration;
    const isNew = workerId !== lastId;
    lastId = workerId;
    return isNew && aliveUntil !== null && aliveUntil - clock.now() > leaseMs - heartbeatMs / 2;
  };

  const turn = async (): Promise<number> => {
    noticeBlock();
    turnDueAt = Number.POSITIVE_INFINITY;
    if (isOverdue()) expired(registration.workerId);
    await registration.ensure();
    expireInTime();
    const begunAt = clock.now();
    turnDueAt = begunAt + heartbeatMs;
    if (!isJustRegistered() && unanswered.size < mostUnanswered) await beatInTime();
    const nextAt = begunAt + (registration.isResting ? restBeats * leaseMs : heartbeatMs);
    turnDueAt = nextAt;
    return nextAt - clock.now();
  };
  const loop = createLoop("heartbeat", parts, turn, leaseMs / 6);

  return {
    ...loop,
    expired,
    wake() {
      if (registration.isResting) loop.poke();
    },
    async stop() {
      await loop.stop();
      cancelExpiry();
      parts.sampler.stop();
      await Promise.all(unanswered);
    },
  };
}

function stepsSince({ runId, execution }: HeldRun, at: number): readonly StepPlace[] {
  return execution.stepsSince(at).map((step) => ({ runId, step }));
}
