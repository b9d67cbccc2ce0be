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

/**
 * Something that a holder writes to a stream. Positions are dense from 1 in each stream of a run, and assigned by the holder:
 * repeating a write repeats the same `position`, and changes nothing.
 */
export interface NewStreamItem {
  readonly name: string;
  readonly position: number;
  readonly data: Payload | null;
  /** The step that wrote it, and which attempt of it; null: the run's own code. */
  readonly step: string | null;
  readonly attempt: number | null;
  /** The first that this attempt of the step wrote there. */
  readonly isFirst: boolean;
  /** Nothing follows it, and it has no data. */
  readonly isClosing: boolean;
}

export interface StreamRecord extends Omit<NewStreamItem, "name"> {
  readonly at: number;
}

/** How far somebody has read. */
export interface StreamPlace {
  readonly runId: RunId;
  readonly name: string;
  readonly after: number;
}

export interface StreamPage {
  /** In order, without gaps. May not be all: look again until it is empty. */
  readonly items: readonly StreamRecord[];
  /** The run has ended: what is not there will not come. */
  readonly isEnded: boolean;
}
