import { PawlError } from "../../packages/pawl/src/core/error.ts";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Room, State } from "../../packages/pawl/src/memory/state.ts";
import type { ClaimedRun, Lease, RecordAnswer } from "../../packages/pawl/src/store/lease.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import type { Spoil } from "./schedule.ts";

/** A mistake in the store that the simulation must find, by one of these invariants. */
export interface Mutant {
  readonly name: string;
  readonly breaks: readonly string[];
  readonly spoil: Spoil;
}

/** Writes under whichever lease is valid, whoever asks. */
function withoutFence(store: Store): (lease: Lease) => Lease {
  const newest = new Map<string, Lease>();
  const watched = withClaims(store, (runs, workerId) => {
    for (const { runId, epoch } of runs) newest.set(runId, { runId, epoch, workerId });
    return runs;
  });
  Object.assign(store, watched);
  return (lease) => newest.get(lease.runId) ?? lease;
}

/** Both ways in which a worker takes runs that are there. */
function withClaims(
  store: Store,
  change: (runs: readonly ClaimedRun[], workerId: string) => readonly ClaimedRun[],
): Pick<Store, "claimRuns" | "wakeDue"> {
  const before = { ...store };
  return {
    async claimRuns(request) {
      const claim = await before.claimRuns(request);
      return { ...claim, runs: change(claim.runs, request.workerId) };
    },
    async wakeDue(limit, waker) {
      const answer = await before.wakeDue(limit, waker);
      return { ...answer, held: change(answer.held, waker?.workerId ?? "") };
    },
  };
}

