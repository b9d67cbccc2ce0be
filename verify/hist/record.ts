import type { EventKind } from "../../packages/pawl/src/core/event.ts";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { EndStatus } from "../../packages/pawl/src/core/run-status.ts";
import type { TellAnswer } from "../../packages/pawl/src/store/message.ts";
import type { CreateAnswer, NewRun } from "../../packages/pawl/src/store/run-record.ts";
import type { RedriveAnswer } from "../../packages/pawl/src/store/store.ts";
import type { Given } from "../gen/program-workflow.ts";
import type { Database } from "../gen/program.ts";

/**
 * What was observed, in the order in which it happened. Three observers write it: callers (what they asked for and were
 * answered), the ledger (every call of a step's function, and every result handed to workflow code), and the store's door
 * (every transition at the moment it was applied). Checking needs nothing else but the store's last snapshot.
 */
export type Entry =
  | ClientEntry
  | StepEntry
  | EffectEntry
  | UndoEntry
  | AskEntry
  | PatchEntry
  | DeliveryEntry
  | StoreEntry
  | FaultEntry;

interface Observed {
  /** The store's time, ms. */
  readonly at: number;
  /** Who did it: a process, which for a worker is its worker id. */
  readonly process: string;
}

/** `info`: the caller does not know whether it happened. */
export interface ClientEntry extends Observed {
  readonly by: "client";
  readonly type: "invoke" | "ok" | "fail" | "info";
  readonly op:
    | "start"
    | "startMany"
    | "signal"
    | "cancel"
    | "terminate"
    | "pause"
    | "resume"
    | "reschedule"
    | "redrive"
    | "redriveAll"
    | "signalOrStart"
    | "fork"
    | "cancelAll"
    | "pauseAll"
    | "resumeAll"
    | "update"
    | "published"
    | "stream"
    | "result";
  /** Joins an invocation to its end. */
  readonly call: number;
  readonly run: RunId | null;
  /** The idempotency key of a start or signal. */
  readonly key: string | null;
  readonly value: unknown;
}

/** One call of a step's function. `token` is unique, and is what the call returns. */
export interface StepEntry extends Observed {
  readonly by: "step";
  readonly type: "invoke" | "ok" | "fail";
  readonly run: RunId;
  readonly step: string;
  readonly epoch: number;
  /** Number of the execution of the run, as the step was told. */
  readonly attempt: number;
  readonly token: string;
  /** The step's key in its run, and the number of this attempt at the step, as it was told. */
  readonly key: string;
  readonly stepAttempt: number;
  readonly isUndoable: boolean;
  /** Its function is called in a transaction, which may be rolled back and tried again. */
  readonly isTransactional?: boolean;
  /** It must not be called again once its worker has died in it. */
  readonly failsOnCrash?: boolean;
}

/** What a step's function wrote in its transaction, committed. */
export interface EffectEntry extends Observed {
  readonly by: "effect";
  readonly run: RunId;
  readonly step: string;
  readonly key: string;
  /** Of the call that wrote it. */
  readonly token: string;
  readonly database: Database;
}

/** One call of what undoes a step. */
export interface UndoEntry extends Observed {
  readonly by: "undo";
  readonly type: "invoke" | "ok" | "fail";
  readonly run: RunId;
  readonly step: string;
  readonly key: string;
  readonly epoch: number;
  readonly undoAttempt: number;
  readonly inDoubt: boolean;
  /** What the step returned, as it was told. */
  readonly result: string | null;
}

/** Workflow code begins to wait for a time; it is handed `null` when that has passed. */
export interface AskEntry extends Observed {
  readonly by: "ask";
  readonly run: RunId;
  readonly step: string;
  readonly epoch: number;
  readonly waitMs: number;
}

/** Workflow code asked on which side of a patch it is. */
export interface PatchEntry extends Observed {
  readonly by: "patch";
  readonly run: RunId;
  readonly epoch: number;
  readonly id: string;
  readonly isNew: boolean;
}

/** A result or error handed to workflow code by whatever it awaited. */
export interface DeliveryEntry extends Observed, Given {
  readonly by: "delivery";
  readonly run: RunId;
  readonly step: string;
  readonly epoch: number;
}

export interface RecordedFact {
  readonly seq: number;
  readonly kind: EventKind;
  readonly name: string | null;
  readonly data: string | null;
  readonly takes: string | null;
  readonly dueAt?: number | null;
}

/** A transition as the store applied (`ok`) or refused (`fail`) it. */
export type StoreEntry = Observed & { readonly by: "store"; readonly type: "ok" | "fail" } & StoreOperation;

