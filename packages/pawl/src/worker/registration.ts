import type { Clock } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { Store } from "../store/store.ts";
import type { NewWorker } from "../store/worker-record.ts";

/** Under which id the store knows this worker. An id that may have expired is never used again. */
export interface Registration {
  readonly workerId: string;
  /** Until when, by this process's clock, the store surely counts it as alive; null while it is not registered. */
  readonly aliveUntil: number | null;
  /**
   * Until this instant of the process's clock it expires no others: it has just expired itself, so the store was away or
   * this process stood still, and its peers may not have been heard for the same reason. Nor does it when it has just
   * started, for as long as peers need that the store, back again, has not heard yet.
   */
  sparesOthersUntil(): number;
  /** The time that the newest claim's answer gave under this id, once its runs are in their slots; null before the first. */
  claimsKnownTo: number | null;
  /**
   * Whether the store surely counts this id as alive, by this process's clock. Who is told that it does not lets go of its run:
   * no answer that comes in later makes the id good again.
   */
  isAlive(workerId: string): boolean;
  /** Registers unless that is done. */
  ensure(): Promise<void>;
  /** The store heard from this id no earlier than this instant of the process's clock, and gave it this lease. */
  heard(workerId: string, sentAt: number, leaseMs: number): void;
  /** A claim that was sent at this instant has brought runs, or may have: a rest is over since then. */
  claimed(workerId: string, sentAt: number): void;
  /** It holds nothing, and has a long lease until it claims something. */
  readonly isResting: boolean;
  /** Whether its last claim was long enough ago: to rest and to wake is a write each. */
  mayRest(): boolean;
  /**
   * Takes a new id, registered by the next `ensure`. What the old one held is given back then; with `isSuspect` it is
   * left to the sweep, which counts it as a crash.
   */
  renew(isSuspect: boolean): void;
}

export function createRegistration(
  seams: { readonly store: Store; readonly clock: Clock; readonly ids: Ids; readonly log: Log },
  worker: Omit<NewWorker, "id">,
  /**
   * How long a store must have been there before a new worker takes silent peers for dead: heartbeats that fail are repeated
   * after a sixth of a lease at most. 0: it is here to sweep, and not for long.
   */
  newForMs = worker.leaseMs / 3,
): Registration {
  const { store, clock, ids, log } = seams;
  let sparesOthersUntil = Number.NEGATIVE_INFINITY;
  let isNewUntil: number | null = null;
  let hasExpired = false;
  /** Somebody was told that the id may not be alive any more. */
  let isDoubted = false;
  let claimedAt = Number.NEGATIVE_INFINITY;
  let registering: Promise<void> | null = null;
  let toRetire: string[] = [];

  const wake = (until: number): void => {
    registration.isResting = false;
    registration.aliveUntil = until;
  };

  const register = async (): Promise<void> => {
    const sentAt = clock.now();
    const upMs = isNewUntil === null && newForMs > 0 ? await store.upMs() : newForMs;
    try {
      await store.registerWorker({ ...worker, id: registration.workerId });
    } catch (error) {
      // It may have been registered, and would expire too early when registered again later: use it no more.
      registration.workerId = ids.next();
      throw error;
    }
    registration.aliveUntil = sentAt + worker.leaseMs;
    isNewUntil ??= clock.now() + Math.max(0, newForMs - upMs);
    // At most one lease in two: a worker that expires all the time must expire its dead peers now and then.
    if (hasExpired && sparesOthersUntil < sentAt - worker.leaseMs)
      sparesOthersUntil = clock.now() + worker.leaseMs;
    hasExpired = false;
    await retire();
  };

  const retire = async (): Promise<void> => {
    const expired = toRetire;
    toRetire = [];
    try {
      for (const id of expired) await store.retireWorker(id);
    } catch (error) {
      log.warn("An expired worker's runs could not be given back; the sweep will find them.", {
        expired,
        error,
      });
    }
  };

  const registration = {
    workerId: ids.next(),
    aliveUntil: null as number | null,
    claimsKnownTo: null as number | null,
    isResting: false,
    sparesOthersUntil: () => Math.max(sparesOthersUntil, isNewUntil ?? sparesOthersUntil),
    isAlive(id: string) {
      if (id !== registration.workerId || registration.aliveUntil === null) return false;
      isDoubted ||= clock.now() >= registration.aliveUntil;
      return !isDoubted;
    },
    async ensure() {
      if (registration.aliveUntil !== null) return;
      registering ??= register().finally(() => {
        registering = null;
      });
      await registering;
    },
    mayRest: () => clock.now() - claimedAt >= worker.leaseMs,
    heard(id: string, sentAt: number, leaseMs: number) {
      if (id !== registration.workerId || registration.aliveUntil === null || isDoubted) return;
      const until = sentAt + worker.leaseMs;
      if (leaseMs > worker.leaseMs && sentAt > claimedAt) {
        registration.aliveUntil = sentAt + leaseMs;
        registration.isResting = true;
      } else if (registration.isResting) wake(until);
      else registration.aliveUntil = Math.max(registration.aliveUntil, until);
    },
    claimed(id: string, sentAt: number) {
      if (id !== registration.workerId || registration.aliveUntil === null) return;
      // An answer on its way to a heartbeat from before may speak of the long lease that this claim has ended.
      claimedAt = clock.now();
      if (registration.isResting && !isDoubted) wake(sentAt + worker.leaseMs);
    },
    renew(isSuspect: boolean) {
      if (registration.aliveUntil === null) return;
      if (!isSuspect) toRetire.push(registration.workerId);
      registration.workerId = ids.next();
      registration.aliveUntil = null;
      registration.claimsKnownTo = null;
      registration.isResting = false;
      isDoubted = false;
      hasExpired = true;
    },
  };
  return registration;
}
