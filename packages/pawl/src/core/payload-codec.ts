import type { RunEvent } from "./event.ts";
import type { RunId } from "./ids.ts";

/** Where a payload is stored. What is read from another place than it was written for has been moved. */
export interface PayloadPlace {
  readonly runId: RunId;
  readonly field: "input" | "output" | "error" | "event" | "message" | "stream";
  /** For an event: the step, wait or child it answers. For a message: its topic. For a stream: its name. Null for the others. */
  readonly name: string | null;
}

/**
 * Turns payloads into what is stored, and back: encrypts them, for one. It gets inputs, results, outputs, signals,
 * updates, published values, streams and errors, never names, keys or statuses. All of it is synchronous; what it throws is `CODEC_FAILED`.
 */
export interface PayloadCodec {
  /** Stored beside every payload, to tell which codec can read it. */
  readonly name: string;
  /** Any text that Postgres can hold. */
  encode(plain: string, place: PayloadPlace): string;
  /** What was given to `encode`; throws if it was written for another place. */
  decode(stored: string, place: PayloadPlace): string;
  /** The same for the same text, in every process and for ever: tells whether two inputs under one key are equal. */
  digest(plain: string): string;
}

export function placeOfInput(runId: RunId): PayloadPlace {
  return { runId, field: "input", name: null };
}

export function placeOfOutput(runId: RunId): PayloadPlace {
  return { runId, field: "output", name: null };
}

export function placeOfError(runId: RunId): PayloadPlace {
  return { runId, field: "error", name: null };
}

export function placeOfMessage(runId: RunId, topic: string): PayloadPlace {
  return { runId, field: "message", name: topic };
}

export function placeOfStream(runId: RunId, name: string): PayloadPlace {
  return { runId, field: "stream", name };
}

/** Two events hold what was written for elsewhere, since the store itself copies it. */
export function placeOfEvent(runId: RunId, { kind, name }: Pick<RunEvent, "kind" | "name">): PayloadPlace {
  if (kind === "cancel_requested") return placeOfMessage(runId, "cancel");
  if (kind === "failed") return placeOfError(runId);
  return { runId, field: "event", name };
}
