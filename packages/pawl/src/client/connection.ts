import type { Clock } from "../core/clock.ts";
import { PawlError } from "../core/error.ts";
import type { Ids } from "../core/ids.ts";
import type { LoopSeams } from "../core/loop.ts";
import type { Emit } from "../core/pawl-event.ts";
import { plainPayloads, type Payloads } from "../core/payloads.ts";
import { retryUnavailable } from "../core/retry-unavailable.ts";
import { delay } from "../core/timers.ts";
import { invalidTransaction, type Transaction } from "../core/transaction.ts";
import type { Audience } from "../store/audience.ts";
import type { CallersStore } from "../store/callers-store.ts";
import type { NewRun } from "../store/run-record.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { Store } from "../store/store.ts";
import type { Offer, Taker } from "../store/taker.ts";

export interface ClientDeps extends LoopSeams {
  readonly store: Store;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly ids: Ids;
  /** Default: without a codec, up to 1 MiB. */
  readonly payloads?: Payloads;
  /** Awaited before the first call to the store, until it has succeeded. Default: nothing is. */
  readonly ready?: () => Promise<void>;
  /** Resolves when the process has got to what else it has to do. Default: as soon as timers do. */
  readonly settle?: () => Promise<void>;
  /** Is told what happens. Default: nobody is. */
  readonly emit?: Emit | undefined;
  /** Workers of this process. Default: there are none. */
  readonly takers?: ReadonlySet<Taker> | undefined;
  /** Where workers of this process find who waits for runs to end. Default: nowhere. */
  readonly audiences?: Set<Audience> | undefined;
  /** The store inside a caller's transaction. Default: it has none. */
  readonly within?: (tx: Transaction) => CallersStore;
}

/** Where a call that only adds something goes: to the store, or into the caller's transaction. */
export interface Place extends Pick<Store, "createRuns" | "tell" | "signalOrStart"> {
  /** Learns the store's time. */
  learn(): Promise<void>;
}

/** What the parts of a client have in common. */
export interface Connection {
  readonly store: Store;
  readonly storeClock: StoreClock;
  readonly ids: Ids;
  readonly payloads: Payloads;
  readonly emit: Emit | undefined;
  /** Calls the store, again where it gives no answer. @throws {PawlError} `CLOSED` */
  readonly call: <Answer>(act: () => Promise<Answer>) => Promise<Answer>;
  /** Resolves when the store can be called. @throws {PawlError} `CLOSED` */
  open(): Promise<void>;
  /** Asks the workers of this process which of them would hold the run from its start. */
  offerFor(run: NewRun): Offer | null;
  /** @throws {PawlError} `INVALID_TRANSACTION` */
  placeOf(tx: Transaction | undefined): Place;
  /** Lets the process do other things: workers in it must give signs of life. */
  breathe(): Promise<void>;
  close(): void;
}

/** Made once: most often there is nothing to wait for. */
const nothing = Promise.resolve();

export function createConnection(deps: ClientDeps): Connection {
  const { store, storeClock, ids, payloads = plainPayloads, emit } = deps;
  let isClosed = false;
  let isReady = false;

  const call = <Answer>(act: () => Promise<Answer>): Promise<Answer> => {
    if (isClosed) return Promise.reject(new PawlError("CLOSED", "This Pawl is closed; make a new one."));
    if (isReady) return retryUnavailable(deps, act);
    return retryUnavailable(deps, async () => {
      await deps.ready?.();
      isReady = true;
      return act();
    });
  };

  const open = (): Promise<void> => (isReady && !isClosed ? nothing : call(() => nothing));

  const outside: Place = {
    learn: () => (isReady && !isClosed && storeClock.isKnown() ? nothing : call(() => storeClock.learn())),
    createRuns: (runs) => call(() => store.createRuns(runs)),
    tell: (message) => call(() => store.tell(message)),
    signalOrStart: (asked) => call(() => store.signalOrStart(asked)),
  };

  return {
    store,
    storeClock,
    ids,
    payloads,
    emit,
    call,
    open,
    offerFor(run) {
      for (const taker of deps.takers ?? []) {
        const offer = taker.offer(run);
        if (offer !== null) return offer;
      }
      return null;
    },
    placeOf(tx) {
      if (tx === undefined) return outside;
      if (deps.within === undefined)
        throw invalidTransaction("There are no transactions in memory: leave tx out, or use a Postgres.");
      // Nothing is tried again there: an error has ended the caller's transaction.
      const within = deps.within(tx);
      return {
        async learn() {
          await open();
          await storeClock.learn(() => within.now());
        },
        createRuns: (runs) => within.createRuns(runs),
        tell: (message) => within.tell(message),
        signalOrStart: (asked) => within.signalOrStart(asked),
      };
    },
    breathe: deps.settle ?? (() => delay(deps.timers, 0)),
    close() {
      isClosed = true;
    },
  };
}
