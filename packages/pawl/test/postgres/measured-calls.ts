import { createIds } from "../../src/core/ids.ts";
import type { Payload } from "../../src/core/json.ts";
import type { PostgresStore } from "../../src/postgres/postgres-store.ts";
import type { Transition } from "../../src/postgres/transition.ts";
import { claimRuns, claimRunsValues } from "../../src/postgres/transitions/claim-runs.ts";
import {
  redriveRuns,
  redriveValues,
  rescheduleRun,
  rescheduleValues,
  terminateRun,
} from "../../src/postgres/transitions/control.ts";
import {
  createHeldRun,
  createHeldRunValues,
  createRuns,
  createRunsValues,
} from "../../src/postgres/transitions/create-runs.ts";
import {
  beginRuns,
  completeRun,
  completeRunValues,
  endRuns,
  endValues,
  releaseRuns,
  releaseValues,
} from "../../src/postgres/transitions/end-runs.ts";
import { forkRun, forkValues } from "../../src/postgres/transitions/fork-run.ts";
import { leaseValues } from "../../src/postgres/transitions/holder-calls.ts";
import {
  createInTransaction,
  createInTransactionValues,
  tellInTransaction,
  tellInTransactionValues,
} from "../../src/postgres/transitions/in-transaction.ts";
import { parkRuns, parkValues } from "../../src/postgres/transitions/park-runs.ts";
import { inboxValues, readInbox } from "../../src/postgres/transitions/read-inbox.ts";
import {
  findKey,
  listRuns,
  listValues,
  loadHistory,
  loadShortHistories,
  readAttempts,
  readChildren,
  readEnds,
  readRun,
  shortHistoriesValues,
} from "../../src/postgres/transitions/read.ts";
import {
  recordEvents,
  recordStep,
  recordStepValues,
  recordValues,
} from "../../src/postgres/transitions/record-events.ts";
import {
  answersValues,
  findWritten,
  lastPositions,
  readAnswers,
  readPublished,
  readStream,
  writtenValues,
} from "../../src/postgres/transitions/showing.ts";
import { signalOrStart, signalOrStartValues } from "../../src/postgres/transitions/signal-or-start.ts";
import { tellRuns, tellValues, wakeTold } from "../../src/postgres/transitions/tell-runs.ts";
import { wakeDue, wakeDueValues } from "../../src/postgres/transitions/wake-due.ts";
import { heartbeat, heartbeatValues, retireWorker, sweep } from "../../src/postgres/transitions/workers.ts";
import type { Ending, Lane, Lease, Mark, NewEvent, Parking } from "../../src/store/lease.ts";
import type { NewMessage, Topic } from "../../src/store/message.ts";
import { plainRun, type NewRun, type RunFilter } from "../../src/store/run-record.ts";
import type { NewStreamItem } from "../../src/store/showing.ts";
import { systemRandom } from "../../src/system/system-random.ts";

/** A call that is about to be made: its statement and parameters. */
export interface PreparedCall {
  readonly transition: Transition;
  readonly values: readonly unknown[];
  /** How many rows it answers: without them it would be another call. Default: any. */
  readonly rows?: number;
}

/** Brings `count` runs of its own into the state where the call has work with each of them, and answers the call. */
export type MeasuredCall = (store: PostgresStore, count: number) => Promise<PreparedCall>;

const ids = createIds(Date.now, systemRandom);
const text: Payload = { json: '{"orderId":9182}', notes: null };
const signal: Topic = "signal:shipped";

/** Each measured call has a workflow of its own, so that it finds nothing that an earlier one left. */
function newRuns(count: number, more: Partial<NewRun> = {}): readonly NewRun[] {
  const workflow = `checkout-${ids.next()}`;
  return Array.from({ length: count }, () => ({
    id: ids.next(),
    workflow,
    version: 1,
    queue: "default",
    ...plainRun,
    input: text,
    ...more,
  }));
}

function list(filter: Omit<RunFilter, "look">): PreparedCall {
  return { transition: listRuns, values: listValues(0, { look: 1_000, ...filter }) };
}

