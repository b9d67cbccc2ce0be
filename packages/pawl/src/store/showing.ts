import type { Payload } from "../core/json.ts";

/** The last value that a run published under a key. */
export interface PublishedRecord {
  readonly key: string;
  /** The request that published it. */
  readonly name: string;
  readonly data: Payload | null;
  readonly at: number;
}
