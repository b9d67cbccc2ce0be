import pg from "pg";
import { LeaseLostError, type PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import { shardOf } from "../core/ids.ts";
import { type Log, silentLog } from "../core/log.ts";
import type { Random } from "../core/random.ts";
import { delay, type Timers } from "../core/timers.ts";
import type { Transaction } from "../core/transaction.ts";
import type { CallersStore } from "../store/callers-store.ts";
import type { Hint } from "../store/hint.ts";
import type { HolderTransactions } from "../store/holder-transactions.ts";
import type {
  CreateHeldAnswer,
  Ending,
  Lease,
  Look,
  ParkAnswer,
  Parking,
  RecordAnswer,
  Recording,
} from "../store/lease.ts";
import type { Message, NewMessage, TellAnswer } from "../store/message.ts";
import type { CreateAnswer, FoundEnd, NewRun } from "../store/run-record.ts";
import type { StoreReport } from "../store/store-report.ts";
import type { Store } from "../store/store.ts";
import { createAnnouncements } from "./announcements.ts";
import { createCallersStore } from "./callers-store.ts";
import { createDatabase, type Row } from "./database.ts";
import { examineServer } from "./examine.ts";
import { assertFits } from "./fitting-schema.ts";
import { sendOne, type ForOne } from "./for-one.ts";
import { createGroupCommit, type GroupCommitOptions } from "./group-commit.ts";
import { createHolderTransactions } from "./holder-transactions.ts";
import { createListener, type Listener, type ListenState } from "./listener.ts";
import { type MigrateAnswer, type MigrateOptions, latestVersion, migrate } from "./migrate.ts";
import { databaseClock, schemaName } from "./schema-name.ts";
import { unanswered, type Transition } from "./transition.ts";
import { claimRuns, claimRunsValues, decodeClaim } from "./transitions/claim-runs.ts";
import * as control from "./transitions/control.ts";
import {
  createHeldRun,
  createHeldRunValues,
  createRuns,
  createRunsValues,
  decodeCreated,
  decodeCreatedHeld,
  decodeCreatedHeldRun,
  isPlain,
  sizeOfRun,
  type HeldCreation,
} from "./transitions/create-runs.ts";
import {
  announceEnds,
  beginRuns,
  completeRun,
  completeRunValues,
  decodeEnded,
  decodeHeld,
  endRuns,
  endValues,
  isPlainEnding,
  releaseRuns,
  releaseValues,
  sizeOfEnding,
  type Release,
} from "./transitions/end-runs.ts";
import { decodeForked, type ForkedRow, forkRun, forkValues } from "./transitions/fork-run.ts";
import { leaseValues, sizeOfRecording } from "./transitions/holder-calls.ts";
import { decodeParked, parkRuns, parkValues } from "./transitions/park-runs.ts";
import { decodeInboxes, inboxValues, readInbox } from "./transitions/read-inbox.ts";
import * as read from "./transitions/read.ts";
import {
  decodeRecorded,
  decodeRecordedStep,
  isOneStep,
  recordEvents,
  recordStep,
  recordStepValues,
  recordValues,
} from "./transitions/record-events.ts";
import * as showing from "./transitions/showing.ts";
import {
  decodeSignalOrStart,
  signalOrStart,
  type SignalOrStartRow,
  signalOrStartValues,
} from "./transitions/signal-or-start.ts";
import { decodeTold, sizeOfMessage, tellRuns, tellValues, wakeTold } from "./transitions/tell-runs.ts";
import { decodeWoken, wakeDue, wakeDueValues } from "./transitions/wake-due.ts";
import * as workers from "./transitions/workers.ts";

export interface PostgresStoreOptions {
  /** A connection string; the store makes and closes its own pool. */
  readonly url?: string;
  /** The caller's pool; never closed by the store. */
  readonly pool?: pg.Pool;
  /** Default "pawl". */
  readonly schema?: string;
  /** Connections of the store's own pool. Default 10. */
  readonly connections?: number;
  /** A direct connection for notifications, where `url` goes through a transaction pooler. Default: as `url`. */
  readonly listenUrl?: string;
  /** False: no LISTEN connection, polling only. Default true. */
  readonly listen?: boolean;
  /** A query without an answer for so long is given up and its connection destroyed. Default 10,000. */
  readonly queryTimeoutMs?: number;
  readonly timers: Timers;
  readonly random: Random;
  readonly log?: Log;
  /** Notifications no longer arrive, or arrive again. */
  readonly onListenChange?: ((state: ListenState) => void) | undefined;
  /** What stands for the database's clock in SQL; tests put theirs here. */
  readonly clock?: string;
}

export interface PostgresStore extends Store {
  /** The store inside a transaction of the caller's. */
  within(tx: Transaction): CallersStore;
  /** What holders do inside a transaction of their user's. */
  readonly transactions: HolderTransactions;
  migrate(options?: MigrateOptions): Promise<MigrateAnswer>;
  /** False while notifications do not arrive and only polling works. */
  isListening(): boolean;
  /** Whether a transaction pooler was found in between. */
  isPooled(): boolean;
  /** How the database is set and doing. */
  examine(): Promise<StoreReport>;
  close(): Promise<void>;
}

/** How calls of one kind are merged, beyond what all have in common. */
interface BatchOptions<Item, Answer> extends Pick<GroupCommitOptions<Item, Answer>, "halves" | "groupOf"> {
  readonly forOne?: ForOne<Item, Answer>;
}

/** Every hot call merges with its like. Bounds on one call, and on what may wait for the next. */
const batchBounds = { maxItems: 500, maxBytes: 4_000_000, maxUnanswered: 20_000, blockedForMs: 5_000 };

/** So long a store that closes waits until ends are announced. */
const longestAnnouncingMs = 1_000;

/** A history of so many facts is loaded together with others. */
const mostOfShort = 200;
/** What a fact adds to the bytes of such a call, so that no answer has more than 10,000 of them. */
const bytesOfFact = 400;

export function createPostgresStore(options: PostgresStoreOptions): PostgresStore {
  const log = options.log ?? silentLog;
  const schema = schemaName(options.schema ?? "pawl");
  const clock = options.clock ?? databaseClock;
  const pool = options.pool ?? createPool(options);
  // An idle connection that dies is no event: the pool has dropped it already.
  const onPoolError = (error: Error): void => log.debug("An idle connection was lost.", { error });
  pool.on("error", onPoolError);
  const { timers, queryTimeoutMs = 10_000 } = options;
  const database = createDatabase({ pool, schema, clock, queryTimeoutMs, timers });
  // A caller's pool may be taken up by the steps' own queries for longer than a lease: workers must live meanwhile.
  const vitalPool = options.pool === undefined ? pool : new pg.Pool({ ...poolConfig(pool), max: 2 });
  if (vitalPool !== pool) vitalPool.on("error", onPoolError);
  const vital = createDatabase({ pool: vitalPool, schema, clock, queryTimeoutMs, timers });
  const transactions = createHolderTransactions({
    // A transaction waits for its run's other writes: on the same connections they would wait for each other.
    pool: () => new pg.Pool(poolConfig(pool)),
    onPoolError,
    schema,
    clock,
    timers,
    queryTimeoutMs,
  });
  const subscribers = new Set<(hint: Hint) => void>();
  const listener = options.listen === false ? null : createHintListener();
  let isClosed = false;

  function createHintListener(): Listener {
    const client =
      options.listenUrl === undefined ? poolConfig(pool) : { connectionString: options.listenUrl };
    const { random } = options;
    const onHint = (hint: Hint): void => {
      for (const subscriber of subscribers) subscriber(hint);
    };
    const onChange = options.onListenChange;
    return createListener({ client, schema, timers, random, log, checkMs: 8_000, onHint, onChange });
  }

  /** Merges calls of one kind for one shard and, where a holder makes them, one worker. */
  function batched<Item, Answer>(
    statement: Transition,
    keyOf: (item: Item) => { readonly shard: number; readonly workerId?: string },
    sizeOf: (item: Item) => number,
    encode: (shard: number, items: readonly Item[]) => readonly unknown[],
    decode: (items: readonly Item[], rows: readonly never[]) => readonly (Answer | PawlError)[],
    { halves, groupOf, forOne }: BatchOptions<Item, Answer> = {},
  ): (item: Item) => Promise<Answer> {
    const send = async (shard: number, items: readonly Item[]): Promise<readonly (Answer | PawlError)[]> => {
      const [only] = items;
      if (forOne !== undefined && items.length === 1 && only !== undefined && forOne.isFor(only)) {
        const sent = await sendOne(database, forOne, shard, only);
        if (sent !== null) return [sent.answer];
      }
      return decode(items, await database.run(statement, encode(shard, items)));
    };
    type Group = (item: Item) => Promise<Answer>;
    const groups = new Map<string, Group>();
    /** Nearly all items are of one shard and one worker. */
    let last: { readonly shard: number; readonly workerId: string; readonly group: Group } | null = null;
    return (item) => {
      const { shard, workerId = "" } = keyOf(item);
      if (last?.shard === shard && last.workerId === workerId) return last.group(item);
      const key = `${shard}/${workerId}`;
      let group = groups.get(key);
      if (group === undefined) {
        group = createGroupCommit<Item, Answer>({
          ...batchBounds,
          name: statement.name,
          sizeOf,
          ...(halves !== undefined && { halves }),
          ...(groupOf !== undefined && { groupOf }),
          pause: (ms) => delay(options.timers, ms),
          send: (items) => send(shard, items),
        });
        groups.set(key, group);
      }
      last = { shard, workerId, group };
      return group(item);
    };
  }

  const alone = { ...batchBounds, maxItems: 1, pause: (ms: number) => delay(options.timers, ms) };
  const keyOfLease = (lease: Lease) => ({ shard: shardOf(lease.runId), workerId: lease.workerId });
  const keyOfHeld = ({ lease }: { readonly lease: Lease }) => keyOfLease(lease);

  const create = batched<NewRun, CreateAnswer>(
    createRuns,
    (run) => ({ shard: shardOf(run.id) }),
    sizeOfRun,
    (shard, runs) => createRunsValues(shard, runs, false, null),
    decodeCreated,
    { halves: "calls" },
  );
  const createHeld = batched<HeldCreation, CreateHeldAnswer>(
    createRuns,
    // A call has one holder, and one crash limit for all.
    ({ run, holder }) => ({ shard: shardOf(run.id), workerId: `${holder.workerId}/${holder.crashLimit}` }),
    ({ run }) => sizeOfRun(run),
    (shard, creations) =>
      createRunsValues(
        shard,
        creations.map(({ run }) => run),
        false,
        creations[0]?.holder ?? null,
      ),
    decodeCreatedHeld,
    {
      forOne: {
        statement: createHeldRun,
        isFor: ({ run }) => isPlain(run),
        encode: createHeldRunValues,
        decode: (creation, row) => ({ answer: decodeCreatedHeldRun(creation, row) }),
      },
    },
  );
  // A call of several is all or nothing, and so goes alone.
  const createWhole = createGroupCommit<readonly NewRun[], readonly CreateAnswer[]>({
    ...alone,
    halves: "calls",
    name: createRuns.name,
    sizeOf: () => 0,
    send: async ([runs = []]) => {
      const rows = await database.run(
        createRuns,
        createRunsValues(shardOf(runs[0]?.id ?? ""), runs, true, null),
      );
      return [decodeCreated(runs, rows as readonly never[])];
    },
  });
  const attempt = createGroupCommit<() => Promise<unknown>, unknown>({
    ...alone,
    name: "control",
    sizeOf: () => 0,
    send: async ([act]) => [await act?.()],
  });
  /** Tries again what somebody blocks. */
  const persist = <Answer>(act: () => Promise<Answer>): Promise<Answer> => attempt(act) as Promise<Answer>;
  const record = batched<Recording, RecordAnswer>(
    recordEvents,
    keyOfHeld,
    sizeOfRecording,
    recordValues,
    orLost(decodeRecorded),
    {
      halves: "waves",
      forOne: {
        statement: recordStep,
        isFor: isOneStep,
        encode: recordStepValues,
        decode: (_recording, row) => ({ answer: decodeRecordedStep(row) }),
      },
    },
  );
  const park = batched<Parking, ParkAnswer>(
    parkRuns,
    keyOfHeld,
    sizeOfRecording,
    parkValues,
    orLost(decodeParked),
  );
  const announcements = createAnnouncements((runIds) => database.run(announceEnds, [runIds]), timers, log);
  const end = batched<Ending, void>(
    endRuns,
    keyOfHeld,
    sizeOfEnding,
    endValues,
    (endings, rows) =>
      voidOrLost(
        endings.map(({ lease }) => lease),
        rows,
      ),
    {
      groupOf: ({ lease }) => lease.pack,
      forOne: {
        statement: completeRun,
        isFor: isPlainEnding,
        encode: completeRunValues,
        decode({ lease }, row) {
          // Where nothing was done, an earlier try may have been, whose answer was lost.
          announcements.add(lease.runId);
          return decodeEnded(row) ? { answer: undefined } : null;
        },
      },
    },
  );
  const release = batched<Release, void>(
    releaseRuns,
    keyOfHeld,
    () => 60,
    releaseValues,
    (releases, rows) =>
      voidOrLost(
        releases.map(({ lease }) => lease),
        rows,
      ),
  );
  const begin = batched<Lease, void>(beginRuns, keyOfLease, () => 60, leaseValues, voidOrLost);
  const inbox = batched<Look, readonly Message[]>(
    readInbox,
    keyOfHeld,
    () => 60,
    inboxValues,
    orLost(decodeInboxes),
  );
  const tell = batched<NewMessage, TellAnswer>(
    tellRuns,
    (message) => ({ shard: shardOf(message.runId) }),
    sizeOfMessage,
    tellValues,
    decodeTold,
  );

  const loadShort = batched<read.AskedHistory, read.LoadedHistory>(
    read.loadShortHistories,
    ({ runId }) => ({ shard: shardOf(runId) }),
    ({ length }) => length * bytesOfFact,
    read.shortHistoriesValues,
    read.decodeShortHistories,
  );

  async function loadLong({ runId, afterSeq }: read.AskedHistory): Promise<read.LoadedHistory> {
    const values = [shardOf(runId), runId, afterSeq];
    return read.decodeHistory(await database.call<read.HistoryRow>(read.loadHistory, values));
  }

  async function one<R extends Row>(statement: Transition, values: readonly unknown[]): Promise<R> {
    const [row] = await database.call<R>(statement, values);
    if (row === undefined) throw unanswered(statement);
    return row;
  }

  return {
    async now() {
      return (await one<{ readonly now_ms: number }>(read.readClock, [])).now_ms;
    },
    async upMs() {
      return (await one<{ readonly up_ms: number }>(read.readUptime, [])).up_ms;
    },
    async createRuns(runs) {
      const [only] = runs;
      if (only === undefined) return [];
      return runs.length === 1 ? [await create(only)] : createWhole(runs);
    },
    createHeld: (run, holder) => createHeld({ run, holder }),
    async claimRuns(request) {
      return decodeClaim(request, await vital.call(claimRuns, claimRunsValues(0, request)));
    },
    begin,
    record,
    readInbox: inbox,
    park,
    end,
    release: (lease, readyAt) => release({ lease, readyAt }),
    tell,
    signalOrStart: (call) =>
      persist(async () => {
        const [row] = await database.run<SignalOrStartRow>(signalOrStart, signalOrStartValues(call));
        if (row === undefined) throw unanswered(signalOrStart);
        return decodeSignalOrStart(row);
      }),
    async wakeTold(runIds) {
      if (runIds.length > 0) await database.call(wakeTold, [0, runIds]);
    },
    terminate: (runId, data) =>
      persist(async () => {
        const values = [shardOf(runId), runId, data?.json ?? null, data?.notes ?? null];
        return outcomeOf(await database.run(control.terminateRun, values));
      }),
    redrive: (runIds, terms) =>
      persist(async () => {
        const values = control.redriveValues(0, runIds, terms);
        return control.decodeRedriven(await database.run<control.RedrivenRow>(control.redriveRuns, values));
      }),
    fork: (run, history) =>
      persist(async () => {
        const values = forkValues(shardOf(run.id), run, history);
        return decodeForked(run, await database.run<ForkedRow>(forkRun, values));
      }),
    reschedule: (rescheduling) =>
      persist(async () => {
        const values = control.rescheduleValues(shardOf(rescheduling.runId), rescheduling);
        return outcomeOf(await database.run(control.rescheduleRun, values));
      }),
    async wakeDue(limit, waker) {
      return decodeWoken(waker, await vital.call(wakeDue, wakeDueValues(0, limit, waker)));
    },
    async registerWorker(worker) {
      await assertFits(vital);
      await vital.call(workers.registerWorker, workers.registerValues(worker));
    },
    async heartbeat(beat) {
      return workers.decodeHeartbeat(await vital.call(workers.heartbeat, workers.heartbeatValues(0, beat)));
    },
    async retireWorker(workerId) {
      await vital.call(workers.retireWorker, [0, workerId]);
    },
    async sweep({ limit, after }) {
      return workers.decodeSwept(await one<workers.SweptRow>(workers.sweep, [0, limit, after]));
    },
    async getRun(runId) {
      const [row] = await database.call<read.RunRow>(read.readRun, [shardOf(runId), runId]);
      return row === undefined ? null : read.decodeRunRecord(row);
    },
    async getEnds(runIds) {
      const rows = await database.call<read.EndRow>(read.readEnds, [0, runIds]);
      return new Map<string, FoundEnd | null>(rows.map((row) => [row.id, read.decodeEnd(row)]));
    },
    async listRuns(filter) {
      return read.decodePage(await database.call<read.ListedRow>(read.listRuns, read.listValues(0, filter)));
    },
    async findKey(key) {
      return (await one<{ readonly id: string | null }>(read.findKey, [0, key])).id;
    },
    async countRuns(most) {
      return read.decodeCounts(await database.call<read.CountRow>(read.countRuns, [0, most]));
    },
    async readBacklog(most) {
      return (await database.call<read.BacklogRow>(read.readBacklog, [0, most])).map(read.decodeBacklog);
    },
    async listChildren(runId, after, limit) {
      const values = [shardOf(runId), runId, after, limit];
      return (await database.call<read.ChildRow>(read.readChildren, values)).map(read.decodeChild);
    },
    async listAttempts(runId) {
      const rows = await database.call<read.AttemptRow>(read.readAttempts, [shardOf(runId), runId]);
      return rows.map(read.decodeAttempt);
    },
    async listPatches(workflow, version) {
      const rows = await database.call<read.PatchRow>(read.readPatches, [0, workflow, version]);
      return rows.map(read.decodePatch);
    },
    async loadHistory(runId, afterSeq, lastSeq = Number.POSITIVE_INFINITY) {
      const load = lastSeq - afterSeq <= mostOfShort ? loadShort : loadLong;
      const events: RunEvent[] = [];
      for (let after = afterSeq; ; after = events.at(-1)?.seq ?? after) {
        const part = await load({ runId, afterSeq: after, length: Math.max(1, lastSeq - after) });
        for (const event of part.events) events.push(event);
        if (!part.hasMore) return events;
      }
    },
    async readPublished(runId, key) {
      const values = [shardOf(runId), runId, key];
      const rows = await database.call<showing.PublishedRow>(showing.readPublished, values);
      return rows.map(showing.decodePublished);
    },
    async getAnswers(questions) {
      const values = showing.answersValues(0, questions);
      return (await database.call<showing.AnswerRow>(showing.readAnswers, values)).map(showing.decodeAnswer);
    },
    async readStream({ runId, name, after }, limit) {
      const values = [shardOf(runId), runId, name, after, limit];
      return showing.decodeStream(await database.call<showing.StreamRow>(showing.readStream, values));
    },
    async findWritten(places) {
      const values = showing.writtenValues(0, places);
      const rows = await database.call<showing.WrittenRow>(showing.findWritten, values);
      return rows.map((row) => row.has_news);
    },
    async lastPositions(runId, names) {
      const values = [shardOf(runId), runId, names];
      const rows = await database.call<showing.PositionRow>(showing.lastPositions, values);
      return new Map(rows.map((row) => [row.name, row.position]));
    },
    async listWorkers({ endedWithinMs, limit }) {
      const rows = await database.call<workers.WorkerRow>(workers.listWorkers, [endedWithinMs, limit]);
      return rows.map(workers.decodeWorker);
    },
    subscribe(subscriber) {
      subscribers.add(subscriber);
      if (!isClosed) listener?.start();
      return () => subscribers.delete(subscriber);
    },
    transactions,
    within: (tx) => createCallersStore(tx, schema, clock),
    migrate: (migrateOptions) =>
      migrate({ pool, schema, clock, timers, pause: (ms) => delay(timers, ms) }, migrateOptions),
    isListening: () => listener?.state() === "live",
    isPooled: () => vital.isPooled(),
    async examine() {
      const server = await examineServer(vital, latestVersion);
      return { ...server, isPooled: vital.isPooled(), listening: listener?.state() ?? "off" };
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      await announcements.told(longestAnnouncingMs);
      await listener?.stop();
      await transactions.close();
      if (vitalPool !== pool) await vitalPool.end();
      // Connections of ours may die while they are closed: their errors are heard until the end, and after.
      if (options.pool === undefined) await pool.end();
      else pool.off("error", onPoolError);
    },
  };
}

function createPool({ url, connections = 10 }: PostgresStoreOptions): pg.Pool {
  return new pg.Pool({
    connectionString: url,
    max: connections,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    application_name: "pawl",
  });
}

/** The pool hides its password from being copied. */
function poolConfig({ options }: pg.Pool): pg.ClientConfig {
  return options.password === undefined ? options : { ...options, password: options.password };
}

/** What a function that answers one word has answered. */
function outcomeOf<Outcome extends string>(rows: readonly Row[]): Outcome {
  return rows[0]?.["outcome"] as Outcome;
}

/** What is answered with null has lost its lease. */
function orLost<Item extends { readonly lease: Lease }, Answer>(
  decode: (items: readonly Item[], rows: readonly never[]) => readonly (Answer | null)[],
): (items: readonly Item[], rows: readonly never[]) => readonly (Answer | PawlError)[] {
  return (items, rows) => decode(items, rows).map((answer, index) => answer ?? lost(items[index]?.lease));
}

function voidOrLost(leases: readonly Lease[], rows: readonly never[]): readonly (undefined | PawlError)[] {
  return decodeHeld(leases, rows).map((isHeld, index) => (isHeld ? undefined : lost(leases[index])));
}

function lost(lease: Lease | undefined): LeaseLostError {
  return new LeaseLostError(lease?.runId ?? "", lease?.epoch ?? 0);
}
