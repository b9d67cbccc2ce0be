import { jittered } from "../core/back-off.ts";
import type { Probe } from "../core/crash-point.ts";
import type { RunId } from "../core/ids.ts";
import { createLoop, type Loop, type LoopSeams } from "../core/loop.ts";
import type { Store } from "../store/store.ts";
import type { SweepAnswer } from "../store/worker-record.ts";

export interface SweeperParts extends LoopSeams {
  readonly store: Store;
  readonly probe: Probe;
  readonly intervalMs: number;
  /** How long sweeping has to wait, ms. */
  readonly heldOffMs: () => number;
  /** Runs were made claimable. */
  readonly recovered: () => void;
  /** What was found, if anything was. */
  readonly found?: ((answer: SweepAnswer) => void) | undefined;
}

const mostPerSweep = 100;

/** Recovers what others left behind: every worker, for ever, a little at a time. */
export function createSweeper(parts: SweeperParts): Loop {
  const { store, log, random } = parts;
  let after: RunId | null = null;

  return createLoop("sweep", parts, async () => {
    const heldOffMs = parts.heldOffMs();
    if (heldOffMs > 0) return heldOffMs;
    parts.probe("sweep.before");
    const answer = await store.sweep({ limit: mostPerSweep, after });
    after = answer.after;
    const { expiredWorkers, recovered, failed, expiredRuns, rescued } = answer;
    if (expiredWorkers + recovered + failed + expiredRuns > 0) {
      log.info("Recovered what dead workers held, and ended what had expired.", {
        expiredWorkers,
        recovered,
        failed,
        expiredRuns,
      });
      parts.found?.(answer);
    }
    if (rescued > 0)
      log.warn("Woke runs whose message should have woken them. Please report this.", { rescued });
    if (recovered + rescued > 0) parts.recovered();
    return answer.more ? 0 : jittered(parts.intervalMs, random);
  });
}
