import type { Ending, Lane, Lease, Parking, Recording } from "../../packages/pawl/src/store/lease.ts";
import type { Topic } from "../../packages/pawl/src/store/message.ts";
import { plainRun, type NewRun } from "../../packages/pawl/src/store/run-record.ts";
import type { Episode } from "./episode.ts";
import type { Match, Turn } from "./match.ts";
import type { Operation } from "./operation.ts";

const id = (number: number): string => `019b76da-0000-7000-8000-0000000001${String(number).padStart(2, "0")}`;
const [run, child, holder, peer] = [id(1), id(2), id(3), id(4)];

const leaseMs = 15_000;

const newRun = (runId: string, workflow: string, more: Partial<NewRun> = {}): NewRun => ({
  ...plainRun,
  id: runId,
  workflow,
  version: 1,
  queue: "a",
  ...more,
});

const create = (...runs: readonly NewRun[]): Operation => ({ kind: "createRuns", calls: [[runs]] });

const register = (workerId: string): Operation => ({
  kind: "registerWorker",
  calls: [[{ id: workerId, leaseMs, host: "here", pid: 1, queues: ["a"], concurrency: 9 }]],
});

const claim = (workerId: string, workflow: string, crashLimit = 3): Operation => {
  const lane: Lane = { queue: "a", workflow, version: 1, after: null, crashLimit };
  return {
    kind: "claimRuns",
    calls: [[{ workerId, lanes: [lane], limit: 5, suspects: false, begin: true }]],
  };
};

const tell = (number: number, topic: Topic, idempotencyKey: string | null = null): Operation => ({
  kind: "tell",
  calls: [[{ id: id(number), runId: run, topic, data: null, idempotencyKey }]],
});

const writing = (runId: string, workerId: string, ...events: Recording["events"]): Recording => {
  const lease: Lease = { runId, epoch: 1, workerId };
  return { lease, events, children: [] };
};

const park = (wants: readonly Topic[], delayMs: number | null = null): Operation => {
  const terms = { lastSeq: 0, look: 1, reason: "waiting", dueAt: null, attemptFailed: false } as const;
  const parking: Parking = { ...writing(run, holder), ...terms, delayMs, wants };
  return { kind: "park", calls: [[parking]] };
};

const end = (runId: string, workerId: string, more: Partial<Ending> = {}): Operation => {
  const last = { seq: 1, kind: "completed", name: null, attempt: 1, data: null } as const;
  const ending: Ending = {
    ...writing(runId, workerId, last),
    parentId: runId === child ? run : null,
    status: "completed",
    output: null,
    error: null,
    ...more,
  };
  return { kind: "end", calls: [[ending]] };
};

const record: Operation = {
  kind: "record",
  calls: [[writing(run, holder, { seq: 1, kind: "step_completed", name: "s", data: null })]],
};

const terminate: Operation = { kind: "terminate", calls: [[run, null]] };
const retire: Operation = { kind: "retireWorker", calls: [[holder]] };

/** The run and its child, each held by a worker of its own. */
const held: readonly Operation[] = [
  register(holder),
  register(peer),
  create(newRun(run, "w")),
  create(newRun(child, "v", { parent: { id: run, request: "call:v#1" } })),
  claim(holder, "w"),
  claim(peer, "v"),
];

/** The run waits for a signal, or for a time that comes in 1 s; so much of it has passed. */
const waiting = (ms: number): readonly Operation[] => [
  ...held,
  park(["signal:a", "cancel"], 1_000),
  { kind: "advance", ms },
];

/** Nobody has heard of the workers for so long; the child's must not crash once. */
const silent = (ms: number): readonly Operation[] => [
  ...held.slice(0, -1),
  claim(peer, "v", 1),
  { kind: "advance", ms },
];

/** A run with a key, which goes on as another. */
const keyed: readonly Operation[] = [
  register(holder),
  create(newRun(run, "w", { key: "k" })),
  claim(holder, "w"),
  tell(12, "signal:b", "x"),
];
const goOn = end(run, holder, { next: { id: id(6), version: 1, input: null, isRaw: false } });

const ended: readonly Operation[] = [...held, terminate];

const inBothOrders = (
  before: readonly Operation[],
  ones: readonly Operation[],
  others: readonly Operation[],
): readonly (readonly Turn[])[] => {
  const first = before.map((operation): Turn => [operation]);
  const after = (one: Operation, other: Operation): readonly Turn[] => [...first, [one, other]];
  return ones.flatMap((one) => others.flatMap((other) => [after(one, other), after(other, one)]));
};

const signalOrStart = (runId: string, messageId: string): Operation => ({
  kind: "signalOrStart",
  calls: [
    [
      {
        run: newRun(runId, "w", { key: "k" }),
        message: { id: messageId, topic: "signal:a", data: null, idempotencyKey: null },
        boundTo: null,
      },
    ],
  ],
});

const redrive = (): Operation => ({ kind: "redrive", calls: [[[run]]] });

const wakeDue: Operation = { kind: "wakeDue", calls: [[100]] };
const sweep: Operation = { kind: "sweep", calls: [[{ limit: 100, after: null }]] };

/** What must be kept apart by locks, by all who take them, in either order: chance need not find these. */
const closePairs: readonly (readonly Turn[])[] = [
  ...inBothOrders(
    held,
    [park(["signal:a", "cancel"]), park(["child", "cancel"]), record, end(run, holder)],
    [tell(10, "signal:a"), tell(11, "cancel"), terminate, retire, end(child, peer)],
  ),
  ...inBothOrders(waiting(999), [wakeDue], [tell(10, "signal:b")]),
  ...inBothOrders(waiting(1_000), [wakeDue], [tell(10, "signal:a"), tell(11, "cancel"), terminate]),
  ...inBothOrders(silent(leaseMs - 1), [sweep], [record]),
  ...inBothOrders(
    silent(leaseMs),
    [sweep],
    [
      record,
      end(child, peer),
      tell(10, "signal:a"),
      { kind: "heartbeat", calls: [[{ workerId: holder, held: [], claimsKnownTo: null }]] },
    ],
  ),
  ...inBothOrders(
    keyed,
    [goOn],
    [create(newRun(id(5), "w", { key: "k" })), tell(10, "signal:a", "x"), terminate],
  ),
  ...inBothOrders(ended, [redrive()], [redrive()]),
  ...inBothOrders(held, [tell(10, "signal:a", "x")], [tell(11, "signal:a", "x")]),
  ...inBothOrders([], [create(newRun(run, "w", { key: "k" }))], [create(newRun(id(5), "w", { key: "k" }))]),
  ...inBothOrders([], [signalOrStart(run, id(10))], [signalOrStart(id(5), id(11))]),
];

/** Plays all of them, each from empty stores, until the stores differ. */
export async function playClosePairs(matches: readonly Match[]): Promise<Episode | null> {
  const left = closePairs[Symbol.iterator]();
  let different: Episode | null = null;
  const play = async (match: Match): Promise<void> => {
    for (let next = left.next(); next.done !== true && different === null; next = left.next()) {
      const difference = await playTurns(match, next.value);
      if (difference !== null) different = { turns: next.value, difference };
    }
  };
  await Promise.all(matches.map(play));
  return different;
}

async function playTurns(match: Match, turns: readonly Turn[]): Promise<string | null> {
  await match.begin();
  for (const turn of turns) {
    const { difference } = await match.play(turn, turns.length);
    if (difference !== null) return difference;
  }
  return null;
}
