import type { EventKind } from "../../packages/pawl/src/core/event.ts";
import type {
  SnapshotEvent,
  SnapshotMessage,
  SnapshotRun,
  StoreSnapshot,
} from "../../packages/pawl/src/store/snapshot.ts";
import type { ExpectedRun } from "./check-outcomes.ts";
import type { ObservedHistory } from "./check.ts";
import type {
  ClientEntry,
  DeliveryEntry,
  RecordedFact,
  StepEntry,
  StoreEntry,
  StoreOperation,
} from "./record.ts";

export const run = "00000000-0000-7000-8000-000000000001";
export const worker = "w1";

export function storeEntry(at: number, operation: StoreOperation, process: string = worker): StoreEntry {
  return { by: "store", type: "ok", at, process, ...operation };
}

export function clientEntry(
  at: number,
  entry: Partial<ClientEntry> & Pick<ClientEntry, "op" | "type">,
): ClientEntry {
  return { by: "client", at, process: "c1", call: at, run, key: null, value: null, ...entry };
}

export function stepEntry(at: number, entry: Partial<StepEntry> & Pick<StepEntry, "type">): StepEntry {
  const base = { by: "step", at, process: worker, run, step: "p.0", epoch: 1, attempt: 1 } as const;
  return { ...base, token: "p.0#1", key: entry.step ?? "a", stepAttempt: 1, isUndoable: false, ...entry };
}

export function delivery(at: number, entry: Partial<DeliveryEntry> = {}): DeliveryEntry {
  const base = {
    by: "delivery",
    type: "ok",
    at,
    process: worker,
    run,
    step: "p.0",
    epoch: 1,
    index: 0,
    now: 30,
    random: 0.5,
  } as const;
  return { ...base, value: '"p.0#1"', ...entry };
}

export function fact(seq: number, kind: EventKind, value?: unknown): RecordedFact {
  return {
    seq,
    kind,
    name: kind.startsWith("step") ? "a" : null,
    data: value === undefined ? null : JSON.stringify(value),
    takes: null,
  };
}

export function event(
  seq: number,
  at: number,
  kind: EventKind,
  more: Partial<SnapshotEvent> = {},
): SnapshotEvent {
  const nothing = { name: null, attempt: null, beganAt: null, dueAt: null, workerId: null, data: null };
  return { runId: run, seq, kind, at, ...nothing, ...more };
}

export function message(id: string, sentAt: number, more: Partial<SnapshotMessage> = {}): SnapshotMessage {
  const base = {
    runId: run,
    topic: "signal:s",
    name: null,
    data: null,
    idempotencyKey: null,
    sentTo: null,
    takenSeq: null,
    answerSeq: null,
  };
  return { id, sentAt, ...base, ...more };
}

export const endedRun: SnapshotRun = {
  id: run,
  workflow: "program",
  version: 1,
  queue: "default",
  priority: 0,
  input: null,
  isRaw: false,
  key: "k",
  tags: [],
  retry: null,
  startAt: null,
  expiresAt: null,
  deadlineAt: null,
  parentId: null,
  parentRequest: null,
  rootId: run,
  depth: 0,
  isDetached: false,
  forkedFrom: null,
  firstId: run,
  continuedAs: null,
  createdAt: 2,
  status: "completed",
  output: { value: ["p.0#1"] },
  error: null,
  endedAt: 30,
  epoch: 1,
  attempt: 1,
};

export const expectation: ExpectedRun = {
  ends: { completes: true, causes: new Set(), waits: false },
  attempts: 1,
  crashLimit: 1_000,
  mismatch: (output) => (JSON.stringify(output) === '["p.0#1"]' ? null : "another output"),
};

export const waitsForEver: Partial<ExpectedRun> = {
  ends: { completes: false, causes: new Set(), waits: true },
};

const snapshot: StoreSnapshot = {
  runs: [endedRun],
  ready: [],
  lease: [],
  parked: [],
  events: [
    event(1, 20, "step_completed", { name: "a", data: { value: "p.0#1" } }),
    event(2, 30, "completed", { data: { value: ["p.0#1"] } }),
  ],
  inbox: [],
  keys: [{ key: "k", runId: run }],
  workers: [],
  streams: [],
  stopped: [],
  tags: [],
};

export const created = {
  op: "create",
  run,
  wanted: run,
  call: 0,
  key: null,
  mustBeNew: false,
  parent: null,
  answer: "created",
  startAt: null,
  expiresAt: null,
  deadlineAt: null,
} as const satisfies StoreOperation;

/** One run of one step that went well, as its observers saw it. Tests spoil it. */
export const healthy = {
  entries: [
    storeEntry(0, { op: "register", leaseMs: 100 }),
    clientEntry(1, { op: "start", type: "invoke", run: null, key: "k" }),
    storeEntry(2, { ...created, key: "k" }, "c1"),
    clientEntry(3, { op: "start", type: "ok", key: "k" }),
    storeEntry(10, { op: "claim", run, epoch: 1 }),
    stepEntry(11, { type: "invoke" }),
    stepEntry(12, { type: "ok" }),
    storeEntry(20, { op: "record", run, epoch: 1, facts: [fact(1, "step_completed", "p.0#1")] }),
    delivery(21),
    storeEntry(30, {
      op: "end",
      run,
      epoch: 1,
      facts: [fact(2, "completed", ["p.0#1"])],
      status: "completed",
      result: '["p.0#1"]',
    }),
    clientEntry(40, { op: "result", type: "ok", value: { status: "completed", output: ["p.0#1"] } }),
  ],
  snapshot,
  expected: () => expectation,
} as const satisfies ObservedHistory;