/** Runs that failed with the code E. */
async function failed(store: PostgresStore, runs: readonly NewRun[]): Promise<readonly string[]> {
  const leases = await held(store, runs);
  const error = { json: '{"name":"Error","message":"no","code":"E"}', notes: null };
  const fact = { seq: 1, kind: "failed", name: null, attempt: 1, data: error } as const;
  await Promise.all(
    leases.map((lease) =>
      store.end({
        lease,
        parentId: null,
        events: [fact],
        children: [],
        status: "failed",
        output: null,
        error,
      }),
    ),
  );
  return leases.map(({ runId }) => runId);
}

function tokens(position: number): NewStreamItem {
  return { name: "tokens", position, data: text, step: "llm", attempt: 1, isFirst: false, isClosing: false };
}

/** Held runs with an update each. */
async function askedRuns(
  store: PostgresStore,
  count: number,
): Promise<readonly { readonly lease: Lease; readonly id: string }[]> {
  const leases = await held(store, newRuns(count));
  return Promise.all(
    leases.map(async (lease) => {
      const id = ids.next();
      const message = { id, runId: lease.runId, data: text, idempotencyKey: "click" };
      await store.tell({ ...message, topic: "update:set" });
      return { lease, id };
    }),
  );
}

async function registerWorker(store: PostgresStore, leaseMs = 600_000): Promise<string> {
  const id = ids.next();
  await store.registerWorker({ id, leaseMs, host: "here", pid: 1, queues: ["default"], concurrency: 1000 });
  return id;
}

async function ready(store: PostgresStore, runs: readonly NewRun[]): Promise<Lane> {
  await store.createRuns(runs);
  const [{ queue, workflow, version }] = runs as readonly [NewRun];
  return { queue, workflow, version, after: null, crashLimit: 3 };
}

/** What is told something has a row of its own in ready, and so have those that were started with it. */
async function unpack(store: PostgresStore, runs: readonly NewRun[]): Promise<void> {
  const told = runs.map(({ id }) => ({ id: ids.next(), runId: id, data: null, idempotencyKey: null }));
  await Promise.all(told.map((message) => store.tell({ ...message, topic: "signal:unpack" })));
}

async function held(
  store: PostgresStore,
  runs: readonly NewRun[],
  leaseMs?: number,
): Promise<readonly Lease[]> {
  const lane = await ready(store, runs);
  const workerId = await registerWorker(store, leaseMs);
  const claim = await store.claimRuns({
    workerId,
    lanes: [lane],
    limit: runs.length,
    suspects: false,
    begin: true,
  });
  return claim.runs.map(({ runId, epoch, server }) => ({ runId, epoch, workerId, server }));
}

function parking(lease: Lease, more: Partial<Parking> = {}): Parking {
  const base = {
    lastSeq: 0,
    look: 1,
    reason: "waiting",
    dueAt: null,
    delayMs: null,
    attemptFailed: false,
  } as const;
  return { lease, events: [], children: [], wants: [signal, "cancel", "child"], ...base, ...more };
}

async function parked(
  store: PostgresStore,
  runs: readonly NewRun[],
  more?: Partial<Parking>,
): Promise<readonly Lease[]> {
  const leases = await held(store, runs);
  await Promise.all(leases.map((lease) => store.park(parking(lease, more))));
  return leases;
}

/** What is due when it parks does so all the same. */
const due = { dueAt: 1_790_000_000_000, reason: "retry", attemptFailed: true } as const;

const step: NewEvent = {
  seq: 1,
  kind: "step_completed",
  name: "charge",
  attempt: 1,
  beganAt: 1_790_000_000_000,
  data: text,
};
const ended = { children: [], status: "completed", output: text, error: null } as const;
async function endings(store: PostgresStore, runs: readonly NewRun[]): Promise<readonly Ending[]> {
  const parents = new Map(runs.map(({ id, parent }) => [id, parent?.id ?? null]));
  return (await held(store, runs)).map((lease) => ({
    lease,
    parentId: parents.get(lease.runId) ?? null,
    events: [{ ...step, kind: "completed" as const }],
    ...ended,
  }));
}

function claimOf(lane: Lane, workerId: string, count: number, after: Mark | null = null): PreparedCall {
  const request = { workerId, lanes: [{ ...lane, after }], limit: count, suspects: false, begin: true };
  return { transition: claimRuns, values: claimRunsValues(0, request) };
}

const messages = (leases: readonly Lease[], topic: Topic = signal): readonly NewMessage[] =>
  leases.map(({ runId }) => ({ id: ids.next(), runId, topic, data: text, idempotencyKey: ids.next() }));

