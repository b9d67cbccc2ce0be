import type { RunId } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import { delay, type Timers } from "../core/timers.ts";

/** Tells other processes of runs that have ended, a moment after whoever ended them has gone on: nobody waits for that. */
export interface Announcements {
  add(runId: RunId): void;
  /** Resolves when all has been told, or has failed, or after so long. */
  told(longestMs: number): Promise<void>;
}

/** @param tell what is not told is found by those who wait for it, at their next look: it is tried once */
export function createAnnouncements(
  tell: (runIds: readonly RunId[]) => Promise<unknown>,
  timers: Timers,
  log: Log,
): Announcements {
  let toTell: RunId[] = [];
  let telling: Promise<void> | null = null;

  const tellAll = async (): Promise<void> => {
    // Those who were told by the end's own answer go on first.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (toTell.length > 0) {
      const runIds = toTell;
      toTell = [];
      await tell(runIds).catch((error: unknown) => log.debug("Ends were not announced.", { error }));
    }
    telling = null;
  };

  return {
    add(runId) {
      toTell.push(runId);
      telling ??= tellAll();
    },
    async told(longestMs) {
      if (telling === null) return;
      const over = new AbortController();
      await Promise.race([telling, delay(timers, longestMs, over.signal)]);
      over.abort();
    },
  };
}
