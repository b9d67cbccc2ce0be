import type { Recording } from "../../packages/pawl/src/store/lease.ts";
import { generateOperation } from "./generate.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Operation } from "./operation.ts";

type Kind = Operation["kind"];

/** They change something, and are one statement each. */
const fit: ReadonlySet<Kind> = new Set<Kind>([
  "createRuns",
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

/** Two operations that have to do with each other, more often than not. */
export function generatePair(known: Knowledge): readonly [Operation, Operation] {
  const runs = new Set(known.snapshot.runs.map(({ id }) => id));
  const first = draw(known, ({ kind }) => kind !== "insertMessage");
  const concerned = idsIn(first, runs);
  const prefersSkipping = known.dice.chance(0.3);
  const isNear = (operation: Operation): boolean =>
    prefersSkipping ? isSkipping(operation) : [...idsIn(operation, runs)].some((id) => concerned.has(id));
  return [
    first,
    draw(
      known,
      (operation) =>
        isNear(operation) && !isPassedOnLater(first, operation) && !isContradiction(first, operation),
    ),
  ];
}

/** Of the first few that come to mind, one that may be part of a pair, and is wanted if possible. */
function draw(known: Knowledge, isWanted: (operation: Operation) => boolean): Operation {
  const drawn = Array.from({ length: 12 }, () => generateOperation(known)).filter(({ kind }) =>
    fit.has(kind),
  );
  return drawn.find(isWanted) ?? { kind: "wakeDue", calls: [[100]] };
}

function idsIn(operation: Operation, known: ReadonlySet<string>): ReadonlySet<string> {
  const ids = JSON.stringify(operation).match(/[0-9a-f]{8}-[0-9a-f-]{27}/g) ?? [];
  return new Set(ids.filter((id) => known.has(id)));
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