/** Every call that workers and clients make, with as many items as are asked for. */
export const measuredCalls = {
  "create runs": async (_store, count) => ({
    transition: createRuns,
    values: createRunsValues(0, newRuns(count), false, null),
  }),
  "create runs with keys": async (_store, count) => {
    const runs = newRuns(count).map((run) => ({ ...run, key: run.id }));
    return { transition: createRuns, values: createRunsValues(0, runs, false, null) };
  },
  "create runs that are held from their start": async (store, count) => {
    const holder = { workerId: await registerWorker(store), leaseMs: 600_000, crashLimit: 3 };
    return { transition: createRuns, values: createRunsValues(0, newRuns(count), false, holder) };
  },
  // One run a call, however many are asked for; so with the end below.
  "create one run that is held from its start": async (store) => {
    const holder = { workerId: await registerWorker(store), leaseMs: 600_000, crashLimit: 3 };
    return { transition: createHeldRun, values: createHeldRunValues(0, { run: newRuns(1)[0]!, holder }) };
  },
  "create runs in a caller's transaction": async (_store, count) => {
    const runs = newRuns(count).map((run) => ({ ...run, key: run.id }));
    return { transition: createInTransaction, values: createInTransactionValues(runs) };
  },
  // One message a call, however many are asked for.
  "tell in a caller's transaction": async (store) => {
    const [message] = messages(await parked(store, newRuns(1)));
    return { transition: tellInTransaction, values: tellInTransactionValues(message!) };
  },
  "claim from packs": async (store, count) =>
    claimOf(await ready(store, newRuns(count + 1)), await registerWorker(store), count),
  claim: async (store, count) => {
    const runs = newRuns(count);
    const lane = await ready(store, runs);
    await unpack(store, runs);
    return claimOf(lane, await registerWorker(store), count);
  },
  "claim from packs and from ready": async (store, count) => {
    const runs = newRuns(count);
    await ready(store, runs);
    await unpack(store, runs.slice(0, 1));
    await ready(
      store,
      newRuns(count).map((run) => ({ ...run, workflow: runs[0]!.workflow })),
    );
    const [{ queue, workflow, version }] = runs as readonly [NewRun];
    const lane = { queue, workflow, version, after: null, crashLimit: 3 };
    return claimOf(lane, await registerWorker(store), 2 * count);
  },
  "claim while packs of others wait": async (store, count) => {
    await ready(store, newRuns(2 * count + 2));
    const lane = { queue: "default", workflow: `idle-${ids.next()}`, version: 1, after: null, crashLimit: 3 };
    return claimOf(lane, await registerWorker(store), count);
  },
  "claim from ten lanes": async (store, count) => {
    const lanes = [];
    for (let lane = 0; lane < 10; lane++) lanes.push(await ready(store, newRuns(Math.ceil(count / 10))));
    const request = {
      workerId: await registerWorker(store),
      lanes,
      limit: count,
      suspects: false,
      begin: true,
    };
    return { transition: claimRuns, values: claimRunsValues(0, request) };
  },
  "claim when nothing is ready": async (store, count) => {
    const lane = { queue: "default", workflow: `idle-${ids.next()}`, version: 1, after: null, crashLimit: 3 };
    return claimOf(lane, await registerWorker(store), count);
  },
  begin: async (store, count) => {
    const lane = await ready(store, newRuns(count));
    const workerId = await registerWorker(store);
    const { runs } = await store.claimRuns({
      workerId,
      lanes: [lane],
      limit: count,
      suspects: false,
      begin: false,
    });
    return {
      transition: beginRuns,
      values: leaseValues(
        0,
        runs.map(({ runId, epoch, server }) => ({ runId, epoch, workerId, server })),
      ),
    };
  },
  record: async (store, count) => {
    const leases = await held(store, newRuns(count));
    return {
      transition: recordEvents,
      values: recordValues(
        0,
        leases.map((lease) => ({ lease, events: [step], children: [] })),
      ),
    };
  },
  "record one step": async (store) => {
    const [lease] = await held(store, newRuns(1));
    return {
      transition: recordStep,
      values: recordStepValues(0, { lease: lease!, events: [step], children: [] }),
    };
  },
  "record a child": async (store, count) => {
    const leases = await held(store, newRuns(count));
    const recordings = leases.map((lease) => ({
      lease,
      events: [{ ...step, kind: "child_started" as const }],
      children: newRuns(1, { parent: { id: lease.runId, request: "call:child#1" } }),
    }));
    return { transition: recordEvents, values: recordValues(0, recordings) };
  },
  "read inbox": async (store, count) => {
    const leases = await held(store, newRuns(count));
    await Promise.all(messages(leases).map((message) => store.tell(message)));
    return {
      transition: readInbox,
      values: inboxValues(
        0,
        leases.map((lease) => ({ lease, look: 1 })),
      ),
    };
  },
  park: async (store, count) => {
    const leases = await held(store, newRuns(count));
    // Longer than the tests take: what is due is woken by other calls.
    const timer: NewEvent = { seq: 1, kind: "timer_set", name: "sleep", delayMs: 86_400_000, data: null };
    return {
      transition: parkRuns,
      values: parkValues(
        0,
        leases.map((lease) => parking(lease, { events: [timer], lastSeq: 1 })),
      ),
    };
  },
  "park when told": async (store, count) => {
    const leases = await held(store, newRuns(count));
    await Promise.all(messages(leases).map((message) => store.tell(message)));
    return {
      transition: parkRuns,
      values: parkValues(
        0,
        leases.map((lease) => parking(lease)),
      ),
    };
  },
  end: async (store, count) => ({
    transition: endRuns,
    values: endValues(0, await endings(store, newRuns(count))),
  }),
  "complete one": async (store) => ({
    transition: completeRun,
    values: completeRunValues(0, (await endings(store, newRuns(1)))[0]!),
  }),
  "end with a parent": async (store, count) => {
    const parents = await parked(store, newRuns(count));
    const workflow = `child-${ids.next()}`;
    const children = parents.map(
      ({ runId }) => newRuns(1, { workflow, parent: { id: runId, request: "call:child#1" } })[0]!,
    );
    return { transition: endRuns, values: endValues(0, await endings(store, children)) };
  },
  "end with one parent": async (store, count) => {
    const [parent] = await parked(store, newRuns(1));
    const children = newRuns(count, { parent: { id: parent!.runId, request: "call:child#1" } });
    return { transition: endRuns, values: endValues(0, await endings(store, children)) };
  },
  "end as cancelled": async (store, count) => {
    const parents = await endings(store, newRuns(count));
    await store.createRuns(
      parents.map(({ lease }) => newRuns(1, { parent: { id: lease.runId, request: "call:child#1" } })[0]!),
    );
    return {
      transition: endRuns,
      values: endValues(
        0,
        parents.map((ending) => ({ ...ending, status: "cancelled" as const })),
      ),
    };
  },
  release: async (store, count) => ({
    transition: releaseRuns,
    values: releaseValues(
      0,
      (await held(store, newRuns(count))).map((lease) => ({ lease, readyAt: Date.now() })),
    ),
  }),
  "tell the parked": async (store, count) => ({
    transition: tellRuns,
    values: tellValues(0, messages(await parked(store, newRuns(count)))),
  }),
  "tell the held": async (store, count) => ({
    transition: tellRuns,
    values: tellValues(0, messages(await held(store, newRuns(count)))),
  }),
  "tell the ready": async (store, count) => {
    const runs = newRuns(count);
    await ready(store, runs);
    const leases = runs.map((run) => ({ runId: run.id, epoch: 0, workerId: "" }));
    return { transition: tellRuns, values: tellValues(0, messages(leases)) };
  },
  "cancel the ready": async (store, count) => {
    const runs = newRuns(count);
    await ready(store, runs);
    const leases = runs.map((run) => ({ runId: run.id, epoch: 0, workerId: "" }));
    return { transition: tellRuns, values: tellValues(0, messages(leases, "cancel")) };
  },
  "pause the parked": async (store, count) => ({
    transition: tellRuns,
    values: tellValues(0, messages(await parked(store, newRuns(count)), "pause")),
  }),
  "resume the paused": async (store, count) => {
    const leases = await parked(store, newRuns(count));
    await Promise.all(messages(leases, "pause").map((message) => store.tell(message)));
    return { transition: tellRuns, values: tellValues(0, messages(leases, "resume")) };
  },
  "wake told": async (store, count) => {
    const leases = await parked(store, newRuns(count));
    return { transition: wakeTold, values: [0, leases.map(({ runId }) => runId)] };
  },
  "wake due": async (store, count) => {
    await parked(store, newRuns(count), due);
    return { transition: wakeDue, values: wakeDueValues(0, count) };
  },
  "wake due, held": async (store, count) => {
    const runs = newRuns(count);
    const events = [
      { ...step, name: "one" },
      { ...step, seq: 2 },
    ];
    const leases = await parked(store, runs, { ...due, events, lastSeq: 2, fires: "sleep:sleep#1" });
    const { workerId } = leases[0]!;
    const lane = { queue: "default", workflow: runs[0]!.workflow, version: 1, after: null, crashLimit: 3 };
    const waker = { workerId, lanes: [lane], most: count, sparesMs: 1_000 };
    return { transition: wakeDue, values: wakeDueValues(0, 500, waker), rows: count + 1 };
  },
  "wake due when nothing is": async () => ({ transition: wakeDue, values: wakeDueValues(0, 100) }),
  heartbeat: async (store, count) => {
    const leases = await held(store, newRuns(count));
    const beat = { workerId: leases[0]!.workerId, held: leases, claimsKnownTo: null };
    return { transition: heartbeat, values: heartbeatValues(0, beat) };
  },
  "heartbeat that returns leases": async (store, count) => {
    const leases = await held(store, newRuns(count));
    const beat = {
      workerId: leases[0]!.workerId,
      held: leases.slice(0, count / 2),
      claimsKnownTo: Number.POSITIVE_INFINITY,
    };
    return { transition: heartbeat, values: heartbeatValues(0, beat) };
  },
  "retire a worker": async (store, count) => ({
    transition: retireWorker,
    values: [0, (await held(store, newRuns(count)))[0]!.workerId],
  }),
  "sweep when nothing is wrong": async () => ({ transition: sweep, values: [0, 100, null] }),
  "sweep a dead worker": async (store, count) => {
    await held(store, newRuns(count), 0);
    return { transition: sweep, values: [0, count, null] };
  },
  "sweep expired runs": async (store, count) => {
    await store.createRuns(newRuns(count, { expiresAt: 1_790_000_000_000 }));
    return { transition: sweep, values: [0, count, null] };
  },
  "read a run": async (store) => ({
    transition: readRun,
    values: [0, (await parked(store, newRuns(1)))[0]!.runId],
  }),
  "list runs": async (store, count) => {
    await held(store, newRuns(count));
    return list({ limit: count });
  },
  "list runs by status": async (store, count) => {
    await failed(store, newRuns(count));
    return list({ status: "failed", limit: count });
  },
  "list runs by error code": async (store, count) => {
    await failed(store, newRuns(count));
    return list({ errorCode: "E", limit: count });
  },
  "list runs by tag": async (store, count) => {
    const tag = ids.next();
    await held(store, newRuns(count, { tags: [tag] }));
    return list({ tags: [tag], limit: count });
  },
  "list blocked runs": async (store, count) => {
    await parked(store, newRuns(count), { reason: "blocked" });
    return list({ status: "blocked", limit: count });
  },
  "find a key": async (store) => {
    const [run] = newRuns(1);
    await store.createRuns([{ ...run!, key: run!.id }]);
    return { transition: findKey, values: [0, run!.id] };
  },
  "read children": async (store, count) => {
    const [parent] = await held(store, newRuns(1));
    await held(store, newRuns(count, { parent: { id: parent!.runId, request: "call:child#1" } }));
    return { transition: readChildren, values: [0, parent!.runId, null, 10_000] };
  },
  "read attempts": async (store) => {
    const [runId] = await failed(store, newRuns(1));
    return { transition: readAttempts, values: [0, runId] };
  },
  redrive: async (store, count) => ({
    transition: redriveRuns,
    values: redriveValues(0, await failed(store, newRuns(count))),
  }),
  "redrive from the start": async (store, count) => ({
    transition: redriveRuns,
    values: redriveValues(0, await failed(store, newRuns(count)), { from: "start" }),
  }),
  fork: async (_store, count) => {
    const [run] = newRuns(1);
    const fact = { kind: "step_completed", at: 1, attempt: 1, beganAt: 1, dueAt: null, data: null } as const;
    const history = Array.from({ length: count }, (_, index) => ({
      ...fact,
      seq: index + 1,
      name: `${index}`,
    }));
    return { transition: forkRun, values: forkValues(0, { ...run!, key: run!.id }, history) };
  },
  "signal or start": async (store) => {
    const [run, other] = newRuns(2);
    await store.createRuns([{ ...run!, key: run!.id }]);
    const message = { id: other!.id, topic: "signal:a", data: null, idempotencyKey: "k" } as const;
    const call = { run: { ...other!, key: run!.id }, message, boundTo: null };
    return { transition: signalOrStart, values: signalOrStartValues(call) };
  },
  "tell runs that are packed": async (store, count) => {
    const runs = newRuns(count + 1);
    await store.createRuns(runs);
    const told = runs.slice(0, count).map(({ id }) => ({ runId: id, epoch: 0, workerId: "" }));
    return { transition: tellRuns, values: tellValues(0, messages(told)) };
  },
  "list pending runs": async (store, count) => {
    await store.createRuns(newRuns(count));
    return list({ status: "pending", limit: count });
  },
  terminate: async (store) => {
    const [lease] = await held(store, newRuns(1));
    return { transition: terminateRun, values: [0, lease!.runId, null, null] };
  },
  reschedule: async (store) => {
    const [run] = newRuns(1);
    await store.createRuns([run!]);
    const values = rescheduleValues(0, { runId: run!.id, priority: 1, startAt: 4_000_000_000_000 });
    return { transition: rescheduleRun, values };
  },
  "read ends": async (store, count) => ({
    transition: readEnds,
    values: [0, (await held(store, newRuns(count))).map(({ runId }) => runId)],
  }),
  "record streams": async (store, count) => {
    const leases = await held(store, newRuns(count));
    const written = leases.map(() => [tokens(1), tokens(2)]);
    const recordings = leases.map((lease, n) => ({ lease, events: [], children: [], written: written[n]! }));
    return { transition: recordEvents, values: recordValues(0, recordings) };
  },
  "record answers": async (store, count) => {
    const asked = await askedRuns(store, count);
    const recordings = asked.map(({ lease, id }) => ({
      lease,
      events: [{ seq: 1, kind: "update_answered", name: null, data: text, takes: id } as const],
      children: [],
    }));
    return { transition: recordEvents, values: recordValues(0, recordings) };
  },
  "read published": async (store) => {
    const [lease] = await held(store, newRuns(1));
    const published = (seq: number, key: string): NewEvent => ({
      seq,
      kind: "published",
      name: `publish:${key}#${seq}`,
      data: text,
    });
    const events = [1, 2, 3, 4].map((seq) => published(seq, seq % 2 === 0 ? "stage" : "rows"));
    await store.record({ lease: lease!, events, children: [] });
    return { transition: readPublished, values: [0, lease!.runId, null] };
  },
  "read answers": async (store, count) => {
    const asked = await askedRuns(store, count);
    const questions = asked.map(({ lease, id }) => ({
      runId: lease.runId,
      messageId: id,
      idempotencyKey: "click",
    }));
    return { transition: readAnswers, values: answersValues(0, questions) };
  },
  "read stream": async (store) => {
    const [lease] = await held(store, newRuns(1));
    await store.record({ lease: lease!, events: [], children: [], written: [tokens(1), tokens(2)] });
    return { transition: readStream, values: [0, lease!.runId, "tokens", 1, 1_000] };
  },
  "find written": async (store, count) => {
    const leases = await held(store, newRuns(count));
    const places = leases.map(({ runId }) => ({ runId, name: "tokens", after: 0 }));
    return { transition: findWritten, values: writtenValues(0, places) };
  },
  "last positions": async (store) => {
    const [lease] = await held(store, newRuns(1));
    await store.record({ lease: lease!, events: [], children: [], written: [tokens(1), tokens(2)] });
    return { transition: lastPositions, values: [0, lease!.runId, ["tokens", "other"]] };
  },
  "load short histories": async (store, count) => {
    const leases = await held(store, newRuns(count));
    await Promise.all(leases.map((lease) => store.record({ lease, events: [step], children: [] })));
    const asked = leases.map(({ runId }) => ({ runId, afterSeq: 0, length: 1 }));
    return { transition: loadShortHistories, values: shortHistoriesValues(0, asked) };
  },
  "load history": async (store) => {
    const [lease] = await held(store, newRuns(1));
    await store.record({ lease: lease!, events: [step], children: [] });
    return { transition: loadHistory, values: [0, lease!.runId, 0] };
  },
} satisfies Record<string, MeasuredCall>;
