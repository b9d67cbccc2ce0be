import { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { RetryPolicy } from "../core/retry.ts";
import type { EndStatus, ParkReason } from "../core/run-status.ts";
import type { Mark } from "../store/lease.ts";
import type { Topic } from "../store/message.ts";
import type { StreamRecord } from "../store/showing.ts";
import type { LongStep, NewWorker, WorkerRecord } from "../store/worker-record.ts";
import type { HintBox } from "./hint-box.ts";
import { SortedList, compareText } from "./sorted-list.ts";

/** What every room row carries, from room to room. */
export interface Numbers {
  readonly epoch: number;
  readonly lastSeq: number;
  readonly attempt: number;
  readonly failures: number;
  readonly crashes: number;
  readonly suspicion: number;
}

interface ReadyRoom extends Numbers {
  readonly kind: "ready";
  readonly mark: Mark;
  /** Not claimable any more from then on; null once it has begun. */
  readonly expiresAt: number | null;
  told: boolean;
}

export interface LeaseRoom extends Numbers {
  readonly kind: "lease";
  readonly workerId: string;
  readonly claimedAt: number;
  begunAt: number | null;
  readonly crashLimit: number;
  told: boolean;
  /** The holder's last look. */
  looks: number;
}

export interface ParkedRoom extends Numbers {
  readonly kind: "parked";
  readonly reason: ParkReason;
  readonly dueAt: number | null;
  readonly wants: readonly Topic[];
  /** The timer that fires then, by its request; null: none does. */
  readonly fires: string | null;
}

export type Room = ReadyRoom | LeaseRoom | ParkedRoom;

export interface InboxMessage {
  readonly id: string;
  readonly topic: Topic;
  readonly name: string | null;
  readonly data: Payload | null;
  readonly idempotencyKey: string | null;
  readonly sentAt: number;
  /** The run it was written for, where that is another. */
  readonly sentTo: RunId | null;
  /** The event that took it; 0: taken without one; null: unread. */
  takenSeq: number | null;
  /** For updates: the event that answered it. */
  answerSeq: number | null;
}

/** How a run ended. */
export interface EndedRun {
  readonly status: EndStatus;
  readonly output: Payload | null;
  readonly error: Payload | null;
  readonly endedAt: number;
  /** As they were in its last room. */
  readonly epoch: number;
  readonly attempt: number;
}

/** One run with all that is known of it. Its one `room` is what makes it be in exactly one. */
export interface Run {
  readonly id: RunId;
  readonly workflow: string;
  readonly version: number;
  readonly queue: string;
  priority: number;
  readonly input: Payload | null;
  readonly isRaw: boolean;
  readonly key: string | null;
  readonly tags: readonly string[];
  readonly retry: RetryPolicy | null;
  startAt: number | null;
  expiresAt: number | null;
  deadlineAt: number | null;
  readonly parentId: RunId | null;
  readonly parentRequest: string | null;
  readonly rootId: RunId;
  readonly depth: number;
  readonly isDetached: boolean;
  readonly forkedFrom: RunId | null;
  /** The first run of its chain. */
  readonly firstId: RunId;
  /** The run that goes on from this one. */
  continuedAs: RunId | null;
  readonly createdAt: number;

  /** Null once it has ended. */
  room: Room | null;
  end: EndedRun | null;

  readonly events: Map<number, RunEvent>;
  /** The highest `seq` in `events`. */
  newestSeq: number;
  readonly inbox: Map<string, InboxMessage>;
  readonly unread: SortedList<InboxMessage>;
  /** Of the whole chain. */
  readonly idempotencyKeys: Set<string>;
  readonly childIds: Set<RunId>;
  /** By name; the first has position 1. */
  readonly streams: Map<string, StreamRecord[]>;
}

export interface Worker {
  readonly id: string;
  leaseMs: number;
  readonly asRegistered: NewWorker;
  readonly startedAt: number;
  heardAt: number;
  longSteps: readonly LongStep[];
  /** The last of its samples. */
  sample: WorkerRecord["sample"];
  endedAt: number | null;
  /** Begun leases when it was found dead. */
  heldAtEnd: number | null;
}

/** A run that waits for an instant. */
interface Due {
  readonly at: number;
  readonly runId: RunId;
}

/** Everything the store holds. The sorted lists only make finding fast; `rooms.ts` and `inbox.ts` keep them. */
export interface State {
  now(): number;
  readonly hints: HintBox;
  readonly runs: Map<RunId, Run>;
  readonly keys: Map<string, RunId>;
  readonly workers: Map<string, Worker>;
  readonly pausedQueues: Set<string>;

  readonly runIds: SortedList<RunId>;
  /** The ready runs of each lane, suspects apart, by mark. */
  readonly lanes: Map<string, SortedList<Mark>>;
  /** Ready runs that have not begun and can expire. */
  readonly expiring: SortedList<Due>;
  readonly leased: SortedList<RunId>;
  readonly due: SortedList<Due>;
  readonly withUnread: SortedList<RunId>;
}

export function createState(now: () => number, hints: HintBox): State {
  return {
    now,
    hints,
    runs: new Map(),
    keys: new Map(),
    workers: new Map(),
    pausedQueues: new Set(),
    runIds: new SortedList(compareText),
    lanes: new Map(),
    expiring: new SortedList(compareDue),
    leased: new SortedList(compareText),
    due: new SortedList(compareDue),
    withUnread: new SortedList(compareText),
  };
}

/** A run that is known to exist, because a list of ids holds it. */
export function runOf(state: State, runId: RunId): Run {
  const run = state.runs.get(runId);
  if (!run) throw new PawlError("INTERNAL", `Run ${runId} is listed but not there: please report this.`);
  return run;
}

function compareDue(a: Due, b: Due): number {
  return a.at - b.at || compareText(a.runId, b.runId);
}
