import type { Payload } from "../../packages/pawl/src/core/json.ts";
import type { Holder } from "../../packages/pawl/src/store/lease.ts";
import { type NewRun, plainRun } from "../../packages/pawl/src/store/run-record.ts";
import { leaseMs } from "../../packages/pawl/test/conformance/world.ts";
import type { Dice } from "./dice.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Operation } from "./operation.ts";

/** Some of them equal, though spelled differently. */
const inputs: readonly (Payload | null)[] = [
  null,
  { json: `{"a":1,"b":[2]}`, notes: null },
  { json: ` { "b": [2.0], "a": 1e0 }`, notes: null },
  { json: `{"a":1,"b":[2]}`, notes: `{"types":{"a":"x","b":"y"}}` },
  { json: `{"b":[2],"a":1}`, notes: `{"types": {"b":"y","a":"x"}}` },
  { json: `{"data":"one"}`, notes: `{"codec":"c","digest":"same"}` },
  { json: `{"data":"two"}`, notes: `{"codec":"c","digest":"same"}` },
  { json: `{"data":"two"}`, notes: `{"codec":"c","digest":"other"}` },
  { json: `"text"`, notes: null },
];

export function pickPayload(dice: Dice): Payload | null {
  return dice.pick(inputs);
}

export function generateStart(known: Knowledge): Operation {
  const { dice, starts, snapshot } = known;
  if (snapshot.workers.length > 0 && dice.chance(0.3)) return generateHeldStart(known);
  if (dice.chance(0.2)) return { kind: "createRuns", calls: [[generateCrowd(known)]] };
  const isRepeated = starts.length > 0 && dice.chance(0.15);
  const runs = isRepeated
    ? dice.some(starts, 3)
    : Array.from({ length: dice.between(1, 3) }, () => generateRun(known, drawTwin(known)));
  if (runs.length === 0 || dice.chance(0.7)) return { kind: "createRuns", calls: [[runs]] };
  return { kind: "createRuns", calls: runs.map((run) => [[run]]) };
}

/** Runs that have nothing of their own but their input, and now and then more of them than a store may want to keep in one place. */
function generateCrowd({ dice, ...known }: Knowledge): readonly NewRun[] {
  const lane = {
    workflow: dice.pick(["w", "v"]),
    version: 1,
    queue: dice.pick(["a", "b"]),
    priority: dice.between(-1, 1),
  };
  const size = dice.chance(0.1) ? dice.between(60, 70) : dice.between(2, 5);
  return Array.from({ length: size }, () => ({
    id: known.nextId(),
    ...lane,
    ...plainRun,
    priority: lane.priority,
    input: pickPayload(dice),
  }));
}

/** Some of them for a worker that has ended, or too late. */
function generateHeldStart(known: Knowledge): Operation {
  const { dice, snapshot } = known;
  const repeated = known.heldStarts;
  if (repeated.length > 0 && dice.chance(0.15)) return { kind: "createHeld", calls: [dice.pick(repeated)] };
  const holder = {
    workerId: dice.chance(0.03) ? known.nextId() : dice.pick(snapshot.workers).id,
    leaseMs: dice.pick([5_000, leaseMs]),
    crashLimit: dice.pick([1, 3]),
  };
  const start = (): [NewRun, Holder] => [generateRun(known, drawTwin(known)), holder];
  return { kind: "createHeld", calls: Array.from({ length: dice.between(1, 3) }, start) };
}

/** Now and then what makes a run equal to another, whose key it has, or all of that but for one thing. */
function drawTwin({ dice, starts }: Knowledge): Partial<NewRun> {
  const keyed = starts.filter(({ key }) => key !== null);
  if (keyed.length === 0 || !dice.chance(0.15)) return {};
  const { key, workflow, version, input } = dice.pick(keyed);
  const other = dice.chance(0.5) ? { version: 3 - version } : { workflow: workflow === "w" ? "v" : "w" };
  return { key, workflow, version, input, mustBeNew: false, ...(dice.chance(0.3) && other) };
}

export function generateRun(known: Knowledge, more: Partial<NewRun> = {}): NewRun {
  const { dice, now } = known;
  return {
    id: known.nextId(),
    workflow: dice.pick(["w", "v"]),
    version: dice.pick([1, 1, 2]),
    queue: dice.pick(["a", "b"]),
    priority: dice.between(-1, 1),
    input: pickPayload(dice),
    isRaw: dice.chance(0.1),
    mustBeNew: dice.chance(0.2),
    tags: dice.chance(0.3) ? dice.some(["red", "blue", "green"]) : [],
    retry: dice.chance(0.1)
      ? { attempts: 2, initialMs: 0, maxMs: 5, factor: 1, jitter: false, delaysMs: [7] }
      : null,
    key: dice.chance(0.3) ? dice.pick(["k", "l", "m"]) : null,
    startAt: dice.chance(0.2) ? now + dice.pick([-1, 0, 1, 2_000]) : null,
    expiresAt: dice.chance(0.25) ? now + dice.between(0, 9_999) : null,
    deadlineAt: dice.chance(0.3) ? now + dice.between(1, 99_999) : null,
    parent: null,
    isDetached: dice.chance(0.1),
    forkedFrom: null,
    ...more,
  };
}
