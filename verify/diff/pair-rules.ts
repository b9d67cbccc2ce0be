import type { Recording } from "../../packages/pawl/src/store/lease.ts";
import { generateOperation } from "./generate.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Operation } from "./operation.ts";

type Kind = Operation["kind"];

/** They change something, and are one statement each. */
const fit: ReadonlySet<Kind> = new Set<Kind>([
  "createRuns",
  "createHeld",
  "claimRuns",
  "begin",
  "record",
  "readInbox",
  "park",
  "end",
  "release",
  "tell",
  "insertMessage",
  "wakeTold",
  "signalOrStart",
  "terminate",
  "redrive",
  "fork",
  "reschedule",
  "wakeDue",
  "heartbeat",
  "retireWorker",
  "sweep",
]);

/**
 * These pass over rows that others hold at the moment, because nobody may keep them from the rest. What they have passed
 * over they find when they are repeated, as each of them is, for ever.
 */
const skipping: ReadonlySet<Kind> = new Set<Kind>(["claimRuns", "wakeDue", "sweep", "heartbeat"]);

export function isSkipping({ kind }: Operation): boolean {
  return skipping.has(kind);
}

/** What claims or wakes passes over what others hold; only its own worker's row may keep one waiting that is to hold something. */
export function mayWait(first: Operation, second: Operation): boolean {
  if (!["claimRuns", "wakeDue"].includes(second.kind)) return true;
  if (second.kind === "wakeDue" && second.calls.every(([, waker]) => (waker?.workerId ?? null) === null))
    return false;
  return [
    "createHeld",
    "claimRuns",
    "wakeDue",
    "heartbeat",
    "retireWorker",
    "registerWorker",
    "sweep",
  ].includes(first.kind);
}

/** Two operations on one run, or on it and its kin. */
export function generatePair(known: Knowledge): readonly [Operation, Operation] {
  const concerned = drawKin(known);
  const isNear = (operation: Operation): boolean =>
    isSkipping(operation) ? known.dice.chance(0.2) : mentions(operation, concerned);
  const first = draw(known, (operation) => operation.kind !== "insertMessage" && isNear(operation));
  const mayFollow = (operation: Operation): boolean =>
    !isPassedOnLater(first, operation) &&
    !isContradiction(first, operation) &&
    !isDroppedEarly(known, first, operation);
  return [first, draw(known, (operation) => isNear(operation) && mayFollow(operation))];
}

/** A run, mostly one that is held, its parent and its children. */
function drawKin({ dice, snapshot }: Knowledge): ReadonlySet<string> {
  const live = snapshot.runs.filter(({ status }) => status === null);
  const held = live.filter(({ id }) => snapshot.lease.some(({ runId }) => runId === id));
  const from = held.length > 0 && dice.chance(0.7) ? held : live;
  if (from.length === 0) return new Set();
  const { id, parentId } = dice.pick(from);
  const children = live.filter((run) => run.parentId === id).map((run) => run.id);
  return new Set([id, ...(parentId === null ? [] : [parentId]), ...children]);
}

/** Of the first few that come to mind, one that may be part of a pair, and is wanted. */
function draw(known: Knowledge, isWanted: (operation: Operation) => boolean): Operation {
  for (let tries = 0; tries < 40; tries++) {
    const operation = generateOperation(known);
    if (fit.has(operation.kind) && isWanted(operation)) return operation;
  }
  return { kind: "wakeDue", calls: [[100]] };
}

function mentions(operation: Operation, ids: ReadonlySet<string>): boolean {
  const found = JSON.stringify(operation).match(/[0-9a-f]{8}-[0-9a-f-]{27}/g) ?? [];
  return found.some((id) => ids.has(id));
}

/**
 * What is told in a caller's transaction while the run goes on as another is left with the old run: neither waits for the
 * other. It is passed on when that run is woken.
 */
function isPassedOnLater(first: Operation, second: Operation): boolean {
  return (
    second.kind === "insertMessage" &&
    first.kind === "end" &&
    first.calls.some(([ending]) => ending.next !== undefined)
  );
}

/**
 * A resume for a run that is not paused is dropped by whoever tells that run something, unless it is held: then by its holder. Who
 * tells looks at that before it waits for a claim, and nobody misses it.
 */
function isDroppedEarly({ snapshot }: Knowledge, first: Operation, second: Operation): boolean {
  if (first.kind !== "claimRuns" || second.kind !== "tell") return false;
  const told = new Set<string>(second.calls.map(([message]) => message.runId));
  return (
    second.calls.some(([{ topic }]) => topic === "resume") ||
    snapshot.inbox.some(
      ({ runId, topic, takenSeq }) => topic === "resume" && takenSeq === null && told.has(runId),
    )
  );
}

/** A holder writes a fact again at times, but never another in its place. */
function isContradiction(first: Operation, second: Operation): boolean {
  const facts = new Map(factsOf(first));
  return factsOf(second).some(([place, kind]) => facts.has(place) && facts.get(place) !== kind);
}

/** Where each fact is to stand, and its kind. */
function factsOf(operation: Operation): readonly (readonly [string, string])[] {
  if (operation.kind !== "record" && operation.kind !== "park" && operation.kind !== "end") return [];
  const recordings: readonly Recording[] = operation.calls.map(([recording]) => recording);
  return recordings.flatMap(({ lease, events }) =>
    events.map(({ seq, kind }) => [`${lease.runId} ${seq}`, kind] as const),
  );
}
