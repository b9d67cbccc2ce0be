import type { Duration } from "../../src/core/duration.ts";
import type { NewMessage } from "../../src/store/message.ts";
import type { StoreSnapshot } from "../../src/store/snapshot.ts";
import type { Store } from "../../src/store/store.ts";

/** An empty store for one test, with its hands on what the port does not offer. */
export interface StoreHarness {
  readonly store: Store;
  /** The store's clock: it moves only when told, and by whole ms. */
  readonly clock: { advance(duration: Duration): Promise<void> };
  snapshot(): Promise<StoreSnapshot>;
  /** Stores a message as a caller's own transaction does: with a hint `sent`, waking nobody. */
  insertMessage(message: NewMessage): Promise<void>;
  setQueuePaused(queue: string, paused: boolean): Promise<void>;
  close(): Promise<void>;
}

export type CreateHarness = () => Promise<StoreHarness>;
