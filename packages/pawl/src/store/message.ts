import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";

/** What a message is about, and what `wants` names: `signal:shipped`, `child`, `cancel`, … */
export type Topic = `signal:${string}` | `update:${string}` | "child" | "cancel" | "pause" | "resume";

/** What somebody tells a run. Its id makes the telling repeatable; its idempotency key makes the sender's retry one message. */
export interface NewMessage {
  readonly id: string;
  readonly runId: RunId;
  readonly topic: Topic;
  readonly data: Payload | null;
  readonly idempotencyKey: string | null;
}

/**
 * - `accepted`: stored now, or already stored under the same id.
 * - `duplicate`: another message with this idempotency key was there first; nothing changed.
 * - `ended`: the run has ended and takes no more messages; nothing changed.
 * - `missing`: there is no such run.
 */
export type TellAnswer = "accepted" | "duplicate" | "ended" | "missing";

/** An unread message as its run's holder reads it, in the order sent. */
export interface Message {
  readonly id: string;
  readonly topic: Topic;
  /** For `child`: the request in the parent that the child answers. */
  readonly name: string | null;
  readonly data: Payload | null;
  readonly sentAt: number;
  /** The run that it was written for, where that went on as this one. */
  readonly sentTo?: RunId;
}
