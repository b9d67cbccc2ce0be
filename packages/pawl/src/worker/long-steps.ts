import type { LongStep } from "../store/worker-record.ts";
import type { Slots } from "./slots.ts";

const mostReported = 50;

/** The steps that have been running since this instant of the process's clock or longer, the oldest first. */
export function findLongSteps(slots: Slots, since: number): readonly LongStep[] {
  const long: LongStep[] = [];
  for (const { runId, execution } of slots.held()) {
    for (const step of execution.stepsInProgress()) {
      if (step.since <= since) long.push({ runId, step: step.key, beganAt: step.beganAt });
    }
  }
  return long.sort((a, b) => a.beganAt - b.beganAt).slice(0, mostReported);
}
