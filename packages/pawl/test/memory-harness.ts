import { createMemoryStore } from "../src/memory/memory-store.ts";
import { createManualClock } from "../src/testing/manual-clock.ts";
import type { StoreHarness } from "./conformance/harness.ts";

/** An empty memory store whose clock stands still, at this instant if one is given. */
export function createMemoryHarness(startAt?: number): StoreHarness {
  const clock = createManualClock(startAt);
  const store = createMemoryStore({ clock });
  return {
    store,
    clock: { advance: async (duration) => clock.advance(duration) },
    snapshot: async () => store.snapshot(),
    insertMessage: (message) => store.insertMessage(message),
    setQueuePaused: (queue, paused) => store.setQueuePaused(queue, paused),
    close: async () => {},
  };
}