type NewRunTimes = Pick<NewRun, "startAt" | "expiresAt" | "deadlineAt">;

interface Fence {
  readonly run: RunId;
  readonly epoch: number;
}

export type StoreOperation =
  | { readonly op: "register"; readonly leaseMs: number }
  | {
      readonly op: "heartbeat";
      /** The lease it has from now on. */
      readonly leaseMs?: number | null;
      readonly isAlive: boolean;
      readonly held: readonly Fence[];
      readonly claimsKnownTo: number | null;
      readonly returned: number;
    }
  | { readonly op: "retire"; readonly worker: string }
  | {
      readonly op: "sweep";
      readonly recovered: number;
      readonly rescued: number;
      /** The worker that it found to have expired, where one is told of at a time; all that have, where not. */
      readonly retired?: string | null;
    }
  | (NewRunTimes & {
      readonly op: "create";
      /** The run of the answer, and the one that was to be. */
      readonly run: RunId;
      readonly wanted: RunId;
      /** Joins the runs of one call. */
      readonly call: number;
      readonly key: string | null;
      readonly mustBeNew: boolean;
      readonly parent: RunId | null;
      readonly answer: CreateAnswer["kind"];
      /** Who would have held it from its start, and rests no longer, whether or not it does. */
      readonly holder?: string;
    })
  /** `epoch`: nobody has held it yet. */
  | (Fence & { readonly op: "fork"; readonly source: RunId; readonly facts: readonly RecordedFact[] })
  | { readonly op: "terminate"; readonly run: RunId; readonly wasHeld: boolean; readonly answer: string }
  | {
      readonly op: "redrive";
      readonly answers: readonly (readonly [RunId, RedriveAnswer])[];
      /** They begin anew. */
      readonly isFresh?: boolean;
    }
  | {
      readonly op: "reschedule";
      readonly run: RunId;
      readonly priority: number | undefined;
      readonly startAt: number | null | undefined;
      readonly answer: string;
      /** Messages are there, and whoever claims it will not be told. */
      readonly isDeaf: boolean;
    }
  /**
   * `failures`: as the claimer was told. `isSuspect`: it asked for one that must be tried alone. `isFromStart`: it holds it
   * since the run was created.
   */
  | (Fence & {
      readonly op: "claim";
      readonly failures?: number;
      readonly isSuspect?: boolean;
      readonly isFromStart?: boolean;
    })
  | (Fence & { readonly op: "begin" | "inbox" | "release" })
  /** `isWithClaim`: the store wrote it when the run was claimed, and its holder may never have heard of either. */
  | (Fence & {
      readonly op: "record";
      readonly facts: readonly RecordedFact[];
      readonly isWithClaim?: boolean;
    })
  | (Fence & { readonly op: "park"; readonly facts: readonly RecordedFact[]; readonly outcome: string })
  | (Fence & {
      readonly op: "end";
      readonly facts: readonly RecordedFact[];
      readonly status: EndStatus;
      readonly result: string;
      /** As which it goes on. */
      readonly next?: RunId | null;
    })
  | {
      readonly op: "tell";
      readonly run: RunId;
      readonly message: string;
      readonly topic: string;
      readonly key: string | null;
      readonly answer: TellAnswer;
    }
  /** A read of a run's history from its beginning. */
  | { readonly op: "load"; readonly run: RunId; readonly facts: readonly RecordedFact[] }
  /** A reader was told that the run has ended. */
  | { readonly op: "ended"; readonly run: RunId; readonly status: EndStatus; readonly result: string }
  /** A refused write that nevertheless changed something. */
  | (Fence & { readonly op: "leak"; readonly what: string });

interface FaultEntry extends Observed {
  readonly by: "fault";
  readonly kind: string;
}

/** Gathers entries, and with `tracing` also notes that no check reads. */
export class Recorder {
  readonly entries: Entry[] = [];
  readonly #now: () => number;
  readonly #trace: string[] | null;

  constructor(now: () => number, tracing: boolean) {
    this.#now = now;
    this.#trace = tracing ? [] : null;
  }

  get now(): number {
    return this.#now();
  }

  add(entry: Entry): void {
    this.entries.push(entry);
    this.#trace?.push(JSON.stringify(entry));
  }

  /** Something worth seeing in a trace; built only when there is one. */
  note(text: () => string): void {
    this.#trace?.push(JSON.stringify({ at: this.#now(), note: text() }));
  }

  /** JSON lines. */
  get trace(): string {
    return (this.#trace ?? []).join("\n");
  }
}
