import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";

/** The last value that a run published under a key. */
export interface PublishedRecord {
  readonly key: string;
  /** The request that published it. */
  readonly name: string;
  readonly data: Payload | null;
  readonly at: number;
}

/** An update that somebody has sent: found by its id, or else by its idempotency key. */
export interface Question {
  readonly runId: RunId;
  readonly messageId: string;
  readonly idempotencyKey: string | null;
}

/** What has become of it. */
export interface AnswerRecord {
  /** Of the message that was found; null: there is none. */
  readonly topic: string | null;
  /** The fact that answers it; null: none does. */
  readonly answer: { readonly name: string | null; readonly data: Payload | null } | null;
  /** The run has ended, or is gone. */
  readonly isEnded: boolean;
}
