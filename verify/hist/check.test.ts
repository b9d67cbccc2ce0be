import { expect, test } from "vitest";
import type { StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import type { ExpectedRun } from "./check-outcomes.ts";
import { checkHistory } from "./check.ts";
import {
  clientEntry,
  created,
  delivery,
  endedRun,
  event,
  expectation,
  fact,
  healthy,
  message,
  run,
  stepEntry,
  storeEntry,
  waitsForEver,
  worker,
} from "./healthy-history.ts";
import type { EffectEntry, Entry, StepEntry, StoreEntry } from "./record.ts";

interface Spoiled {
  /** Inserted by their time. */
  readonly entries?: readonly Entry[];
  readonly without?: (entry: Entry) => boolean;
  readonly snapshot?: Partial<StoreSnapshot>;
  readonly expected?: Partial<ExpectedRun>;
}

/** The invariants that a healthy history breaks once it is spoiled. */
function broken({
  entries = [],
  without = () => false,
  snapshot = {},
  expected = {},
}: Spoiled): readonly string[] {
  const kept = healthy.entries.filter((entry) => !without(entry));
  const violations = checkHistory({
    entries: [...kept, ...entries].toSorted((a, b) => a.at - b.at),
    snapshot: { ...healthy.snapshot, ...snapshot },
    expected: () => ({ ...expectation, ...expected }),
  });
  for (const { witness } of violations) expect(witness.length).toBeGreaterThan(0);
  return [...new Set(violations.map(({ invariant }) => invariant))].toSorted();
}

const events = healthy.snapshot.events;
const live = { ...endedRun, status: null, output: null, endedAt: null };
const room = { runId: run, epoch: 1, lastSeq: 1, attempt: 1, failures: 0, crashes: 0, suspicion: 0 };
const waiting = { ...room, reason: "waiting", dueAt: null, wants: [], fires: null } as const;
const claimedAgain = storeEntry(150, { op: "claim", run, epoch: 2 }, "w2");
const otherWorker = storeEntry(0, { op: "register", leaseMs: 100 }, "w2");
const isEnd = (entry: Entry): boolean => entry.by === "store" && entry.op === "end";

test("a healthy history breaks nothing", () => {
  expect(broken({})).toEqual([]);
});

test("I1: an acknowledged run that is not there is missed", () => {
  const other = "00000000-0000-7000-8000-000000000002";
  expect(broken({ entries: [clientEntry(3, { op: "start", type: "ok", run: other })] })).toEqual(["I1"]);
});

test("I1: an acknowledged signal that is not there is missed", () => {
  expect(broken({ entries: [clientEntry(9, { op: "signal", type: "ok", key: "s1" })] })).toEqual(["I1"]);
});

test("I1: an accepted message that is not there is missed", () => {
  const tell = storeEntry(
    9,
    { op: "tell", run, message: "m1", topic: "signal:s", key: "s1", answer: "accepted" },
    "c1",
  );
  expect(broken({ entries: [tell] })).toEqual(["I1"]);
});

test("I1: an acknowledged cancel that left no trace in a living run is missed", () => {
  const spoiled = {
    entries: [clientEntry(9, { op: "cancel", type: "ok" })],
    without: (entry: Entry) => isEnd(entry) || (entry.by === "client" && entry.op === "result"),
    snapshot: { runs: [live], parked: [waiting], events: events.slice(0, 1) },
    expected: waitsForEver,
  } as const;
  expect(broken(spoiled)).toEqual(["I1"]);
});

test("I1: a room without its run is half a run", () => {
  expect(
    broken({
      snapshot: { ready: [{ ...room, lastSeq: 0, runId: "x", told: false, readyAt: 0, expiresAt: null }] },
    }),
  ).toEqual(["I1"]);
});

test("I2: a child that no record speaks of is noticed", () => {
  const child = { ...endedRun, id: "child", key: null, parentId: run, parentRequest: "program" };
  const childEvents = events.map((event) => ({ ...event, runId: "child" }));
  expect(broken({ snapshot: { runs: [endedRun, child], events: [...events, ...childEvents] } })).toEqual([
    "I2",
  ]);
});

test("I2: a recorded child that does not exist is noticed", () => {
  const started = event(1, 15, "child_started", { name: "program" });
  const later = events.map((event) => ({ ...event, seq: event.seq + 1 }));
  const without = (entry: Entry): boolean =>
    entry.by === "store" && entry.op !== "claim" && entry.op !== "register";
  const spoiled = {
    snapshot: { events: [started, ...later] },
    without: (entry: Entry) => without(entry) || entry.by === "delivery",
  };
  expect(broken(spoiled)).toEqual(["I2"]);
});

const transactional = (entry: Partial<StepEntry> & Pick<StepEntry, "type">): StepEntry =>
  stepEntry(entry.type === "invoke" ? 11 : 12, { isTransactional: true, ...entry });
const isCall = (entry: Entry): boolean => entry.by === "step";
const effect = (at: number, more: Partial<EffectEntry> = {}): EffectEntry => {
  const written = { run, step: "p.0", key: "a", token: "p.0#1", database: "own" } as const;
  return { by: "effect", at, process: worker, ...written, ...more };
};
const calledInTransaction = [transactional({ type: "invoke" }), transactional({ type: "ok" })];

test("I2: a transaction whose record and effect are there is fine", () => {
  expect(broken({ without: isCall, entries: [...calledInTransaction, effect(20)] })).toEqual([]);
});

test("I2: a recorded transaction without its effect is noticed", () => {
  expect(broken({ without: isCall, entries: calledInTransaction })).toEqual(["I2"]);
});

test("I2: the effect of a transaction that is not recorded is noticed, unless it is in another database", () => {
  const call = { isTransactional: true, step: "p.1", key: "b", token: "p.1#2" } as const;
  const calls = [stepEntry(13, { type: "invoke", ...call }), stepEntry(14, { type: "ok", ...call })];
  const left = { step: "p.1", key: "b", token: "p.1#2" };
  expect(broken({ entries: [...calls, effect(15, left)] })).toEqual(["I2"]);
  expect(broken({ entries: [...calls, effect(15, { ...left, database: "foreign" })] })).toEqual([]);
});

test("I2: an effect that is there twice is noticed", () => {
  const twice = [effect(20), effect(21, { token: "p.0#2", database: "foreign" })];
  expect(broken({ without: isCall, entries: [...calledInTransaction, ...twice] })).toEqual(["I2"]);
});

test("I3: a step that runs again after its result was recorded is noticed", () => {
  const again = [stepEntry(25, { type: "invoke", attempt: 1, token: "p.0#2", epoch: 2 })];
  expect(broken({ entries: again })).toEqual(["I3"]);
});

test("I3: a zombie that does not know of the recorded result is let be", () => {
  const entries = healthy.entries.map((entry) =>
    entry.by === "store" && "epoch" in entry ? { ...entry, epoch: entry.epoch + 1 } : entry,
  );
  const zombie = stepEntry(25, { type: "invoke", token: "p.0#2", epoch: 1 });
  const first = storeEntry(5, { op: "claim", run, epoch: 1 });
  const released = storeEntry(6, { op: "release", run, epoch: 1 });
  const ran = stepEntry(12, { type: "ok", epoch: 2 });
  const all = [...entries.filter((entry) => entry.by !== "step"), first, released, ran, zombie];
  const violations = checkHistory({ ...healthy, entries: all.toSorted((a, b) => a.at - b.at) });
  expect(violations).toEqual([]);
});

test("I3: a holder that calls a step twice is noticed", () => {
  expect(broken({ entries: [stepEntry(11.5, { type: "invoke", token: "p.0#2" })] })).toEqual(["I3"]);
});

test("I3: a step that runs again in the attempt in which it failed is noticed", () => {
  const failed = fact(1, "step_failed", { message: "p.1#7" });
  const spoiled = [
    stepEntry(11.1, { type: "invoke", step: "p.1", token: "p.1#7" }),
    stepEntry(11.2, { type: "fail", step: "p.1", token: "p.1#7" }),
    storeEntry(11.3, { op: "record", run, epoch: 1, facts: [failed] }),
    stepEntry(11.4, { type: "invoke", step: "p.1", token: "p.1#8", epoch: 2 }),
  ];
  expect(broken({ entries: spoiled })).toContain("I3");
});

test("I3: an attempt with a lower number than an earlier one is noticed", () => {
  const later = stepEntry(11.5, { type: "invoke", step: "p.1", epoch: 2, attempt: 0 });
  expect(broken({ entries: [later] })).toEqual(["I3"]);
});

test("I3: attempts that are not 1, 2, 3, … and more failures than allowed are noticed", () => {
  const failed = event(3, 25, "attempt_failed", { attempt: 2 });
  const last = events.map((event) => (event.seq === 2 ? { ...event, seq: 3 } : event));
  const without = (entry: Entry): boolean => isEnd(entry);
  expect(broken({ snapshot: { events: [last[0]!, { ...failed, seq: 2 }, last[1]!] }, without })).toEqual([
    "I3",
  ]);
  const first = { ...failed, seq: 2, attempt: 1 };
  const spoiled = { snapshot: { events: [last[0]!, first, last[1]!] }, without, expected: { attempts: 0 } };
  expect(broken(spoiled)).toEqual(["I3"]);
});

test("I3: a recorded result that no call returned is noticed", () => {
  expect(broken({ without: (entry) => entry.by === "step" })).toEqual(["I3"]);
});

test("I4: a gap in the history is noticed", () => {
  const gap = events.map((event) => (event.seq === 2 ? { ...event, seq: 3 } : event));
  expect(broken({ snapshot: { events: gap } })).toContain("I4");
});

test("I4: an accepted fact that changed later is noticed", () => {
  const changed = events.map((event) => (event.seq === 1 ? { ...event, data: { value: "p.0#9" } } : event));
  expect(broken({ snapshot: { events: changed } })).toEqual(["I4"]);
});

test("I4: a read that is no prefix of the final history is noticed", () => {
  const load = storeEntry(25, { op: "load", run, facts: [fact(1, "step_completed", "p.0#9")] });
  expect(broken({ entries: [load] })).toEqual(["I4"]);
});

test("I4: a room that miscounts its run's events is noticed", () => {
  const spoiled = {
    snapshot: { runs: [live], events: events.slice(0, 1), parked: [{ ...waiting, lastSeq: 0 }] },
    without: (entry: Entry) => isEnd(entry) || (entry.by === "client" && entry.op === "result"),
    expected: waitsForEver,
  } as const;
  expect(broken(spoiled)).toEqual(["I4"]);
});

test("I5: a write accepted from somebody who lost the lease is noticed", () => {
  const spoiled = [
    otherWorker,
    storeEntry(21, { op: "release", run, epoch: 1 }),
    storeEntry(22, { op: "claim", run, epoch: 2 }, "w2"),
  ];
  expect(broken({ entries: spoiled })).toEqual(["I5"]);
});

test("I5: a refused write that changed something is noticed", () => {
  expect(broken({ entries: [storeEntry(50, { op: "leak", run, epoch: 1, what: "a row" })] })).toEqual(["I5"]);
});

test("I5: an epoch that is skipped is noticed", () => {
  const released = storeEntry(60, { op: "release", run, epoch: 1 });
  const skipped = storeEntry(70, { op: "claim", run, epoch: 3 });
  expect(broken({ entries: [released, skipped], without: isEnd })).toEqual(["I5"]);
});

test("I6: a claim of a run whose holder is alive is noticed", () => {
  const heard = storeEntry(90, {
    op: "heartbeat",
    isAlive: true,
    held: [{ run, epoch: 1 }],
    claimsKnownTo: null,
    returned: 0,
  });
  const sweep = storeEntry(140, { op: "sweep", recovered: 0, rescued: 0 }, "w2");
  const spoiled = { entries: [heard, otherWorker, sweep, { ...claimedAgain, at: 141 }], without: isEnd };
  const violations = broken({ ...spoiled, entries: spoiled.entries });
  expect(violations).toContain("I6");
});

test("I6: a claim after the holder expired and was swept is fine", () => {
  const heard = storeEntry(100, { op: "register", leaseMs: 100 }, "w3");
  const sweep = storeEntry(140, { op: "sweep", recovered: 0, rescued: 0 }, "w3");
  const claim = storeEntry(150, { op: "claim", run, epoch: 2 }, "w3");
  expect(broken({ entries: [heard, sweep, claim], without: isEnd })).toEqual([]);
  const sweepOf = (retired: string): StoreEntry => ({
    ...sweep,
    op: "sweep",
    recovered: 0,
    rescued: 0,
    retired,
  });
  expect(broken({ entries: [heard, sweepOf("w1"), claim], without: isEnd })).toEqual([]);
  expect(broken({ entries: [heard, sweepOf("w2"), claim], without: isEnd })).toEqual(["I6"]);
});

test("I6: a heartbeat that revives an expired worker is noticed", () => {
  const heard = storeEntry(100, {
    op: "heartbeat",
    isAlive: true,
    held: [],
    claimsKnownTo: null,
    returned: 0,
  });
  expect(broken({ entries: [heard] })).toEqual(["I6"]);
});

test("I6: a claim by a worker that has ended is noticed", () => {
  const retired = storeEntry(5, { op: "retire", worker });
  expect(broken({ entries: [retired] })).toEqual(["I6"]);
});

test("I7: a run that ends twice is noticed", () => {
  const again = healthy.entries.filter(isEnd).map((entry) => ({ ...entry, at: 31 }));
  expect(broken({ entries: again })).toContain("I7");
});

test("I7: a waiter with another answer is noticed", () => {
  const other = clientEntry(41, {
    op: "result",
    type: "ok",
    value: { status: "completed", output: ["else"] },
  });
  expect(broken({ entries: [other] })).toEqual(["I7"]);
});

test("I7: a terminal event that is not the last is noticed", () => {
  const late = event(3, 31, "signal_received");
  expect(broken({ snapshot: { events: [...events, late] } })).toContain("I7");
});

test("I8: a step that starts after its holder was told of a cancel is noticed", () => {
  const cancel = { op: "tell", run, message: "m1", topic: "cancel", key: null, answer: "accepted" } as const;
  const write = { op: "record", run, epoch: 1, facts: [] } as const;
  const next = stepEntry(25, { type: "invoke", step: "p.1", token: "p.1#2" });
  const inbox = { inbox: [message("m1", 13, { topic: "cancel" })] };
  const told = [storeEntry(13, cancel, "c1"), storeEntry(21, write), next];
  expect(broken({ entries: told, snapshot: inbox })).toEqual(["I8"]);
  const untold = [storeEntry(13, cancel, "c1"), next];
  expect(broken({ entries: untold, snapshot: inbox })).toEqual([]);
  expect(
    broken({
      entries: [storeEntry(5, cancel, "c1")],
      snapshot: { inbox: [message("m1", 5, { topic: "cancel" })] },
    }),
  ).toEqual(["I8"]);
});

test("I9: a timer that fires early is noticed, and one that fires twice", () => {
  const set = event(3, 31, "timer_set", { name: "sleep", dueAt: 50 });
  const early = event(4, 49, "timer_fired", { name: "sleep" });
  const again = event(5, 55, "timer_fired", { name: "sleep" });
  const spoiled = { runs: [live], parked: [{ ...waiting, lastSeq: 4 }] };
  const without = (entry: Entry): boolean => isEnd(entry) || (entry.by === "client" && entry.op === "result");
  const head = events.slice(0, 1);
  const timers = (...list: (typeof set)[]): StoreSnapshot["events"] => [
    ...head,
    ...list.map((item, index) => ({ ...item, seq: index + 2 })),
  ];
  const expected = waitsForEver;
  const parked = (lastSeq: number): StoreSnapshot["parked"] => [{ ...waiting, lastSeq }];
  expect(
    broken({ snapshot: { ...spoiled, parked: parked(3), events: timers(set, early) }, without, expected }),
  ).toEqual(["I9"]);
  expect(
    broken({ snapshot: { ...spoiled, parked: parked(3), events: timers(set, again) }, without, expected }),
  ).toEqual([]);
  expect(
    broken({
      snapshot: { ...spoiled, parked: parked(4), events: timers(set, again, again) },
      without,
      expected,
    }),
  ).toEqual(["I9"]);
});

test("I9: code that goes on before its time is noticed", () => {
  const ask = { by: "ask", at: 10, process: worker, run, step: "p.0", epoch: 1, waitMs: 12 } as const;
  const isDelivery = (entry: Entry): boolean => entry.by === "delivery";
  expect(broken({ entries: [ask, delivery(21, { value: "null" })], without: isDelivery })).toEqual(["I9"]);
  expect(broken({ entries: [ask, delivery(22, { value: "null" })], without: isDelivery })).toEqual([]);
});

test("I10: two messages with one idempotency key are noticed", () => {
  const inbox = [message("m1", 5, { idempotencyKey: "s" }), message("m2", 6, { idempotencyKey: "s" })];
  expect(broken({ snapshot: { inbox } })).toEqual(["I10"]);
});

test.for([
  { what: "signals taken out of order are noticed", secondSentAt: 6, broken: ["I10"] },
  { what: "of signals sent in one instant either may be taken first", secondSentAt: 5, broken: [] },
])("I10: $what", ({ secondSentAt, broken: expected }) => {
  const received = [event(1, 15, "signal_received"), event(2, 16, "signal_received")];
  const inbox = [message("m1", 5, { takenSeq: 2 }), message("m2", secondSentAt, { takenSeq: 1 })];
  const later = events.map((event) => ({ ...event, seq: event.seq + 2 }));
  const without = (entry: Entry): boolean =>
    entry.by === "store" && (entry.op === "record" || entry.op === "end");
  const spoiled = {
    snapshot: { inbox, events: [...received, ...later] },
    without: (entry: Entry) => without(entry) || entry.by === "delivery",
  };
  expect(broken(spoiled)).toEqual(expected);
});

test("I10: a message taken by a fact of another kind is noticed", () => {
  expect(broken({ snapshot: { inbox: [message("m1", 5, { takenSeq: 1 })] } })).toEqual(["I10"]);
});

test("I10: a message accepted by a run that has ended is noticed", () => {
  const tell = storeEntry(
    35,
    { op: "tell", run, message: "m1", topic: "signal:s", key: null, answer: "accepted" },
    "c1",
  );
  expect(broken({ entries: [tell], snapshot: { inbox: [message("m1", 35)] } })).toEqual(["I10"]);
});

test("I12: one key answered with two runs is noticed", () => {
  const twin = { ...endedRun, id: "twin" };
  const twinEvents = events.map((event) => ({ ...event, runId: "twin" }));
  const snapshot = { runs: [endedRun, twin], events: [...events, ...twinEvents] };
  const start = clientEntry(4, { op: "start", type: "ok", run: "twin", key: "k" });
  expect(broken({ entries: [start], snapshot })).toEqual(["I12"]);
});

test("I14: two executions that are handed different results are noticed", () => {
  expect(broken({ entries: [delivery(22, { step: "p.1" })] })).toEqual(["I14"]);
});

test("I14: two executions that are told another time or chance are noticed", () => {
  expect(broken({ entries: [delivery(22)] })).toEqual([]);
  expect(broken({ entries: [delivery(22, { now: 31 })] })).toEqual(["I14"]);
  expect(broken({ entries: [delivery(22, { random: 0.6 })] })).toEqual(["I14"]);
});

test("I14: a result delivered before it was recorded is noticed", () => {
  expect(broken({ entries: [delivery(13)] })).toEqual(["I14"]);
});

test("I14: an output that the program does not give is noticed", () => {
  expect(broken({ expected: { mismatch: () => "another output" } })).toEqual(["I14"]);
  expect(
    broken({ expected: { ends: { completes: false, causes: new Set(["p.0"]), waits: false } } }),
  ).toEqual(["I14"]);
});

test("I14: a deterministic run that is blocked is noticed", () => {
  const spoiled = {
    snapshot: { runs: [live], events: events.slice(0, 1), parked: [{ ...waiting, reason: "blocked" }] },
    without: (entry: Entry) => isEnd(entry) || (entry.by === "client" && entry.op === "result"),
    expected: waitsForEver,
  } as const;
  expect(broken(spoiled)).toEqual(["I14"]);
});

test("I17: a run that should have ended and lives is noticed", () => {
  const spoiled = {
    snapshot: { runs: [live], events: events.slice(0, 1), parked: [waiting] },
    without: (entry: Entry) => isEnd(entry) || (entry.by === "client" && entry.op === "result"),
  };
  expect(broken(spoiled)).toEqual(["I17"]);
});

test("I23: a sweep that had to wake somebody is noticed", () => {
  expect(broken({ entries: [storeEntry(50, { op: "sweep", recovered: 0, rescued: 1 })] })).toEqual(["I23"]);
});

test("I23: a run in two rooms, or in none, is noticed", () => {
  const without = (entry: Entry): boolean => isEnd(entry) || (entry.by === "client" && entry.op === "result");
  const alive = { runs: [live], events: events.slice(0, 1) };
  const ready = [{ ...room, told: false, readyAt: 0, expiresAt: null }];
  const expected = waitsForEver;
  expect(broken({ snapshot: { ...alive, parked: [waiting], ready }, without, expected })).toEqual(["I23"]);
  expect(broken({ snapshot: alive, without, expected })).toEqual(["I23"]);
});

const redrive = storeEntry(30, { op: "redrive", answers: [[run, "redriven"]] }, "c1");
const failedEnd = { op: "end", run, epoch: 1, status: "failed", result: "null", facts: [] } as const;
/** The run failed at 25, was redriven, and completed as ever. */
const secondLife = {
  entries: [
    storeEntry(25, failedEnd),
    redrive,
    storeEntry(31, { op: "claim", run, epoch: 2 }),
    storeEntry(35, {
      op: "end",
      run,
      epoch: 2,
      facts: [fact(4, "completed", ["p.0#1"])],
      status: "completed",
      result: '["p.0#1"]',
    }),
  ],
  without: isEnd,
  snapshot: {
    runs: [{ ...endedRun, epoch: 2, attempt: 2 }],
    events: [
      ...events.slice(0, 1),
      event(2, 25, "failed", { attempt: 1 }),
      event(3, 30, "redriven"),
      event(4, 35, "completed", { attempt: 2, data: { value: ["p.0#1"] } }),
    ],
  },
} as const;

test("a second life breaks nothing", () => {
  expect(broken(secondLife)).toEqual([]);
});

test("I1: a redrive that is not in the history is missed", () => {
  expect(broken({ entries: [{ ...redrive, at: 39 }] })).toContain("I1");
});

test("I1: a terminated run that did not end as cancelled is noticed", () => {
  const terminate = { op: "terminate", run, wasHeld: false, answer: "terminated" } as const;
  expect(broken({ entries: [storeEntry(39, terminate, "c1")] })).toContain("I1");
});

test("I3: attempts that begin again at 1 in another life are noticed", () => {
  const { snapshot } = secondLife;
  const again = snapshot.events.map((item) => ({ ...item, attempt: item.attempt === null ? null : 1 }));
  expect(broken({ ...secondLife, snapshot: { ...snapshot, events: again } })).toEqual(["I3"]);
});

test("I5: a write accepted from a holder of an earlier life is noticed", () => {
  const late = storeEntry(30, { op: "record", run, epoch: 1, facts: [] });
  expect(broken({ ...secondLife, entries: [...secondLife.entries, late] })).toContain("I5");
});

test("I7: another life after one that completed is noticed", () => {
  const { snapshot } = secondLife;
  const completed = snapshot.events.map((item) =>
    item.kind === "failed" ? { ...item, kind: "completed" as const } : item,
  );
  const end = storeEntry(25, { ...failedEnd, status: "completed" });
  const entries = [end, ...secondLife.entries.slice(1)];
  expect(broken({ ...secondLife, entries, snapshot: { ...snapshot, events: completed } })).toEqual(["I7"]);
});

test("I8: a step that starts in a terminated run whose holder was refused is noticed", () => {
  const entries = [
    storeEntry(31, { op: "terminate", run, wasHeld: true, answer: "terminated" }, "c1"),
    { ...storeEntry(32, { op: "record", run, epoch: 1, facts: [] }), type: "fail" } as const,
    stepEntry(33, { type: "invoke", step: "p.1", token: "p.1#2" }),
  ];
  expect(broken({ entries })).toContain("I8");
});

test("I9: a run that is claimed before its start, or begins after its expiry, is noticed", () => {
  const of = (times: { readonly startAt?: number; readonly expiresAt?: number }): readonly string[] =>
    broken({
      entries: [storeEntry(2, { ...created, key: "k", ...times }, "c1")],
      without: (entry) => entry.by === "store" && entry.op === "create",
      snapshot: { runs: [{ ...endedRun, ...times }] },
    });
  expect(of({ startAt: 10 })).toEqual([]);
  expect(of({ startAt: 11 })).toEqual(["I9"]);
  expect(of({ expiresAt: 11 })).toEqual([]);
  expect(of({ expiresAt: 10 })).toEqual(["I9"]);
});

test("I12: what a withheld call leaves behind is noticed", () => {
  const withheld = { ...created, call: 7, run: "w", wanted: "w", answer: "withheld" } as const;
  const conflict = { ...created, call: 7, wanted: "x", key: "k", answer: "conflict" } as const;
  const entries = [storeEntry(5, withheld, "c1"), storeEntry(5, conflict, "c1")];
  expect(broken({ entries })).toEqual([]);
  const keys = [...healthy.snapshot.keys, { key: "kept", runId: "w" }];
  expect(broken({ entries, snapshot: { keys } })).toEqual(["I12"]);
  const half = [storeEntry(5, { ...withheld, run, answer: "existing" }, "c1"), ...entries.slice(1)];
  expect(broken({ entries: half })).toEqual(["I12"]);
});

test("I3: a step that must not be is called again after its worker died", () => {
  const call = { type: "invoke", step: "p.1", token: "p.1#2", failsOnCrash: true } as const;
  const entries = [stepEntry(25, call), otherWorker, claimedAgain, stepEntry(151, { ...call, epoch: 2 })];
  expect(broken({ without: isEnd, entries })).toContain("I3");
});

test("I1: a signal that started a run and is not there is missed", () => {
  const started = clientEntry(9, { op: "signalOrStart", type: "ok", key: "k", value: "hello:0" });
  expect(broken({ entries: [started] })).toEqual(["I1"]);
  const inbox = [message("m", 8, { idempotencyKey: "hello:0" })];
  expect(broken({ entries: [started], snapshot: { inbox } })).toEqual([]);
});

test("I14: a run that began anew and is given what it had done before is noticed", () => {
  const given = delivery(33, { epoch: 2 });
  const fresh = storeEntry(30, { op: "redrive", answers: [[run, "redriven"]], isFresh: true }, "c1");
  const kept = secondLife.entries.filter((entry) => entry !== redrive);
  expect(broken({ ...secondLife, entries: [...secondLife.entries, given] })).toEqual([]);
  expect(broken({ ...secondLife, entries: [...kept, fresh, given] })).toEqual(["I14"]);
  const givenToFork = delivery(33, { run: "fork", epoch: 0 });
  expect(broken({ ...secondLife, entries: [...kept, fresh, givenToFork] })).toEqual([]);
});
