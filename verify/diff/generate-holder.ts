import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import { endStatuses } from "../../packages/pawl/src/core/run-status.ts";
import { server } from "../../packages/pawl/src/memory/fence.ts";
import {
  firstEpoch,
  type Continuation,
  type Ending,
  type Lease,
  type NewEvent,
  type Parking,
  type Recording,
} from "../../packages/pawl/src/store/lease.ts";
import type { NewStreamItem } from "../../packages/pawl/src/store/showing.ts";
import type { SnapshotEvent, SnapshotMessage } from "../../packages/pawl/src/store/snapshot.ts";
import { generateRun, pickPayload } from "./generate-start.ts";
import { topics } from "./generate-telling.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Operation } from "./operation.ts";

const neverLease: Lease = {
  runId: "019b76da-0000-7000-8000-000000000002",
  epoch: 1,
  workerId: "019b76da-0000-7000-8000-000000000003",
};

/** What a holder does with its run; now and then one that has lost it. */
export function generateHolderOperation(known: Knowledge): Operation {
  const { dice } = known;
  const leases = pickLeases(known);
  const roll = dice.next();
  if (roll < 0.08) return { kind: "begin", calls: leases.map((lease) => [lease]) };
  if (roll < 0.2)
    return { kind: "readInbox", calls: leases.map((lease) => [{ lease, look: drawLook(known.dice) }]) };
  if (roll < 0.5) return { kind: "record", calls: leases.map((lease) => [generateRecording(known, lease)]) };
  if (roll < 0.82) return { kind: "park", calls: leases.map((lease) => [generateParking(known, lease)]) };
  if (roll < 0.9) return { kind: "release", calls: leases.map((lease) => [lease, drawReadyAt(known)]) };
  return { kind: "end", calls: unrelated(known, leases).map((lease) => [generateEnding(known, lease)]) };
}

/** Since when the run was ready, if its code has not been called. */
function drawReadyAt({ dice, now }: Knowledge): number | undefined {
  return dice.chance(0.5) ? now - dice.between(0, 5_000) : undefined;
}

/** Mostly a new one; now and then one whose earlier try, or a later look, has been there. */
function drawLook(dice: Knowledge["dice"]): number {
  return dice.between(1, 20);
}

/** One lease, or several of one worker, whose calls are merged: some, or what may share a pack. */
function pickLeases(known: Knowledge): readonly Lease[] {
  const { dice, snapshot, leases } = known;
  if (snapshot.lease.length === 0 || dice.chance(0.15)) {
    // Mostly one whose run is held by now under another: only there a fence can fail.
    const passed = leases.filter(({ runId, epoch }) =>
      snapshot.lease.some((row) => row.runId === runId && row.epoch !== epoch),
    );
    return [dice.pick(passed.length > 0 && dice.chance(0.7) ? passed : [neverLease, ...leases])];
  }
  const { workerId } = dice.pick(snapshot.lease);
  const held = snapshot.lease.filter((row) => row.workerId === workerId);
  const one = dice.pick(held);
  const ofItsPack = held.filter(
    ({ runId }) => runId === one.runId || known.packOf(runId) === known.packOf(one.runId),
  );
  const isTold = dice.chance(0.8);
  const picked = dice.chance(0.3) ? dice.some(held, 4) : dice.chance(0.4) ? ofItsPack : [one];
  return picked.map(({ runId, epoch }) => {
    const id = isTold && epoch === firstEpoch ? known.packOf(runId) : undefined;
    return { runId, epoch, workerId, server, ...(id !== undefined && { pack: { id, size: 1 } }) };
  });
}

/** A parent and its child that end in one call end at once, and not one after the other. */
function unrelated({ snapshot }: Knowledge, leases: readonly Lease[]): readonly Lease[] {
  const parentOf = new Map(snapshot.runs.map(({ id, parentId }) => [id, parentId]));
  const ids = new Set(leases.map(({ runId }) => runId));
  return leases.filter(({ runId }) => !ids.has(parentOf.get(runId) ?? ""));
}

function generateRecording(known: Knowledge, lease: Lease): Recording {
  const { dice } = known;
  const events = generateEvents(known, lease.runId);
  const parent = { id: lease.runId, request: `call:child#${known.nextId()}` };
  const children = dice.chance(0.25) ? [generateRun(known, { key: null, parent })] : [];
  const written = dice.chance(0.2) ? generateWritten(known, lease.runId) : [];
  return { lease, events, children, ...(written.length > 0 && { written }) };
}

