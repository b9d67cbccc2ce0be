import type { RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { Hint } from "./hint.ts";
import type {
  Claim,
  ClaimRequest,
  CreateHeldAnswer,
  DueAnswer,
  Ending,
  Holder,
  Lease,
  Look,
  ParkAnswer,
  Parking,
  RecordAnswer,
  Recording,
  Waker,
} from "./lease.ts";
import type { Message, NewMessage, TellAnswer } from "./message.ts";
import type {
  AttemptRecord,
  Backlog,
  ChildRecord,
  CreateAnswer,
  ForkedEvent,
  FoundEnd,
  NewRun,
  PatchUse,
  Rescheduling,
  RunCount,
  RunFilter,
  RunPage,
  RunRecord,
} from "./run-record.ts";
import type { AnswerRecord, PublishedRecord, Question, StreamPage, StreamPlace } from "./showing.ts";
import type { SignalOrStart, SignalOrStartAnswer } from "./signal-or-start.ts";
import type {
  Heartbeat,
  HeartbeatAnswer,
  NewWorker,
  SweepAnswer,
  SweepRequest,
  WorkerFilter,
  WorkerRecord,
} from "./worker-record.ts";

/** `redriven`: lives again. `live`: has not ended, or has lived again since. `completed`: nothing is left to do. */
export type RedriveAnswer = "redriven" | "live" | "completed" | "missing";

export interface RedriveTerms {
  /** `start`: nothing is remembered, and a completed run may live again too. Default: what was finished is kept. */
  readonly from?: "start";
  /** Only if they still have the end of these instants: a repeated call then gives one life. Default: any end. */
  readonly endedAt?: ReadonlyMap<RunId, number>;
}

/**
 * Everything that can happen to a run, as named transitions. Each is atomic, fenced where a holder makes it, and
 * safe to repeat when its answer was lost. Writes by a holder reject with `LEASE_LOST` when the lease is gone, and
 * have then changed nothing. All instants are the store's own time in ms.
 */
export interface Store {
  /** The store's clock. */
  now(): Promise<number>;
  /** How long the store has surely been there for all to be heard by, in ms. */
  upMs(): Promise<number>;

  // Starting
  /** Creates all or none of these runs: a conflict withholds the others. One whose key an equal run has is answered, not created. */
  createRuns(runs: readonly NewRun[]): Promise<readonly CreateAnswer[]>;
  /** Creates a run that this worker holds from its start, as if it had claimed it; unless it could not claim it now, or has ended. */
  createHeld(run: NewRun, holder: Holder): Promise<CreateHeldAnswer>;

  // Holding
  /** Moves up to `limit` claimable runs from `ready` to this worker's leases, by priority, then age. Rejects with `WORKER_EXPIRED`. */
  claimRuns(request: ClaimRequest): Promise<Claim>;
  /** Marks a run that was claimed without beginning as begun: from here on its code may have run. */
  begin(lease: Lease): Promise<void>;
  /** Appends facts to a held run. */
  record(recording: Recording): Promise<RecordAnswer>;
  /** Unread messages of a held run, oldest first; clears its `told`, unless this or a later look has. */
  readInbox(look: Look): Promise<readonly Message[]>;
  /** Records, then lets go of the run until it is due or told; unless it already is. */
  park(parking: Parking): Promise<ParkAnswer>;
  /**
   * Ends the run, tells its parent, wakes whoever waits, and asks its children to stop unless it completed or they are
   * detached. With `next` another run takes its place, claimable at once, and the parent hears nothing.
   */
  end(ending: Ending): Promise<void>;
  /**
   * Gives the run back as it is: claimable at once, no attempt spent. `readyAt`: its code has not been called under this lease, and it is
   * claimable since then; under its first lease it expires as if nobody had held it.
   */
  release(lease: Lease, readyAt?: number): Promise<void>;

  // Telling
  /** Stores a message and wakes its run if it wants it. A cancelled run that never began ends at once. */
  tell(message: NewMessage): Promise<TellAnswer>;
  /** Looks at these runs' inboxes again and wakes those that want what is there: for messages stored in a caller's transaction. */
  wakeTold(runIds: readonly RunId[]): Promise<void>;

  /** Tells the run that has a key, or creates it with the message in its inbox. */
  signalOrStart(call: SignalOrStart): Promise<SignalOrStartAnswer>;

  // Control
  /** Ends a run at once, without its code. `data`: why, for the history. */
  terminate(runId: RunId, data: Payload | null): Promise<"terminated" | "ended" | "missing">;
  /** Gives ended runs that did not complete another life. */
  redrive(runIds: readonly RunId[], terms?: RedriveTerms): Promise<ReadonlyMap<RunId, RedriveAnswer>>;
  /** Creates a run that begins with this history. */
  fork(run: NewRun, history: readonly ForkedEvent[]): Promise<CreateAnswer>;
  /** Changes priority or time of a run that nobody holds. `begun`: too late for that. */
  reschedule(rescheduling: Rescheduling): Promise<"rescheduled" | "begun" | "ended" | "missing">;

  // Time
  /**
   * Makes parked runs whose time has come claimable. Those of its lanes that the waker's worker could claim now it holds at once, as if
   * it had claimed them; where such a run waits, is told nothing and has time left, the timer that it waits for fires by that.
   */
  wakeDue(limit: number, waker?: Waker): Promise<DueAnswer>;

  // Workers
  registerWorker(worker: NewWorker): Promise<void>;
  heartbeat(heartbeat: Heartbeat): Promise<HeartbeatAnswer>;
  /** The worker has stopped: whatever it still holds is given back, no attempt spent. */
  retireWorker(workerId: string): Promise<void>;
  /** Recovery, by every worker, for ever: dead workers' runs, expired runs, overlooked messages. */
  sweep(request: SweepRequest): Promise<SweepAnswer>;

  // Reading
  getRun(runId: RunId): Promise<RunRecord | null>;
  /** How these runs ended: null while one lives, no entry where there is none. Cheap: for waiters. */
  getEnds(runIds: readonly RunId[]): Promise<ReadonlyMap<RunId, FoundEnd | null>>;
  listRuns(filter: RunFilter): Promise<RunPage>;
  /** The run that has this key. */
  findKey(key: string): Promise<RunId | null>;
  countRuns(most: number): Promise<readonly RunCount[]>;
  readBacklog(most: number): Promise<readonly Backlog[]>;
  /** The runs that this one has started, by id after this one; at most `limit`. */
  listChildren(runId: RunId, after: RunId | null, limit: number): Promise<readonly ChildRecord[]>;
  /** Finished attempts, oldest first. */
  listAttempts(runId: RunId): Promise<readonly AttemptRecord[]>;
  /** The patches that runs of this workflow have come by, the oldest first. */
  listPatches(workflow: string, version: number): Promise<readonly PatchUse[]>;
  /** Events after `afterSeq`, in order. `lastSeq`: about how far they go, where that is known. */
  loadHistory(runId: RunId, afterSeq: number, lastSeq?: number): Promise<readonly RunEvent[]>;
  /** The last value that the run published under this key, or under each, in order of keys. */
  readPublished(runId: RunId, key: string | null): Promise<readonly PublishedRecord[]>;
  /** What has become of these updates, in order. Cheap: for waiters. */
  getAnswers(questions: readonly Question[]): Promise<readonly AnswerRecord[]>;
  /** What follows there in a stream; at most `limit` items, and some bytes. Null: there is no such run. */
  readStream(place: StreamPlace, limit: number): Promise<StreamPage | null>;
  /** Whether anything follows in these streams, or their runs have ended, in order. Cheap: for waiters. */
  findWritten(places: readonly StreamPlace[]): Promise<readonly boolean[]>;
  /** The last position in each of these streams of a run; no entry: nothing was written. */
  lastPositions(runId: RunId, names: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Workers that have not ended, and those that ended lately; newest first. */
  listWorkers(filter: WorkerFilter): Promise<readonly WorkerRecord[]>;

  // Hints
  /** Calls back with hints until the returned function is called. A hint may come late, twice or never. */
  subscribe(listener: (hint: Hint) => void): () => void;
}
