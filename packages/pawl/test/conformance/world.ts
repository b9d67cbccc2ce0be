import { expect } from "vitest";
import type { EventKind, RunEvent } from "../../src/core/event.ts";
import { createIds, type RunId } from "../../src/core/ids.ts";
import type { Payload } from "../../src/core/json.ts";
import type { EndStatus } from "../../src/core/run-status.ts";
import type {
  Claim,
  ClaimRequest,
  ClaimedRun,
  Ending,
  Lane,
  Lease,
  NewEvent,
  ParkAnswer,
  Parking,
  RecordAnswer,
} from "../../src/store/lease.ts";
import type { Message, NewMessage, TellAnswer, Topic } from "../../src/store/message.ts";
import { plainRun, type NewRun } from "../../src/store/run-record.ts";
import type {
  SnapshotEvent,
  SnapshotLease,
  SnapshotMessage,
  SnapshotParked,
  SnapshotReady,
  StoreSnapshot,
} from "../../src/store/snapshot.ts";
import type { NewWorker, SweepAnswer, SweepRequest } from "../../src/store/worker-record.ts";
import type { StoreHarness } from "./harness.ts";

/** The heartbeat every test worker is registered with. */
export const leaseMs = 15_000;

export const anyLane: Lane = {
  queue: "default",
  workflow: "checkout",
  version: 1,
  after: null,
  crashLimit: 3,
};

export function json(value: unknown, notes: string | null = null): Payload {
  return { json: JSON.stringify(value), notes };
}

export function event(seq: number, kind: EventKind, more: Partial<NewEvent> = {}): NewEvent {
  return { seq, kind, name: null, data: null, ...more };
}

/** Where a run is, with the row of its room. */
export type Place =
  | ({ readonly room: "ready" } & SnapshotReady)
  | ({ readonly room: "lease" } & SnapshotLease)
  | ({ readonly room: "parked" } & SnapshotParked)
  | { readonly room: "ended" };

/** A store and short ways to bring it into a state. What a test does not say is as plain as it can be. */
export interface World extends StoreHarness {
  readonly nextId: () => RunId;
  now(): Promise<number>;

  newRun(run?: Partial<NewRun>): NewRun;
  start(run?: Partial<NewRun>): Promise<RunId>;
  startChild(parentId: RunId, run?: Partial<NewRun>): Promise<RunId>;

  newWorker(worker?: Partial<NewWorker>): NewWorker;
  worker(worker?: Partial<NewWorker>): Promise<string>;
  claim(workerId: string, request?: Partial<ClaimRequest>): Promise<Claim>;
  /** Claims this very run, which must be the only one ready in its lane, for a worker of its own or the one given. */
  hold(runId: RunId, request?: Partial<ClaimRequest> & { readonly crashLimit?: number }): Promise<Lease>;
  /** Starts a run and holds it. */
  startHeld(run?: Partial<NewRun>): Promise<Lease>;
  /** Starts a run and parks it. */
  startParked(parking?: Partial<Parking>, run?: Partial<NewRun>): Promise<RunId>;

  record(lease: Lease, events: readonly NewEvent[], children?: readonly NewRun[]): Promise<RecordAnswer>;
  park(lease: Lease, parking?: Partial<Parking>): Promise<ParkAnswer>;
  parking(lease: Lease, parking?: Partial<Parking>): Promise<Parking>;
  end(lease: Lease, status?: EndStatus, ending?: Partial<Ending>): Promise<void>;
  ending(lease: Lease, status?: EndStatus, ending?: Partial<Ending>): Promise<Ending>;
  /** `look`: default a new one. */
  readInbox(lease: Lease, look?: number): Promise<readonly Message[]>;
  release(lease: Lease, readyAt?: number): Promise<void>;

  message(runId: RunId, topic: Topic, more?: Partial<NewMessage>): NewMessage;
  tell(runId: RunId, topic: Topic, more?: Partial<NewMessage>): Promise<TellAnswer>;
  /** Stores a message without waking anybody, and answers its id. */
  insert(runId: RunId, topic: Topic, more?: Partial<NewMessage>): Promise<string>;
  sweep(request?: Partial<SweepRequest>): Promise<SweepAnswer>;
  /** Lets every worker's lease run out, and sweeps. */
  crash(): Promise<SweepAnswer>;

  placeOf(runId: RunId): Promise<Place>;
  history(runId: RunId): Promise<readonly RunEvent[]>;
  kinds(runId: RunId): Promise<readonly EventKind[]>;
  inbox(runId: RunId): Promise<readonly SnapshotMessage[]>;
  /** Expects that nothing anywhere differs after this. */
  expectUnchanged<A>(act: () => Promise<A>): Promise<A>;
}

