import { isRunId } from "../../packages/pawl/src/core/ids.ts";
import type { Operation } from "./operation.ts";

/** What must have happened at least once before two stores may be called equal. */
const expected: readonly string[] = [
  ...["created", "existing", "conflict", "withheld"].map((kind) => `createRuns ${kind}`),
  ...["created", "existing", "conflict", "held"].map((kind) => `createHeld ${kind}`),
  ...["some", "none", "suspects waiting", "WORKER_EXPIRED"].map((kind) => `claimRuns ${kind}`),
  ...["begin", "record", "readInbox", "end", "release"].flatMap((kind) => [
    `${kind} done`,
    `${kind} LEASE_LOST`,
  ]),
  ...["told", "timers"].map((kind) => `record ${kind}`),
  ...["parked", "told", "due", "LEASE_LOST"].map((kind) => `park ${kind}`),
  ...["accepted", "duplicate", "ended", "missing"].map((kind) => `tell ${kind}`),
  ...["some", "none", "held", "fired", "history"].map((kind) => `wakeDue ${kind}`),
  ...["alive", "expired", "told", "lost", "returned"].map((kind) => `heartbeat ${kind}`),
  ...["expiredWorkers", "recovered", "failed", "expiredRuns", "rescued", "more"].map(
    (kind) => `sweep ${kind}`,
  ),
  ...["terminated", "ended", "missing"].map((kind) => `terminate ${kind}`),
  ...["redriven", "live", "completed", "missing"].map((kind) => `redrive ${kind}`),
  ...["created", "existing", "conflict"].map((kind) => `fork ${kind}`),
  ...["created", "found", "conflict", "elsewhere"].map((kind) => `signalOrStart ${kind}`),
  ...["rescheduled", "begun", "ended", "missing"].map((kind) => `reschedule ${kind}`),
  ...["listAttempts", "listChildren", "countRuns", "readBacklog", "findKey"].map((kind) => `${kind} done`),
  ...["now", "getRun", "getEnds", "listRuns", "loadHistory"].map((kind) => `${kind} done`),
  ...["registerWorker", "retireWorker", "wakeTold", "insertMessage", "setQueuePaused", "advance"].map(
    (kind) => `${kind} done`,
  ),
  ...["completed", "failed", "cancelled", "timed_out", "expired"].map((status) => `getRun ${status}`),
  ...["pending", "running", "waiting", "paused", "blocked", "missing"].map((status) => `getRun ${status}`),
];

/** Counts what was answered, by kind. */
export interface Tally {
  readonly operations: number;
  /** How many of those expected have happened. */
  readonly kinds: number;
  add(operation: Operation, answers: readonly unknown[]): void;
  /** What has not happened yet. */
  missing(): readonly string[];
}

export function createTally(): Tally {
  let operations = 0;
  const seen = new Set<string>();
  return {
    get operations() {
      return operations;
    },
    get kinds() {
      return expected.filter((word) => seen.has(word)).length;
    },
    add({ kind }, answers) {
      operations += 1;
      if (answers.length === 0) seen.add(`${kind} done`);
      for (const answer of answers) for (const word of wordsFor(answer)) seen.add(`${kind} ${word}`);
    },
    missing: () => expected.filter((word) => !seen.has(word)),
  };
}

/** What is worth telling apart in an answer. */
function wordsFor(answer: unknown): readonly string[] {
  if (typeof answer === "string") return [answer];
  if (answer === null) return ["done", "missing"];
  if (Array.isArray(answer)) return ["done", ...answer.flatMap(wordsFor)];
  if (typeof answer !== "object") return ["done"];
  const words = Object.entries(answer).flatMap(([key, value]) => {
    if (typeof value === "string" && (["kind", "outcome", "status"].includes(key) || isRunId(key)))
      return [value];
    if (key === "alive") return value === true ? ["alive"] : ["expired"];
    if (key === "suspectsWaiting") return value === true ? ["suspects waiting"] : [];
    if (key === "runs" || key === "woken") return isSome(value) ? ["some"] : ["none"];
    if (key === "held" && Array.isArray(value))
      return value.flatMap((run: object) => ["held", ...["fired", "history"].filter((word) => word in run)]);
    if (key === "dueAt" && typeof value === "object") return isSome(value) ? ["timers"] : [];
    return isSome(value) ? [key] : [];
  });
  return ["done", ...words];
}

function isSome(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return value !== 0 && value !== false && value !== null;
}