async function answerAnyway(store: Store, error: unknown): Promise<RecordAnswer> {
  if (!PawlError.is(error, "LEASE_LOST")) throw error;
  return { told: false, dueAt: new Map(), now: await store.now() };
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** The run's room, to be spoilt. */
function roomOf(state: State, runId: RunId): Writable<Room> | null {
  return state.runs.get(runId)?.room ?? null;
}

/** After each redrive, spoils every run that lives again. */
function afterRedrive(store: Store, spoil: (runId: RunId) => void): Store {
  return {
    ...store,
    async redrive(runIds, terms) {
      const answers = await store.redrive(runIds, terms);
      for (const [runId, answer] of answers) if (answer === "redriven") spoil(runId);
      return answers;
    },
  };
}

const mistakesOfHolding: readonly Mutant[] = [
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
      const shorten = <R extends { readonly events: readonly { readonly delayMs?: number | undefined }[] }>(
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
      heartbeat: (beat) => store.heartbeat(withShortLease(beat)),
      claimRuns: (request) => store.claimRuns(withShortLease(request)),
      wakeDue: (limit, waker) => store.wakeDue(limit, waker && withShortLease(waker)),
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

/** Those in what callers do to runs: starting, ending, redriving and rescheduling them. */
const mistakesOfControl: readonly Mutant[] = [
  {
    name: "redrive counts the epoch from 0 again",
    breaks: ["I5"],
    spoil: (store, state) =>
      afterRedrive(store, (runId) => Object.assign(roomOf(state, runId) ?? {}, { epoch: 0 })),
  },
  {
    name: "redrive counts attempts from 1 again",
    breaks: ["I3"],
    spoil: (store, state) =>
      afterRedrive(store, (runId) => Object.assign(roomOf(state, runId) ?? {}, { attempt: 1 })),
  },
  {
    name: "redrive keeps what was asked of the last life",
    breaks: ["I14"],
    spoil: (store, state) => ({
      ...store,
      async redrive(runIds, terms) {
        const unread = runIds.flatMap((runId) => [...(state.runs.get(runId)?.unread.list() ?? [])]);
        const answers = await store.redrive(runIds, terms);
        for (const message of unread) {
          if (message.topic !== "cancel" || message.takenSeq !== 0) continue;
          const run = [...state.runs.values()].find(({ inbox }) => inbox.get(message.id) === message);
          message.takenSeq = null;
          run?.unread.add(message);
          if (run !== undefined) state.withUnread.add(run.id);
        }
        return answers;
      },
    }),
  },
  {
    name: "redrive does not count failures from 0 again",
    breaks: ["I3", "I14"],
    spoil(store, state) {
      const failures = new Map<RunId, number>();
      const claims = withClaims(store, (runs) => {
        for (const { runId, failures: failed } of runs) failures.set(runId, failed);
        return runs;
      });
      const claiming: Store = { ...store, ...claims };
      return afterRedrive(claiming, (runId) =>
        Object.assign(roomOf(state, runId) ?? {}, { failures: (failures.get(runId) ?? 0) + 1 }),
      );
    },
  },
  {
    name: "redrive forgets how children ended",
    breaks: ["I17"],
    spoil: (store, state) =>
      afterRedrive(store, (runId) => {
        const run = state.runs.get(runId);
        for (const message of run?.unread.list() ?? []) {
          if (run === undefined || message.topic !== "child") continue;
          run.unread.remove(message);
          run.inbox.delete(message.id);
          if (run.unread.size === 0) state.withUnread.remove(runId);
        }
      }),
  },
  {
    name: "redrive keeps a deadline that has passed",
    breaks: ["I17", "I9", "I14"],
    spoil: (store, state) => ({
      ...store,
      async redrive(runIds, terms) {
        const deadlines = new Map(runIds.map((runId) => [runId, state.runs.get(runId)?.deadlineAt ?? null]));
        const answers = await store.redrive(runIds, terms);
        for (const [runId, deadlineAt] of deadlines) {
          const run = state.runs.get(runId);
          if (run !== undefined && answers.get(runId) === "redriven") run.deadlineAt = deadlineAt;
        }
        return answers;
      },
    }),
  },
  {
    name: "redrive is acknowledged and does nothing",
    breaks: ["I1"],
    spoil: (store) => ({
      ...store,
      redrive: async (runIds) => new Map(runIds.map((runId) => [runId, "redriven"])),
    }),
  },
  {
    name: "redrive revives what has completed",
    breaks: ["I7"],
    spoil: (store, state) => ({
      ...store,
      redrive(runIds, terms) {
        for (const runId of runIds) {
          const run = state.runs.get(runId);
          if (run?.end?.status === "completed") run.end = { ...run.end, status: "failed" };
        }
        return store.redrive(runIds, terms);
      },
    }),
  },
  {
    name: "terminate leaves the lease",
    breaks: ["I5", "I8"],
    spoil(store) {
      const held = new Map<RunId, number>();
      const terminated = new Map<RunId, number>();
      return {
        ...store,
        ...withClaims(store, (runs) => {
          for (const { runId, epoch } of runs) held.set(runId, epoch);
          return runs;
        }),
        async terminate(runId, data) {
          const answer = await store.terminate(runId, data);
          if (answer === "terminated") terminated.set(runId, held.get(runId) ?? 0);
          return answer;
        },
        record: (recording) =>
          store.record(recording).catch((error: unknown) => {
            const { runId, epoch } = recording.lease;
            if (terminated.get(runId) !== epoch) throw error;
            return answerAnyway(store, error);
          }),
      };
    },
  },
  {
    name: "terminate does not tell the parent",
    breaks: ["I17"],
    spoil: (store, state) => ({
      ...store,
      terminate(runId, data) {
        const parentId = state.runs.get(runId)?.parentId ?? null;
        const parent = parentId === null ? undefined : state.runs.get(parentId);
        if (parentId !== null) state.runs.delete(parentId);
        const answered = store.terminate(runId, data);
        if (parentId !== null && parent !== undefined) state.runs.set(parentId, parent);
        return answered;
      },
    }),
  },
  {
    name: "terminate leaves the children alone",
    breaks: ["I8", "I17"],
    spoil: (store, state) => ({
      ...store,
      terminate(runId, data) {
        const childIds = state.runs.get(runId)?.childIds ?? new Set();
        const kept = [...childIds];
        childIds.clear();
        const answered = store.terminate(runId, data);
        for (const childId of kept) childIds.add(childId);
        return answered;
      },
    }),
  },
  {
    name: "terminate is acknowledged and does nothing",
    breaks: ["I1"],
    spoil: (store) => ({ ...store, terminate: async () => "terminated" }),
  },
  {
    name: "reschedule forgets that messages are there",
    breaks: ["I23"],
    spoil: (store, state) => ({
      ...store,
      async reschedule(rescheduling) {
        const answer = await store.reschedule(rescheduling);
        const room = roomOf(state, rescheduling.runId);
        if (room?.kind === "ready") room.told = false;
        return answer;
      },
    }),
  },
  {
    name: "reschedule brings every start forward",
    breaks: ["I9"],
    spoil: (store) => ({
      ...store,
      reschedule: (rescheduling) =>
        store.reschedule(
          rescheduling.startAt === undefined ? rescheduling : { ...rescheduling, startAt: null },
        ),
    }),
  },
  {
    name: "starts do not look at the delay",
    breaks: ["I9"],
    spoil: (store) => ({
      ...store,
      createRuns: (runs) => store.createRuns(runs.map((run) => ({ ...run, startAt: null }))),
    }),
  },
  {
    name: "resume forgets the start",
    breaks: ["I9"],
    spoil: (store, state) => ({
      ...store,
      async tell(message) {
        const run = state.runs.get(message.runId);
        if (message.topic === "resume" && run !== undefined) run.startAt = null;
        return store.tell(message);
      },
    }),
  },
  {
    name: "pause forgets the deadline",
    breaks: ["I17"],
    spoil(store, state) {
      const forget = (runId: RunId): void => {
        const room = roomOf(state, runId);
        if (room?.kind !== "parked" || room.reason !== "paused" || room.dueAt === null) return;
        state.due.remove({ at: room.dueAt, runId });
        room.dueAt = null;
      };
      return {
        ...store,
        async tell(message) {
          const answer = await store.tell(message);
          forget(message.runId);
          return answer;
        },
        async park(parking) {
          const answer = await store.park(parking);
          forget(parking.lease.runId);
          return answer;
        },
      };
    },
  },
  {
    name: "claims do not look at the expiry",
    breaks: ["I9"],
    spoil: (store, state) => ({
      ...store,
      async claimRuns(request) {
        const rooms = [...state.runs.values()].flatMap(({ room }) => (room?.kind === "ready" ? room : []));
        const expiries = rooms.map(({ expiresAt }) => expiresAt);
        const spoilt: Writable<(typeof rooms)[number]>[] = rooms;
        for (const room of spoilt) room.expiresAt = null;
        const claiming = store.claimRuns(request);
        for (const [index, room] of spoilt.entries()) room.expiresAt = expiries[index] ?? null;
        return claiming;
      },
    }),
  },
  {
    name: "nothing ever expires",
    breaks: ["I17"],
    spoil: (store, state) => ({
      ...store,
      async sweep(request) {
        const kept = state.expiring.list();
        for (const due of kept) state.expiring.remove(due);
        const answer = store.sweep(request);
        for (const due of kept) if (roomOf(state, due.runId)?.kind === "ready") state.expiring.add(due);
        return answer;
      },
    }),
  },
  {
    name: "a withheld start keeps its keys",
    breaks: ["I12"],
    spoil: (store, state) => ({
      ...store,
      async createRuns(runs) {
        const answers = await store.createRuns(runs);
        for (const [index, { key, id }] of runs.entries()) {
          if (answers[index]?.kind === "withheld" && key !== null && !state.keys.has(key))
            state.keys.set(key, id);
        }
        return answers;
      },
    }),
  },
  {
    name: "a withheld start creates what is not in conflict",
    breaks: ["I12"],
    spoil: (store) => ({
      ...store,
      async createRuns(runs) {
        const answers = await store.createRuns(runs);
        await store.createRuns(runs.filter((_, index) => answers[index]?.kind === "withheld"));
        return answers;
      },
    }),
  },
  {
    name: "a run that must be new need not be",
    breaks: ["I12"],
    spoil: (store) => ({
      ...store,
      createRuns: (runs) => store.createRuns(runs.map((run) => ({ ...run, mustBeNew: false }))),
    }),
  },
  {
    name: "a start forgets its own retries",
    breaks: ["I14", "I3"],
    spoil: (store) => ({
      ...store,
      ...withClaims(store, (runs) => runs.map((run) => ({ ...run, retry: null }))),
    }),
  },
];

export const mutants: readonly Mutant[] = [...mistakesOfHolding, ...mistakesOfControl];

function withShortLease<Asked extends { readonly leaseMs?: number }>(asked: Asked): Asked {
  return asked.leaseMs === undefined ? asked : { ...asked, leaseMs: asked.leaseMs / 4 };
}
