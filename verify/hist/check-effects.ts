import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { SnapshotEvent } from "../../packages/pawl/src/store/snapshot.ts";
import type { FinalState } from "./check-facts.ts";
import type { EffectEntry, StepEntry, StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

export interface EffectCheck {
  step(entry: StepEntry): void;
  see(entry: EffectEntry): void;
  store(entry: StoreEntry): void;
  conclude(): void;
}

/**
 * I2: what a step writes in its transaction is there once if its result is recorded, and else not at all. In a database that
 * runs do not live in it may be there without a record, where nobody goes on with the step: but never twice.
 */
export function createEffectCheck(final: FinalState, report: Report): EffectCheck {
  const effects = new Map<string, EffectEntry>();
  const byStep = new Map<string, EffectEntry>();
  const transactional = new Map<string, StepEntry>();
  const newestEpoch = new Map<RunId, number>();
  /** The last epoch before a run began anew: what is done under it is not of the present life. */
  const lastOfOld = new Map<RunId, number>();

  const conclude = (): void => {
    if (transactional.size === 0) return;
    const recorded = new Map<string, SnapshotEvent>();
    for (const event of final.snapshot.events) {
      if (event.kind !== "step_completed" || typeof event.data?.value !== "string") continue;
      const token = event.data.value;
      const call = transactional.get(idOf(event.runId, token));
      if (call === undefined) continue;
      recorded.set(idOf(event.runId, token), event);
      if (!effects.has(idOf(event.runId, token)))
        report("I2", "a transaction is recorded whose effect is not there", call, event);
    }
    for (const [id, effect] of effects) {
      if (effect.database === "foreign" || recorded.has(id)) continue;
      report("I2", "a transaction has left an effect, and no record", transactional.get(id) ?? null, effect);
    }
  };

  return {
    step(entry) {
      if (entry.isTransactional === true) transactional.set(idOf(entry.run, entry.token), entry);
    },
    see(entry) {
      const step = `${entry.run} ${entry.step}`;
      effects.set(idOf(entry.run, entry.token), entry);
      const call = transactional.get(idOf(entry.run, entry.token));
      if (call !== undefined && call.epoch <= (lastOfOld.get(entry.run) ?? -1)) return;
      const twin = byStep.get(step);
      if (twin !== undefined) report("I2", "the effect of a transaction is there twice", twin, entry);
      byStep.set(step, entry);
    },
    store(entry) {
      if (entry.op === "claim") newestEpoch.set(entry.run, entry.epoch);
      if (entry.op !== "redrive" || entry.isFresh !== true) return;
      for (const [run, answer] of entry.answers) {
        if (answer !== "redriven") continue;
        lastOfOld.set(run, newestEpoch.get(run) ?? 0);
        for (const id of byStep.keys()) if (id.startsWith(`${run} `)) byStep.delete(id);
      }
    },
    conclude,
  };
}

function idOf(run: RunId, token: string): string {
  return `${run} ${token}`;
}
