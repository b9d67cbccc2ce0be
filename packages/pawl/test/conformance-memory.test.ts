import { createMemoryStore } from "../src/memory/memory-store.ts";
import { createManualClock } from "../src/testing/manual-clock.ts";
import { describeStore } from "./conformance/describe-store.ts";

describeStore("the memory store", async () => {
  const clock = createManualClock();
  const store = createMemoryStore({ clock });
  return {
    store,
    clock: { advance: async (duration) => clock.advance(duration) },
    snapshot: async () => store.snapshot(),
    insertMessage: (message) => store.insertMessage(message),
    setQueuePaused: (queue, paused) => store.setQueuePaused(queue, paused),
    close: async () => {},
  };
});