export function createWorld(harness: StoreHarness): World {
  const { store, clock } = harness;
  const ids = createIds(() => Date.UTC(2026, 0, 1), createSeededRandom());
  const nextId = (): RunId => ids.next();
  let looks = 0;
  const nextLook = (): number => (looks += 1);

  const world: World = {
    ...harness,
    nextId,
    now: () => store.now(),

    newRun: (run) => ({
      id: nextId(),
      workflow: "checkout",
      version: 1,
      queue: "default",
      ...plainRun,
      ...run,
    }),
    async start(run) {
      const wanted = world.newRun(run);
      expect(await store.createRuns([wanted])).toEqual([{ kind: "created", id: wanted.id }]);
      return wanted.id;
    },
    startChild: (parentId, run) => world.start({ parent: { id: parentId, request: "call:child#1" }, ...run }),

    newWorker: (worker) => ({
      id: nextId(),
      leaseMs,
      host: "here",
      pid: 7,
      queues: ["default"],
      concurrency: 10,
      ...worker,
    }),
    async worker(worker) {
      const wanted = world.newWorker(worker);
      await store.registerWorker(wanted);
      return wanted.id;
    },
    claim: (workerId, request) =>
      store.claimRuns({ workerId, lanes: [anyLane], limit: 10, suspects: false, begin: true, ...request }),
    async hold(runId, { crashLimit = 3, ...request } = {}) {
      const run = await store.getRun(runId);
      const lane: Lane = {
        queue: run!.queue,
        workflow: run!.workflow,
        version: run!.version,
        after: null,
        crashLimit,
      };
      const workerId = request.workerId ?? (await world.worker());
      const { runs } = await world.claim(workerId, { lanes: [lane], limit: 1, ...request });
      expect(runs.map((claimed) => claimed.runId)).toEqual([runId]);
      return leaseOf(workerId, runs[0]!);
    },
    startHeld: async (run) => world.hold(await world.start(run)),
    async startParked(parking, run) {
      const lease = await world.startHeld(run);
      expect(await world.park(lease, parking)).toMatchObject({ outcome: "parked" });
      return lease.runId;
    },

    record: (lease, events, children = []) => store.record({ lease, events, children }),
    async parking(lease, parking) {
      const events = parking?.events ?? [];
      const newest = (await world.history(lease.runId)).length;
      return {
        lease,
        events,
        children: [],
        look: nextLook(),
        lastSeq: Math.max(newest, ...events.map(({ seq }) => seq)),
        reason: "waiting",
        dueAt: null,
        delayMs: null,
        wants: [],
        attemptFailed: false,
        ...parking,
      };
    },
    park: async (lease, parking) => store.park(await world.parking(lease, parking)),
    async ending(lease, status = "completed", ending) {
      const seq = (await world.history(lease.runId)).length + 1;
      const run = await store.getRun(lease.runId);
      return {
        lease,
        parentId: run?.parentId ?? null,
        events: [event(seq, status, { attempt: run?.attempt ?? 1 })],
        children: [],
        status,
        output: status === "completed" ? json("done") : null,
        error: status === "failed" ? json({ name: "Error", message: "no" }) : null,
        ...ending,
      };
    },
    end: async (lease, status, ending) => store.end(await world.ending(lease, status, ending)),
    readInbox: (lease, look = nextLook()) => store.readInbox({ lease, look }),
    release: (lease, readyAt) => store.release(lease, readyAt),

    message: (runId, topic, more) => ({
      id: nextId(),
      runId,
      topic,
      data: null,
      idempotencyKey: null,
      ...more,
    }),
    tell: (runId, topic, more) => store.tell(world.message(runId, topic, more)),
    async insert(runId, topic, more) {
      const message = world.message(runId, topic, more);
      await harness.insertMessage(message);
      return message.id;
    },
    sweep: (request) => store.sweep({ limit: 100, after: null, ...request }),
    async crash() {
      await clock.advance(leaseMs);
      return world.sweep();
    },

    placeOf: async (runId) => placeIn(await harness.snapshot(), runId),
    history: (runId) => store.loadHistory(runId, 0),
    kinds: async (runId) => (await world.history(runId)).map(({ kind }) => kind),
    inbox: async (runId) => (await harness.snapshot()).inbox.filter((message) => message.runId === runId),
    async expectUnchanged(act) {
      const before = await harness.snapshot();
      const answer = await act();
      expect(await harness.snapshot()).toEqual(before);
      return answer;
    },
  };
  return world;
}

export function leaseOf(workerId: string, { runId, epoch, server, pack }: ClaimedRun): Lease {
  return { runId, epoch, workerId, server, pack };
}

/** The one room a run is in. */
export function placeIn(snapshot: StoreSnapshot, runId: RunId): Place {
  const isIt = (row: { readonly runId: RunId }): boolean => row.runId === runId;
  const places: Place[] = [
    ...snapshot.ready.filter(isIt).map((row) => ({ room: "ready" as const, ...row })),
    ...snapshot.lease.filter(isIt).map((row) => ({ room: "lease" as const, ...row })),
    ...snapshot.parked.filter(isIt).map((row) => ({ room: "parked" as const, ...row })),
  ];
  const run = snapshot.runs.find(({ id }) => id === runId);
  if (run && run.status !== null) places.push({ room: "ended" });
  expect(places, `run ${runId} is in one place`).toHaveLength(1);
  return places[0]!;
}

/** What holds in every store at every moment. */
export function expectSound(snapshot: StoreSnapshot): void {
  for (const { id } of snapshot.runs) {
    const place = placeIn(snapshot, id);
    const events: readonly SnapshotEvent[] = snapshot.events.filter(({ runId }) => runId === id);
    const seqs = events.map(({ seq }) => seq);
    expect(seqs, `seq of run ${id} is dense`).toEqual(seqs.map((_, index) => index + 1));
    if (place.room === "ready" || place.room === "parked") expect(place.lastSeq).toBe(seqs.length);
    const taken = snapshot.inbox.filter((message) => message.runId === id && message.takenSeq !== null);
    for (const message of taken) expect([0, ...seqs]).toContain(message.takenSeq);
  }
  const keyed = snapshot.runs.flatMap(({ id, key, continuedAs }) =>
    key === null || continuedAs !== null ? [] : [{ key, runId: id }],
  );
  expect(new Set(snapshot.keys)).toEqual(new Set(keyed));
}

/** Repeatable, so that a failing test fails again. */
function createSeededRandom(): { next(): number } {
  let state = 42;
  return {
    next() {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    },
  };
}
