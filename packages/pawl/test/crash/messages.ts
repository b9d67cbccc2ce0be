import type { WorkerOptions } from "../../src/index.ts";

// What a test and its processes say to each other.

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
  /** Starts one run so many times at once, with one key. */
  | { readonly kind: "start"; readonly key: string; readonly times: number };

export type Report =
  | { readonly kind: "up" }
  | { readonly kind: "working" }
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
