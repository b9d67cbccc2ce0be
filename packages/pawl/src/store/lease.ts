import type { EventKind, RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { RetryPolicy } from "../core/retry.ts";
import type { ParkReason } from "../core/run-status.ts";
import type { Message, Topic } from "./message.ts";
import type { CreateAnswer, NewRun, RunEnd } from "./run-record.ts";
import type { NewStreamItem } from "./showing.ts";

/** The fence: every write by a holder names all three, and does nothing, anywhere, once they no longer match. */
export interface Lease {
  readonly runId: RunId;
  readonly epoch: number;
  readonly workerId: string;
  /** As the claim said. */
  readonly server?: number | undefined;
  /** As the claim said. */
  readonly pack?: Pack | undefined;
}

/** Runs that were claimed under one lease. */
export interface Pack {
  readonly id: string;
  /** How many they were. */
  readonly size: number;
}

/** A place in the order of `ready`: priority, then age, then id. */
export interface Mark {
  readonly priority: number;
  readonly readyAt: number;
  readonly runId: RunId;
}

/** One kind of work a worker takes: a workflow it has registered, on a queue it serves. */
export interface Lane {
  readonly queue: string;
  readonly workflow: string;
  readonly version: number;
  /**
   * Look only behind this place, where the last claim ended; null looks from the beginning. Where it stands among runs that were
   * started together, those before it may be brought, too.
   */
  readonly after: Mark | null;
  /** Crashes alone in a worker before the run fails; 0 fails at the first crash, alone or not. */
  readonly crashLimit: number;
}

/** The first claim of a run. */
export const firstEpoch = 1;

/** A worker that would hold a run from its start. */
export interface Holder {
  readonly workerId: string;
  /** As in a claim. */
  readonly leaseMs: number;
  /** Of the run's workflow. Never 0: such a run begins by itself. */
  readonly crashLimit: number;
}

export interface ClaimRequest {
  readonly workerId: string;
  /** Its lease while it holds something: a worker that rests has another until it claims something. Default: as it is. */
  readonly leaseMs?: number;
  readonly lanes: readonly Lane[];
  readonly limit: number;
  /** True: only runs suspected of killing their worker, and at most one. False: only the others. */
  readonly suspects: boolean;
  /**
   * False: held but not begun, so that a crash costs it nothing until `begin` says otherwise. So is a run whose crash
   * limit is 0 in any case.
   */
  readonly begin: boolean;
}

/** A run that this worker now holds, with what its code needs to start or go on. */
export interface ClaimedRun {
  readonly runId: RunId;
  readonly epoch: number;
  readonly workflow: string;
  readonly version: number;
  readonly queue: string;
  readonly key: string | null;
  readonly parentId: RunId | null;
  readonly rootId: RunId;
  readonly depth: number;
  readonly input: Payload | null;
  /** The claim's answer was too large for its input: `getRun` has it. */
  readonly isInputLeftOut: boolean;
  /** The input has not been parsed by the workflow's schema, unless the history says so. */
  readonly isRaw: boolean;
  readonly tags: readonly string[];
  /** When to try again, for this run alone; null: as its workflow says. */
  readonly retry: RetryPolicy | null;
  /** Events recorded so far; 0 means there is no history to load. */
  readonly lastSeq: number;
  /** Number of this execution, from 1: one more after each failed or crashed attempt, never after a wake-up. */
  readonly attempt: number;
  /** Failed attempts so far, which the retry policy counts. */
  readonly failures: number;
  /** How often a worker has died that held it since it last parked; 2 at least if one held nothing else. From 2 on it is a suspect. */
  readonly suspicion: number;
  /** Unread messages may be there: read the inbox before starting anything. */
  readonly told: boolean;
  readonly createdAt: number;
  readonly deadlineAt: number | null;
  /** By the store's clock: a holder knows its time from the beginning. */
  readonly claimedAt: number;
  /** Where it stood in its lane. */
  readonly mark: Mark;
  /**
   * The server that has answered, as it names itself for as long as it runs: what others are asked to add is compared with what they
   * have. Default: there is only one.
   */
  readonly server?: number | undefined;
  /** What it shares a lease with, at the time of the claim: those of a pack leave together at the least cost. Default: nothing. */
  readonly pack?: Pack | undefined;
  /** The timer that fired as the run was woken: its last fact. Default: none did. */
  readonly fired?: RunEvent | undefined;
  /** All of its facts, `fired` among them, where they are few and small, and the store had them at hand. Default: `loadHistory` has them. */
  readonly history?: readonly RunEvent[] | undefined;
}

/** Of a history that comes with the run. */
export const mostFactsAlong = 8;
/** Of what one of them carries, and as much again of its notes. */
export const mostBytesAlong = 500;

/** What became of a run that a worker would hold from its start. */
export interface CreateHeldAnswer extends CreateAnswer {
  /** Null: it is not held, and ready as any other where it was created. */
  readonly held: ClaimedRun | null;
}

/** Of which lanes they are for whom runs are woken, and who would hold these at once. */
export interface Waker extends Pick<ClaimRequest, "leaseMs" | "lanes"> {
  /** Holds at once what it could claim. Null: nobody does. */
  readonly workerId: string | null;
  /** Holds no more than so many, and leaves the others of its lanes for later. Default: as many as are woken. */
  readonly most?: number;
  /** Whether short histories come along with what it holds. Default: yes. */
  readonly histories?: boolean;
  /** It leaves what is of none of its lanes to those who can hold it, until that has been due for so long. Default: 0. */
  readonly sparesMs?: number;
}

export interface DueAnswer {
  /** How many have left `parked`. */
  readonly woken: number;
  /** Those of them that the worker holds now. */
  readonly held: readonly ClaimedRun[];
  /** More may be due than it has looked at, or taken. */
  readonly hasMore: boolean;
  /** The worker's lease has begun anew, as with a claim. */
  readonly isRenewed: boolean;
  /** When there is more to wake, as far as it knows. */
  readonly nextDueAt: number | null;
  /** Database time, ms. */
  readonly now: number;
}

export interface Claim {
  readonly runs: readonly ClaimedRun[];
  /** Suspects are waiting in these lanes. */
  readonly suspectsWaiting: boolean;
  /** Database time, ms. */
  readonly now: number;
  /** More may be claimable: somebody else was taking of it at that moment. */
  readonly isCutShort?: true;
  /** More is claimable, though fewer were claimed than were asked for. */
  readonly hasLeft?: true;
}

/** A fact to append. The holder numbers it: repeating a write repeats the same `seq`, and changes nothing. */
export interface NewEvent {
  readonly seq: number;
  readonly kind: EventKind;
  readonly name: string | null;
  readonly attempt?: number | undefined;
  readonly beganAt?: number | undefined;
  /** For `timer_set`: fires this long after the database's time of this write… */
  readonly delayMs?: number | undefined;
  /** …or at this instant. */
  readonly dueAt?: number | undefined;
  readonly data: Payload | null;
  /** The inbox message that this fact consumes; for `update_answered`, also the one that it answers. */
  readonly takes?: string | undefined;
}

/** What a holder adds to its run in one transition: facts, the children they speak of, and what is written to streams. */
export interface Recording {
  readonly lease: Lease;
  readonly events: readonly NewEvent[];
  readonly children: readonly NewRun[];
  /** Default: nothing. */
  readonly written?: readonly NewStreamItem[];
}

/**
 * The newest fact that the holder knows to be there before those which it adds; 0: it adds none. Should it not be there, the store was
 * set back to an earlier point, and the run counts as lost.
 */
export function knownSeq({ events, lastSeq = 0 }: Recording & { readonly lastSeq?: number }): number {
  const [first] = events;
  return first === undefined ? lastSeq : first.seq - 1;
}

export interface RecordAnswer {
  /** Unread messages may be there. */
  readonly told: boolean;
  /** When the `timer_set` events of this recording fire, by `seq`. */
  readonly dueAt: ReadonlyMap<number, number>;
  /** Database time, ms. */
  readonly now: number;
}

/** What a holder says when it looks for messages. */
export interface Look {
  readonly lease: Lease;
  /** Counts the holder's looks. Its tries share one, and the first that arrives counts: what came in since stays to be told. */
  readonly look: number;
}

export interface Parking extends Recording, Look {
  /** The run's last `seq` after this recording. */
  readonly lastSeq: number;
  readonly reason: ParkReason;
  /** Wake at this instant at the latest; timers set in `events` count too. Null: only when told. */
  readonly dueAt: number | null;
  /**
   * The timer that fires at `dueAt`, by its request: whoever wakes a waiting run then may say that it has. Default: it is no timer. Null: its
   * holder must say so itself, of the timers set in `events`, too.
   */
  readonly fires?: string | null | undefined;
  /** Wake this long after the database's time of this write (retries). */
  readonly delayMs: number | null;
  /** Which messages wake it. */
  readonly wants: readonly Topic[];
  /** This attempt failed: the next claim is a new attempt. */
  readonly attemptFailed: boolean;
}

/**
 * - `parked`: the lease is gone; the run wakes when due or told.
 * - `told`: a wanted message was there already. The facts are recorded, the run is still held.
 * - `due`: the time has come already. The facts are recorded, the run is still held.
 */
export interface ParkAnswer extends RecordAnswer {
  readonly outcome: "parked" | "told" | "due";
  /** With `told`: every unread message, oldest first. */
  readonly messages: readonly Message[];
}

/** Its last fact is the one that says how the run ended, and in which attempt. */
export interface Ending extends Recording, RunEnd {
  /** The run that goes on from this one, which completes by that. Default: none does. */
  readonly next?: Continuation;
  /** The run's parent, as its claim answered it: the store locks both before it looks at either. */
  readonly parentId: RunId | null;
}

/** A run that takes another's place: its key, parent, terms and unread messages. Its workflow and queue are the same. */
export interface Continuation {
  readonly id: RunId;
  readonly version: number;
  readonly input: Payload | null;
  /** True: the input was not parsed by the workflow's schema; its first holder does. */
  readonly isRaw: boolean;
}
