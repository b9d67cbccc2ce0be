import type { RunId } from "../core/ids.ts";
import { createLoop, type Loop, type LoopSeams } from "../core/loop.ts";
import { delay } from "../core/timers.ts";
import type { Store } from "../store/store.ts";

export interface InboxRelayParts extends LoopSeams {
  readonly store: Store;
}

export interface InboxRelay extends Loop {
  /** A caller's transaction stored a message for this run. */
  sent(runId: RunId): void;
}

const mostPerTurn = 1_000;
/** Every worker hears the same hint: whoever is first does the work, the others find it done. */
const longestPauseMs = 10;

/** Wakes runs whose messages were stored in callers' own transactions, which touch no run themselves. */
export function createInboxRelay(parts: InboxRelayParts): InboxRelay {
  const { store, timers, random } = parts;
  const sentTo = new Set<RunId>();

  const loop = createLoop("inbox relay", parts, async () => {
    if (sentTo.size === 0) return Number.POSITIVE_INFINITY;
    await delay(timers, random.next() * longestPauseMs);
    const runIds = [...sentTo].slice(0, mostPerTurn);
    await store.wakeTold(runIds);
    for (const runId of runIds) sentTo.delete(runId);
    return sentTo.size === 0 ? Number.POSITIVE_INFINITY : 0;
  });

  return {
    ...loop,
    sent(runId) {
      sentTo.add(runId);
      if (sentTo.size === 1) loop.poke();
    },
  };
}
