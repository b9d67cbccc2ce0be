import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Given } from "../gen/program-workflow.ts";
import type { Database } from "../gen/program.ts";

// What the parent, which keeps the ledger, and its workers say to each other.

export interface WorkerSettings {
  readonly schema: string;
  readonly leaseMs: number;
  readonly connections: number;
  readonly pollMs: number;
  readonly crashLimit: number;
  readonly retryMs: number;
}

/** Where a worker works. */
export interface Place {
  readonly url: string;
  /** To a database that runs do not live in. */
  readonly foreignUrl: string;
  readonly concurrency: number;
  /** By how much its machine's clock is wrong. */
  readonly skewMs: number;
}

/** A call of a step's function, or of what undoes it. */
export interface CallNote {
  readonly by: "step" | "undo";
  readonly run: RunId;
  readonly step: string;
  readonly attempt: number;
  readonly key: string;
  /** The number of the attempt at the step or undo. */
  readonly tries: number;
  readonly isUndoable: boolean;
  /** In whose transaction it is; null: in none. */
  readonly transaction: Database | null;
  readonly inDoubt: boolean;
  readonly result: string | null;
  /** How often it fails in its run. */
  readonly failures: number;
}

/** All times are of the machine's monotonic clock, ms, which all processes share. */
export type Report =
  | { readonly kind: "up" }
  | { readonly kind: "working" }
  /** A call begins; it waits for the ledger's answer. */
  | { readonly kind: "call"; readonly id: number; readonly at: number; readonly note: CallNote }
  | {
      readonly kind: "called";
      readonly at: number;
      readonly token: string;
      readonly type: "ok" | "fail";
      readonly note: CallNote;
    }
  | {
      readonly kind: "asked";
      readonly at: number;
      readonly run: RunId;
      readonly step: string;
      readonly waitMs: number;
    }
  | {
      readonly kind: "patched";
      readonly at: number;
      readonly run: RunId;
      readonly id: string;
      readonly isNew: boolean;
    }
  | ({
      readonly kind: "delivered";
      readonly at: number;
      readonly run: RunId;
      readonly step: string;
    } & Given)
  | {
      readonly kind: "log";
      readonly level: "warn" | "error";
      readonly message: string;
      readonly fields: Readonly<Record<string, unknown>>;
    }
  /** It found that runs were no longer its own. */
  | { readonly kind: "lost"; readonly at: number }
  /** Something that no process should come to. */
  | { readonly kind: "trouble"; readonly what: string };

export type Command =
  | { readonly kind: "work"; readonly place: Place }
  /** The ledger's answer to a call: its token's number, and how it ends. */
  | { readonly kind: "noted"; readonly id: number; readonly number: number; readonly fails: boolean }
  /** Writes a diagnostic report into this file. */
  | { readonly kind: "report"; readonly file: string }
  | { readonly kind: "leave" };
