import { PawlError } from "../../packages/pawl/src/core/error.ts";
import type { Lease, RecordAnswer } from "../../packages/pawl/src/store/lease.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";

/** A mistake in the store that the simulation must find, by one of these invariants. */
export interface Mutant {
  readonly name: string;
  readonly breaks: readonly string[];
  readonly spoil: (store: Store) => Store;
}

/** Writes under whichever lease is valid, whoever asks. */
function withoutFence(store: Store): (lease: Lease) => Lease {
  const newest = new Map<string, Lease>();
  const claimRuns = store.claimRuns.bind(store);
  store.claimRuns = async (request) => {
    const claim = await claimRuns(request);
    for (const { runId, epoch } of claim.runs)
      newest.set(runId, { runId, epoch, workerId: request.workerId });
    return claim;
  };
  return (lease) => newest.get(lease.runId) ?? lease;
}

async function answerAnyway(store: Store, error: unknown): Promise<RecordAnswer> {
  if (!PawlError.is(error, "LEASE_LOST")) throw error;
  return { told: false, dueAt: new Map(), now: await store.now() };
}

export const mutants: readonly Mutant[] = [
  {
    name: "end does not look at the epoch",
    breaks: ["I5"],
    spoil(store) {
      const fence = withoutFence(store);
      return { ...store, end: (ending) => store.end({ ...ending, lease: fence(ending.lease) }) };
    },
  },
  {
    name: "record does not look at the epoch",
    breaks: ["I5"],
    spoil(store) {
      const fence = withoutFence(store);
      return {
        ...store,
        record: (recording) => store.record({ ...recording, lease: fence(recording.lease) }),
      };
    },
  },
  {
    name: "record hides that the lease is lost",
    breaks: ["I5"],
    spoil: (store) => ({
      ...store,
      record: (recording) => store.record(recording).catch((error: unknown) => answerAnyway(store, error)),
    }),
  },
  {
    name: "record acknowledges what it does not store",
    breaks: ["I3", "I4", "I14"],
    spoil(store) {
      let calls = 0;
      return {
        ...store,
        async record(recording) {
          if (++calls % 5 > 0) return store.record(recording);
          return { told: false, dueAt: new Map(), now: await store.now() };
        },
      };
    },
  },
  {
    name: "tell wakes nobody",
    breaks: ["I23"],
    spoil: (store) => ({
      ...store,
      async tell(message) {
        const told = store as Store & { insertMessage: (sent: typeof message) => Promise<void> };
        const run = await store.getRun(message.runId);
        if (run === null || run.endedAt !== null) return store.tell(message);
        await told.insertMessage(message);
        return "accepted";
      },
      subscribe: (listener) => store.subscribe((hint) => (hint.kind === "sent" ? undefined : listener(hint))),
      wakeTold: async () => {},
    }),
  },
  {
    name: "no holder is told of its messages",
    breaks: ["I8"],
    spoil: (store) => ({
      ...store,
      record: async (recording) => ({ ...(await store.record(recording)), told: false }),
      heartbeat: async (heartbeat) => ({ ...(await store.heartbeat(heartbeat)), told: [] }),
      subscribe: (listener) => store.subscribe((hint) => (hint.kind === "told" ? undefined : listener(hint))),
    }),
  },
  {
    name: "park forgets what the run wants",
    breaks: ["I17"],
    spoil: (store) => ({ ...store, park: (parking) => store.park({ ...parking, wants: [] }) }),
  },
  {
    name: "timers are set too short",
    breaks: ["I9"],
    spoil(store) {
      const shorten = <R extends { readonly events: readonly { readonly delayMs?: number }[] }>(
        recording: R,
      ): R => ({
        ...recording,
        events: recording.events.map((event) =>
          event.delayMs === undefined ? event : { ...event, delayMs: event.delayMs / 2 },
        ),
      });
      return {
        ...store,
        record: (recording) => store.record(shorten(recording)),
        park: (parking) => store.park(shorten(parking)),
      };
    },
  },
  {
    name: "the store says that it is later than it is",
    breaks: ["I9"],
    spoil: (store) => ({
      ...store,
      async record(recording) {
        const answer = await store.record(recording);
        return { ...answer, now: answer.now + 200 };
      },
      async park(parking) {
        const answer = await store.park(parking);
        return { ...answer, now: answer.now + 200 };
      },
    }),
  },
  {
    name: "starts do not look at the key",
    breaks: ["I12"],
    spoil: (store) => ({
      ...store,
      createRuns: (runs) => store.createRuns(runs.map((run) => ({ ...run, key: null }))),
    }),
  },
  {
    name: "tell does not look at the idempotency key",
    breaks: ["I1", "I10"],
    spoil: (store) => ({ ...store, tell: (message) => store.tell({ ...message, idempotencyKey: null }) }),
  },
  {
    name: "leases expire before their time",
    breaks: ["I6"],
    spoil: (store) => ({
      ...store,
      registerWorker: (worker) => store.registerWorker({ ...worker, leaseMs: worker.leaseMs / 4 }),
    }),
  },
  {
    name: "the sweep recovers nothing",
    breaks: ["I17"],
    spoil: (store) => ({
      ...store,
      async sweep() {
        return {
          expiredWorkers: 0,
          recovered: 0,
          failed: 0,
          expiredRuns: 0,
          rescued: 0,
          after: null,
          more: false,
        };
      },
    }),
  },
  {
    name: "a history is read without its last event",
    breaks: ["I3", "I4", "I14"],
    spoil: (store) => ({
      ...store,
      loadHistory: async (runId, afterSeq) => (await store.loadHistory(runId, afterSeq)).slice(0, -1),
    }),
  },
  {
    name: "waiters are told another result",
    breaks: ["I7"],
    spoil: (store) => ({
      ...store,
      async getEnds(runIds) {
        const ends = await store.getEnds(runIds);
        const wrong = { status: "completed", output: { json: '"wrong"', notes: null }, error: null } as const;
        return new Map([...ends].map(([run, end]) => [run, end === null ? null : wrong]));
      },
    }),
  },
];
