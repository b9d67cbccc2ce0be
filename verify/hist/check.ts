import type { SnapshotRun, StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import { createCancelCheck } from "./check-cancels.ts";
import { createEffectCheck } from "./check-effects.ts";
import {
  checkChildren,
  checkWithdrawn,
  checkHistories,
  createFactCheck,
  createResultCheck,
  indexSnapshot,
} from "./check-facts.ts";
import { createForkCheck } from "./check-forks.ts";
import { createLeaseCheck } from "./check-leases.ts";
import { createMessageCheck } from "./check-messages.ts";
import { checkOutcomes, type ExpectedRun } from "./check-outcomes.ts";
import { createPatchCheck } from "./check-patches.ts";
import { checkReschedule, checkRooms, checkSweep } from "./check-rooms.ts";
import { createShownCheck } from "./check-shown.ts";
import { createStartCheck } from "./check-starts.ts";
import { createStepCheck } from "./check-steps.ts";
import { createSuspectCheck } from "./check-suspects.ts";
import { checkTimers, createWaitCheck } from "./check-timers.ts";
import { createTimeCheck } from "./check-times.ts";
import { createUndoCheck } from "./check-undos.ts";
import { createUpdateCheck } from "./check-updates.ts";
import { createLives } from "./lives.ts";
import type { Entry } from "./record.ts";
import { Verdict, type Violation } from "./verdict.ts";

export interface ObservedHistory {
  readonly entries: readonly Entry[];
  /** The store's content once everything has come to rest. */
  readonly snapshot: StoreSnapshot;
  /** What should have become of a run; null for one that nothing is known of. */
  readonly expected: (run: SnapshotRun) => ExpectedRun | null;
}

/** Looks once through what was observed and names every promise that it breaks. */
export function checkHistory({ entries, snapshot, expected }: ObservedHistory): readonly Violation[] {
  const verdict = new Verdict();
  const { report } = verdict;
  const final = indexSnapshot(snapshot);
  const lives = createLives();
  const leases = createLeaseCheck(report);
  const suspects = createSuspectCheck(report);
  const facts = createFactCheck(final, lives, report);
  const results = createResultCheck(final, lives, report);
  const steps = createStepCheck(lives, report);
  const messages = createMessageCheck(final, lives, report);
  const starts = createStartCheck(final, report);
  const waits = createWaitCheck(final, report);
  const times = createTimeCheck(final, report);
  const cancels = createCancelCheck(lives, report);
  const undos = createUndoCheck(lives, report);
  const updates = createUpdateCheck(final, report);
  const shown = createShownCheck(final, report);
  const forks = createForkCheck(final, report);
  const patches = createPatchCheck(report);
  const effects = createEffectCheck(final, report);

  for (const entry of entries) {
    switch (entry.by) {
      case "client":
        starts.client(entry);
        messages.client(entry);
        updates(entry);
        shown(entry);
        results(entry);
        break;
      case "step":
        steps.step(entry);
        effects.step(entry);
        forks(entry);
        patches(entry);
        undos.step(entry);
        cancels(entry);
        break;
      case "patch":
        patches(entry);
        break;
      case "effect":
        effects.see(entry);
        break;
      case "undo":
        undos.undo(entry);
        break;
      case "ask":
        waits(entry);
        break;
      case "delivery":
        steps.delivery(entry);
        undos.delivery(entry);
        waits(entry);
        break;
      case "store":
        lives.see(entry);
        leases(entry);
        suspects(entry);
        facts.see(entry);
        starts.store(entry);
        times.see(entry);
        steps.store(entry);
        undos.store(entry);
        messages.store(entry);
        cancels(entry);
        patches(entry);
        forks(entry);
        effects.store(entry);
        checkSweep(entry, report);
        checkReschedule(entry, report);
        break;
      case "fault":
        break;
      default:
        entry satisfies never;
    }
  }
  effects.conclude();
  facts.conclude();
  times.conclude();
  checkHistories(final, report);
  checkChildren(final, report);
  checkWithdrawn(final, report);
  checkTimers(final, report);
  checkRooms(final, report);
  checkOutcomes(final, lives, expected, report);
  return verdict.violations;
}
