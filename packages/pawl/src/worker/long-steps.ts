import type { Payload } from "../core/json.ts";
import type { LongStep } from "../store/worker-record.ts";
import type { Slots } from "./slots.ts";

const mostReported = 50;
/** What is longer is not sent with every heartbeat. */
const longestProgress = 4_096;

/** The steps that have been running since this instant of the process's clock or longer, the oldest first. */
export function findLongSteps(slots: Slots, since: number): readonly LongStep[] {
  const long: LongStep[] = [];
  for (const { runId, execution } of slots.held()) {
    for (const step of execution.stepsInProgress()) {
      if (step.since > since) continue;
      long.push({ runId, step: step.key, beganAt: step.beganAt, ...describeProgress(step.progress) });
    }
  }
  return long.sort((a, b) => a.beganAt - b.beganAt).slice(0, mostReported);
}

function describeProgress(progress: Payload | null): Pick<LongStep, "progress" | "progressNotes"> {
  if (progress === null) return {};
  const { json, notes } = progress;
  if (json.length + (notes?.length ?? 0) > longestProgress) return {};
  return { progress: JSON.parse(json), ...(notes !== null && { progressNotes: JSON.parse(notes) }) };
}
