import type { CrashPoint } from "../../src/core/crash-point.ts";
import type { WorkerOptions } from "../../src/index.ts";

// What a test and its processes say to each other.

/** Where a process can be told to die: the engine's own crash points, and what lies between them. */
export type Boundary =
  | CrashPoint
  | "inbox.read"
  | "history.loaded"
  | "positions.read"
  | "due.woken"
  | "step.inside"
  | "transaction.inside"
  | "transaction.recorded"
  | "transaction.committed"
  | "foreign.completed"
  | "foreign.committed";

/** It kills itself when it comes there for the nth time. */
export interface Doom {
  readonly at: Boundary;
  readonly nth: number;
}

export interface ProcessSettings {
  /** Where Pawl finds its database; may lead through a proxy. */
  readonly url: string;
  readonly schema: string;
  readonly ledgerUrl: string;
  readonly worker: Omit<WorkerOptions, "workflows">;
}

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export type Command =
  | { readonly kind: "work" }
  /** Works on this queue, beside whatever else it does, until its doom. */
  | {
      readonly kind: "probe";
      readonly queue: string;
      readonly stickyRuns: number;
      readonly doom: Doom | null;
    }
  /** Works on this queue no longer. */
  | { readonly kind: "leave"; readonly queue: string }
  /** Says how often it has passed each boundary. */
  | { readonly kind: "count" }
  /** Starts one run so many times at once, with one key. */
  | { readonly kind: "start"; readonly key: string; readonly times: number };

export type Report =
  | { readonly kind: "up" }
  | { readonly kind: "working" }
  | { readonly kind: "counted"; readonly passed: readonly (readonly [Boundary, number])[] }
  | { readonly kind: "started"; readonly runIds: readonly string[] }
  /** A run's code was called: for the first time, or to be replayed. */
  | { readonly kind: "entered"; readonly runId: string }
  | { readonly kind: "aboutToWait"; readonly runId: string }
  /** A transaction's function was called. */
  | { readonly kind: "buying"; readonly runId: string; readonly step: string }
  /** SIGTERM has arrived. */
  | { readonly kind: "stopping" }
  /** Its worker has stopped. */
  | { readonly kind: "stopped" }
  | ({ readonly kind: "log" } & LogLine);