/** The next items of a stream; now and then the last one is written again. */
function generateWritten({ dice, snapshot }: Knowledge, runId: RunId): readonly NewStreamItem[] {
  const name = dice.pick(["a", "b"]);
  const last = snapshot.streams.filter((item) => item.runId === runId && item.name === name).length;
  const first = last > 0 && dice.chance(0.2) ? last : last + 1;
  return Array.from({ length: dice.between(1, 3) }, (_, index) => ({
    name,
    position: first + index,
    data: pickPayload(dice),
    ...(dice.chance(0.5) ? { step: "llm", attempt: 2 } : { step: null, attempt: null }),
    isFirst: dice.chance(0.3),
    isClosing: dice.chance(0.1),
  }));
}

function generateParking(known: Knowledge, lease: Lease): Parking {
  const { dice, now } = known;
  const recording = generateRecording(known, lease);
  return {
    ...recording,
    look: drawLook(dice),
    lastSeq: Math.max(newestSeq(known, lease.runId), ...recording.events.map(({ seq }) => seq)),
    reason: dice.pick(["waiting", "waiting", "waiting", "retry", "paused", "blocked"]),
    dueAt: dice.chance(0.4) ? now + dice.pick([-1, 0, 1, 3_000]) : null,
    ...(dice.chance(0.6) && { fires: dice.pick(["s#1", "s#2", null]) }),
    delayMs: dice.chance(0.3) ? dice.pick([0, 0.5, 2_000]) : null,
    wants: dice.some([...topics, "child", "child"]),
    attemptFailed: dice.chance(0.2),
  };
}

function generateEnding(known: Knowledge, lease: Lease): Ending {
  const { dice } = known;
  const status = dice.pick(endStatuses);
  const { events, ...recording } = generateRecording(known, lease);
  const seq = Math.max(newestSeq(known, lease.runId), ...events.map((event) => event.seq)) + 1;
  const isCompleted = status === "completed";
  const { attempt = 1 } = known.snapshot.lease.find(({ runId }) => runId === lease.runId) ?? {};
  const data = isCompleted ? null : pickPayload(dice);
  const last: NewEvent = { seq, kind: status, name: null, attempt, data };
  const goesOn = isCompleted && dice.chance(0.5);
  return {
    ...recording,
    parentId: known.snapshot.runs.find(({ id }) => id === lease.runId)?.parentId ?? null,
    events: [...events, last],
    status,
    ...(goesOn && { next: generateNext(known) }),
    output: isCompleted ? pickPayload(dice) : null,
    error: isCompleted ? null : pickPayload(dice),
  };
}

function generateNext(known: Knowledge): Continuation {
  const { dice } = known;
  return {
    id: known.nextId(),
    version: dice.between(1, 2),
    input: pickPayload(dice),
    isRaw: dice.chance(0.3),
  };
}

/** Up to three facts: steps, timers, messages taken; now and then the newest one is written again. */
function generateEvents(known: Knowledge, runId: RunId): readonly NewEvent[] {
  const { dice, snapshot } = known;
  const newest = newestSeq(known, runId);
  const written = snapshot.events.find((event) => event.runId === runId && event.seq === newest);
  const unread = snapshot.inbox.filter((message) => message.runId === runId && message.takenSeq === null);
  const repeated = written && dice.chance(0.1) ? [repeatEvent(known, written)] : [];
  const others = Array.from({ length: dice.between(0, 3) }, (_, index) =>
    generateEvent(known, newest + 1 + index, unread[index]),
  );
  return [...repeated, ...others];
}

/** The same fact, which was written at another time: what was written first stays. */
function repeatEvent({ dice, now }: Knowledge, { seq, kind, name, dueAt }: SnapshotEvent): NewEvent {
  const time = dueAt === null ? {} : { delayMs: now - dueAt + dice.between(0, 1_000) };
  return { seq, kind, name, data: pickPayload(dice), ...time };
}

function generateEvent({ dice, now }: Knowledge, seq: number, message?: SnapshotMessage): NewEvent {
  const event = { seq, name: `step:s#${seq}`, data: pickPayload(dice) };
  if (message !== undefined && dice.chance(0.5)) {
    const isUpdate = message.topic.startsWith("update:");
    const kind = isUpdate ? dice.pick(["update_received", "update_answered"] as const) : "signal_received";
    return { ...event, kind, takes: message.id };
  }
  if (dice.chance(0.1))
    return { ...event, kind: "published", name: `publish:${dice.pick(["k", "l"])}#${seq}` };
  if (dice.chance(0.3)) {
    const time = dice.chance(0.5)
      ? { delayMs: dice.pick([0, 0.25, 1_000]) }
      : { dueAt: now + dice.between(-1, 4_000) };
    return { ...event, kind: "timer_set", ...time };
  }
  return { ...event, kind: "step_completed", attempt: 1, beganAt: now - 1 };
}

function newestSeq({ snapshot }: Knowledge, runId: RunId): number {
  return snapshot.events.filter((event) => event.runId === runId).length;
}
