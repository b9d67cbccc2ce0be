import type { Clock } from "../core/clock.ts";
import type { NewMessage } from "../store/message.ts";
import type { StoreSnapshot } from "../store/snapshot.ts";
import type { Store } from "../store/store.ts";
import { begin, claimRuns } from "./claim.ts";
import { redrive, reschedule, terminate } from "./control.ts";
import { createHeld, createRuns } from "./create.ts";
import { end, release } from "./end.ts";
import { fork } from "./fork.ts";
import { createHintBox, type Deliver } from "./hint-box.ts";
import { park } from "./park.ts";
import {
  countRuns,
  getEnds,
  getRun,
  listAttempts,
  listChildren,
  listPatches,
  listRuns,
  loadHistory,
  readBacklog,
} from "./read.ts";
import { readInbox, record } from "./record.ts";
import { getAnswer, hasWritten, lastPositions, readPublished, readStream } from "./showing.ts";
import { signalOrStart } from "./signal-or-start.ts";
import { takeSnapshot } from "./snapshot.ts";
import { createState, type State } from "./state.ts";
import { sweep } from "./sweep.ts";
import { insertMessage, tell, wakeTold } from "./tell.ts";
import { wakeDue } from "./wake-due.ts";
import { heartbeat, listWorkers, registerWorker, retireWorker } from "./workers.ts";

/** What a store in memory is made with. */
export interface MemoryStoreOptions {
  /** The store's clock; parts of a ms are cut off. */
  readonly clock: Clock;
  /** Hands hints to subscribers. Default: `queueMicrotask`. */
  readonly deliver?: Deliver;
}

/** A store that forgets everything with its process: the oracle for simulation, and fast for tests. */
export interface MemoryStore extends Store {
  /** Everything it holds, in a form that can be compared. */
  snapshot(): StoreSnapshot;
  /** Stores a message as a caller's own transaction does: with a hint `sent`, waking nobody. */
  insertMessage(message: NewMessage): Promise<void>;
  /** While a queue is paused, nothing is claimed from it. */
  setQueuePaused(queue: string, paused: boolean): Promise<void>;
}

/** Follows docs/store.md. Every transition runs to its end before anything else can, so each is atomic. */
export function createMemoryStore({ clock, deliver = queueMicrotask }: MemoryStoreOptions): MemoryStore {
  return storeOf(createState(() => Math.floor(clock.now()), createHintBox(deliver)));
}

/** The transitions on this state. Whoever also holds the state can look into it, or spoil it, between two of them. */
export function storeOf(state: State): MemoryStore {
  const { hints } = state;
  /** Runs at once, and answers later like any store. */
  const transition = async <A>(act: () => A): Promise<A> => {
    const answer = act();
    hints.flush();
    return answer;
  };

  return {
    now: () => transition(() => state.now()),
    upMs: () => Promise.resolve(0),
    createRuns: (runs) => transition(() => createRuns(state, runs)),
    createHeld: (run, holder) => transition(() => createHeld(state, run, holder)),
    claimRuns: (request) => transition(() => claimRuns(state, request)),
    begin: (lease) => transition(() => begin(state, lease)),
    record: (recording) => transition(() => record(state, recording)),
    readInbox: (look) => transition(() => readInbox(state, look)),
    park: (parking) => transition(() => park(state, parking)),
    end: (ending) => transition(() => end(state, ending)),
    release: (lease, readyAt) => transition(() => release(state, lease, readyAt)),
    tell: (message) => transition(() => tell(state, message)),
    signalOrStart: (call) => transition(() => signalOrStart(state, call)),
    wakeTold: (runIds) => transition(() => wakeTold(state, runIds)),
    terminate: (runId, data) => transition(() => terminate(state, runId, data)),
    redrive: (runIds, terms) => transition(() => redrive(state, runIds, terms)),
    fork: (run, history) => transition(() => fork(state, run, history)),
    reschedule: (rescheduling) => transition(() => reschedule(state, rescheduling)),
    wakeDue: (limit, waker) => transition(() => wakeDue(state, limit, waker)),
    registerWorker: (worker) => transition(() => registerWorker(state, worker)),
    heartbeat: (request) => transition(() => heartbeat(state, request)),
    retireWorker: (workerId) => transition(() => retireWorker(state, workerId)),
    sweep: (request) => transition(() => sweep(state, request)),
    getRun: (runId) => transition(() => getRun(state, runId)),
    getEnds: (runIds) => transition(() => getEnds(state, runIds)),
    listRuns: (filter) => transition(() => listRuns(state, filter)),
    findKey: (key) => transition(() => state.keys.get(key) ?? null),
    countRuns: () => transition(() => countRuns(state)),
    readBacklog: (most) => transition(() => readBacklog(state, most)),
    listChildren: (runId, after, limit) => transition(() => listChildren(state, runId, after, limit)),
    listAttempts: (runId) => transition(() => listAttempts(state, runId)),
    listPatches: (workflow, version) => transition(() => listPatches(state, workflow, version)),
    loadHistory: (runId, afterSeq) => transition(() => loadHistory(state, runId, afterSeq)),
    readPublished: (runId, key) => transition(() => readPublished(state, runId, key)),
    getAnswers: (questions) => transition(() => questions.map((question) => getAnswer(state, question))),
    readStream: (place, limit) => transition(() => readStream(state, place, limit)),
    findWritten: (places) => transition(() => places.map((place) => hasWritten(state, place))),
    lastPositions: (runId, names) => transition(() => lastPositions(state, runId, names)),
    listWorkers: (filter) => transition(() => listWorkers(state, filter)),
    subscribe: (listener) => hints.subscribe(listener),

    snapshot: () => takeSnapshot(state),
    insertMessage: (message) => transition(() => insertMessage(state, message)),
    setQueuePaused: (queue, paused) =>
      transition(() => {
        if (paused) state.pausedQueues.add(queue);
        else state.pausedQueues.delete(queue);
      }),
  };
}
