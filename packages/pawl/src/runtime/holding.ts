import { backOffMs } from "../core/back-off.ts";
import { cancelFromParentId } from "../core/child-end.ts";
import type { Clock } from "../core/clock.ts";
import { encode } from "../core/codec.ts";
import type { CrashPoint, Probe } from "../core/crash-point.ts";
import { LeaseLostError, PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import { meaningOf } from "../core/fact.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { Log } from "../core/log.ts";
import type { Emit } from "../core/pawl-event.ts";
import { plainPayloads, type Payloads } from "../core/payloads.ts";
import type { Random } from "../core/random.ts";
import type { Timers } from "../core/timers.ts";
import type {
  ClaimedRun,
  Continuation,
  Lease,
  NewEvent,
  ParkAnswer,
  Parking,
  RecordAnswer,
  Recording,
} from "../store/lease.ts";
import type { Message } from "../store/message.ts";
import type { NewRun, RunEnd } from "../store/run-record.ts";
import type { NewStreamItem } from "../store/showing.ts";
import type { Store } from "../store/store.ts";
import { asRecorded, createEntry, type Entry } from "./entry.ts";
import { createFactReport } from "./report-facts.ts";
import { createStoreTime, type StoreTime } from "./store-time.ts";
import { createTurns } from "./turns.ts";

/** The run is held by somebody else, or by nobody: whoever meets this stops at once and in silence. */
export class Lost extends Error {
  override readonly name = "Lost";
}

export type Fact = Omit<NewEvent, "seq">;
/** Something to write to a stream, where it comes next. */
type Writing = Omit<NewStreamItem, "position">;
export type ParkTerms = Pick<Parking, "reason" | "dueAt" | "delayMs" | "wants" | "attemptFailed">;

/**
 * A run in this worker's hands: everything the holder says to the store about it. Facts gather here while a write is
 * under way, and go out together with the next; so at most one write per run is in flight.
 */
export interface Holding {
  lease(): Lease;
  readonly time: StoreTime;
  /** When it was taken, by the store's clock as far as it was known. */
  heldSince(): number;
  /** About how many bytes the input takes, and the facts that were loaded and recorded. */
  bytes(): number;
  hasFacts(): boolean;
  /** Whether any of them is worth a write of its own: a patch waits for the next one. */
  hasPressing(): boolean;
  /** More than fits into one write: some must be recorded before the run can be parked or ended. */
  hasTooMany(): boolean;
  /** Whether a gathered fact lets the code go on once it is recorded. */
  hasAnswers(): boolean;
  /** `tookMs`: how long what the fact speaks of took, for those who measure. */
  add(fact: Fact, child?: NewRun, tookMs?: number): void;
  /** Writes to a stream, with the fact that says so if there is one. Resolves when it is recorded; rejects if it never will be. */
  write(writing: Writing, fact?: Fact): Promise<void>;
  /** Records what has gathered, as much as fits, and answers it as it is in the history now. */
  record(): Promise<readonly RunEvent[]>;
  /** `events`: as `record` answers them; null for a run that is parked and whose facts it would have to ask for. */
  park(
    terms: ParkTerms,
  ): Promise<{ readonly answer: ParkAnswer; readonly events: readonly RunEvent[] | null }>;
  /** The run was parked, and this worker has claimed it again. False, and as it was, unless all is as it left it. */
  renew(again: ClaimedRun): boolean;
  /** `next`: the run that goes on from it. */
  end(end: RunEnd, next: Continuation | null): Promise<void>;
  release(): Promise<void>;
  /** Unread messages may be there. */
  isTold(): boolean;
  told(): void;
  /** Says that the code begins, where the claim has not. */
  begin(): Promise<void>;
  readInbox(): Promise<readonly Message[]>;
  /** Asks a child of this run to stop, or the run as which it went on. Does nothing where it has ended, or was asked before. */
  cancelChild(childId: RunId): Promise<void>;
  loadHistory(): Promise<readonly RunEvent[]>;
  loadInput(): Promise<Payload | null>;
  /** Asks the store for its time. */
  lookAtClock(): Promise<void>;
  /**
   * Waits for the write in flight and for one that takes the answers that have gathered, which come before its own. Then lets
   * no other begin until the entry has ended: its fact is written in a transaction of the user's. `isAhead` is called with
   * true once nothing comes before it any more, and with false when it has turned back.
   * @throws {TurnMissed} after 10 s, so that two that wait for each other go on
   */
  enter(fact: Fact, tookMs: number, isAhead: (is: boolean) => void): Promise<Entry>;
  /** Makes sure that the store counts the run as held. */
  confirm(): Promise<void>;
  /** From now on every call ends in `Lost`, those under way included. */
  drop(): void;
  isHeld(): boolean;
  /** Throws `Lost` if it is not held. */
  assertHeld(): void;
}

export interface HoldingParts {
  readonly store: Store;
  readonly workerId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: Timers;
  readonly log: Log;
  readonly probe: Probe;
  /**
   * Whether the store surely counts the worker as alive. Asked for at every turn: a process that was stopped, or blocked,
   * reads what came in meanwhile before its timers tell it that its lease has run out. Default: always.
   */
  readonly isAlive?: () => boolean;
  /** Is told what has become of the run, once that is in the store. */
  readonly emit?: Emit | undefined;
  /** Default: without a codec, up to 1 MiB. */
  readonly payloads?: Payloads;
}

/** In one write: it must not hold up the other runs that share the connection, and has to fit into one message. */
const mostFacts = 1_000;
const mostBytes = 4_000_000;
/** What a fact takes in memory beside its payload. */
const bytesOfFact = 300;
const longestTurnMs = 10_000;
const firstPauseMs = 100;
const longestPauseMs = 5_000;

export function createHolding(claimed: ClaimedRun, parts: HoldingParts): Holding {
  const { store, timers, random, log } = parts;
  let lease = { runId: claimed.runId, epoch: claimed.epoch, workerId: parts.workerId };
  const time = createStoreTime(parts.clock, claimed.claimedAt);
  const { emit, workerId, payloads = plainPayloads } = parts;
  const report = emit && createFactReport(emit, claimed, workerId, () => time.estimate(), payloads);
  let gathered: Gathered[] = [];
  let gatheredBytes = 0;
  /** Facts that came into the history in a transaction of the user's, and that nobody has been told of yet. */
  let arrived: RunEvent[] = [];
  const turns = createTurns(timers);
  let lastSeq = claimed.lastSeq;
  let heldSince = time.estimate();
  let bytes = sizeOf(claimed.input);
  let isTold = claimed.told;
  let isDropped = false;
  /** Why nothing can be written to streams any more. An error is costly to make, and mostly nobody asks for it. */
  let over: (() => PawlError) | null = null;
  /** The last position in each stream that was written to here. */
  const positions = new Map<string, number>();
  const writers = new Set<(error: PawlError | null) => void>();

  const isHeld = (): boolean => {
    isDropped ||= parts.isAlive?.() === false;
    return !isDropped;
  };

  const assertHeld = (): void => {
    if (!isHeld()) throw new Lost();
  };

  const probe = (point: CrashPoint): void => {
    parts.probe(point);
    assertHeld();
  };

  /** Calls until the store answers: every call is safe to repeat. `answered` hears of it though the run is dropped by then. */
  const persist = async <A>(
    call: () => Promise<A>,
    answered?: (answer: A) => void,
  ): Promise<{ readonly answer: A; readonly isRepeated: boolean }> => {
    for (let failures = 1; ; failures++) {
      assertHeld();
      try {
        const answer = await call();
        answered?.(answer);
        assertHeld();
        return { answer, isRepeated: failures > 1 };
      } catch (error) {
        if (PawlError.is(error, "LEASE_LOST")) isDropped = true;
        assertHeld();
        log.warn("The store did not answer; the same call is made again.", {
          runId: lease.runId,
          failures,
          error,
        });
      }
      const pauseMs = backOffMs(failures, random, firstPauseMs, longestPauseMs);
      await new Promise<void>((resolve) => void timers.after(pauseMs, resolve));
    }
  };

  /**
   * The oldest facts: as many as fit into a record. What ends or parks the run takes all: `hasTooMany` was asked before. A
   * patch that nothing has followed waits, unless the run ends: whoever goes on may be old code, which finds nothing that it
   * could stumble over, and must be free to take the old side.
   */
  const takeGathered = (at: "record" | "park" | "end"): readonly Gathered[] => {
    let count = 0;
    let bytes = 0;
    const waiting = at === "end" ? [] : waitingPatches(gathered);
    const ready = waiting.length === 0 ? gathered : gathered.filter((each) => !waiting.includes(each));
    for (const { size } of ready) {
      if (at === "record" && count > 0 && (count === mostFacts || bytes + size > mostBytes)) break;
      count += 1;
      bytes += size;
    }
    gatheredBytes -= bytes;
    const taken = ready.slice(0, count);
    gathered = [...ready.slice(count), ...waiting];
    return taken;
  };

  /** Where each writing goes. Nobody else writes while the run is held, so the store is asked once for each stream. */
  const placed = async (batch: readonly Gathered[]): Promise<readonly NewStreamItem[]> => {
    const writings = batch.flatMap(({ writing }) => writing?.terms ?? []);
    const unknown = [...new Set(writings.map(({ name }) => name))].filter((name) => !positions.has(name));
    if (unknown.length > 0) {
      const { answer } = await persist(() => store.lastPositions(lease.runId, unknown));
      for (const name of unknown) positions.set(name, answer.get(name) ?? 0);
    }
    return writings.map((terms) => {
      const position = (positions.get(terms.name) ?? 0) + 1;
      positions.set(terms.name, position);
      return { ...terms, position };
    });
  };

  /** Tells those who write to streams that it is done, or that nothing more will be. */
  const finishWriting = (batch: readonly Gathered[]): void => {
    for (const { writing } of batch) writing?.settle(null);
  };
  const endWriting = (reason: () => PawlError): void => {
    over ??= reason;
    for (const settle of writers) settle(reason());
  };
  const letGo = (): void => endWriting(notExecuted);
  const notExecuted = (): PawlError =>
    new PawlError("RUN_ENDED", `Run ${lease.runId} is no longer executed.`, { runId: lease.runId });

  /** Facts are numbered when they are written: one whose transaction rolls back leaves no gap. */
  const number = (gathered: Gathered): Numbered => {
    if (gathered.fact === null) return { ...gathered, event: null };
    lastSeq += 1;
    return { ...gathered, event: { seq: lastSeq, ...gathered.fact } };
  };

  /** Sends the oldest facts that have gathered. What comes in meanwhile waits for the next write. */
  const write = async <A>(
    at: "record" | "park" | "end",
    send: (recording: Recording) => Promise<A>,
    tell?: (answer: A) => void,
    nextDelayMs: number | null = null,
  ): Promise<Written<A>> => {
    const endTurn = await turns.take();
    try {
      return await writeInTurn(at, send, tell, nextDelayMs);
    } finally {
      endTurn();
    }
  };

  const writeInTurn = async <A>(
    at: "record" | "park" | "end",
    send: (recording: Recording) => Promise<A>,
    tell?: (answer: A) => void,
    nextDelayMs: number | null = null,
    taken: readonly Gathered[] = takeGathered(at),
  ): Promise<Written<A>> => {
    const batch = taken.map(number);
    const events = batch.flatMap(({ event }) => event ?? []);
    const children = batch.flatMap(({ child }) => child ?? []);
    const written = batch.some(({ writing }) => writing !== undefined) ? await placed(batch) : null;
    const recording = { lease, events, children, ...(written !== null && { written }) };
    probe(`${at}.before`);
    bytes += batch.reduce((sum, { size }) => sum + bytesOfFact + size, 0);
    const answered =
      report &&
      ((written: A): void => {
        report.recorded(
          batch.flatMap(({ event, tookMs }) => (event === null ? [] : { event, tookMs })),
          nextDelayMs,
        );
        tell?.(written);
      });
    const { answer, isRepeated } = await persist(() => send(recording), answered);
    if (written !== null) finishWriting(batch);
    probe(`${at}.after`);
    return { answer, isRepeated, sent: events, arrived: takeArrived() };
  };

  /** Those that have come before a fact which is written by itself. */
  const recordPatches = async (): Promise<void> => {
    const patches = gathered.filter(isPatch);
    if (patches.length === 0) return;
    gathered = gathered.filter((each) => !isPatch(each));
    gatheredBytes -= patches.reduce((sum, { size }) => sum + size, 0);
    const send = (recording: Recording): Promise<RecordAnswer> => store.record(recording);
    arrived = [...(await absorb(await writeInTurn("record", send, undefined, null, patches)))];
  };

  const takeArrived = (): readonly RunEvent[] => {
    const taken = arrived;
    arrived = [];
    return taken;
  };

  const learn = ({ now, told }: Pick<RecordAnswer, "now" | "told">): void => {
    time.learn(now);
    isTold ||= told;
  };

  const absorb = async (written: Written<RecordAnswer>): Promise<readonly RunEvent[]> => {
    const { answer, isRepeated, sent, arrived } = written;
    learn(answer);
    const [first] = sent;
    if (first === undefined) return arrived;
    if (!isRepeated) return [...arrived, ...sent.map((event) => asRecorded(event, answer))];
    // An earlier try may have been the one that counted, at its own instant, which the answer does not tell.
    const recorded = await loadFrom(first.seq);
    return [...arrived, ...recorded.slice(0, sent.length)];
  };

  const loadFrom = async (seq: number): Promise<readonly RunEvent[]> =>
    (await persist(() => store.loadHistory(lease.runId, seq - 1))).answer;

  return {
    lease: () => lease,
    time,
    heldSince: () => heldSince,
    bytes: () => bytes,
    hasFacts: () => gathered.length > waitingPatches(gathered).length || arrived.length > 0,
    hasPressing: () => gathered.some(({ fact }) => fact?.kind !== "patched") || arrived.length > 0,
    hasAnswers: () => arrived.length > 0 || gathered.some(isAnswering),
    hasTooMany: () => gathered.length >= mostFacts || gatheredBytes >= mostBytes,
    add(fact, child, tookMs) {
      const size = sizeOf(fact.data) + sizeOf(child?.input ?? null);
      gathered.push({ fact, child, tookMs, size });
      gatheredBytes += size;
    },
    write(terms, fact) {
      if (over !== null) return Promise.reject(over());
      const size = sizeOf(terms.data) + 100;
      gatheredBytes += size;
      return new Promise((resolve, reject) => {
        const settle = (error: PawlError | null): void => {
          writers.delete(settle);
          if (error === null) resolve();
          else reject(error);
        };
        writers.add(settle);
        const writing = { terms, settle };
        gathered.push({ fact: fact ?? null, child: undefined, tookMs: undefined, size, writing });
      });
    },
    async record() {
      if (gathered.length === waitingPatches(gathered).length && arrived.length > 0) return takeArrived();
      return absorb(await write("record", (recording) => store.record(recording)));
    },
    async park(terms) {
      const send = (recording: Recording): Promise<ParkAnswer> =>
        store.park({ ...recording, ...terms, lastSeq });
      const tell = (answer: ParkAnswer): void => {
        if (answer.outcome === "parked") report?.parked(terms, answer);
      };
      const written = await write("park", send, tell, terms.delayMs);
      if (written.answer.outcome === "parked") letGo();
      // A run that is parked is no longer ours: nothing is asked about it.
      const isUnknown = written.answer.outcome === "parked" && written.isRepeated;
      return { answer: written.answer, events: isUnknown ? null : await absorb(written) };
    },
    renew(again) {
      const isNext = again.epoch === lease.epoch + 1 && again.attempt === claimed.attempt;
      if (!isNext || again.lastSeq !== lastSeq || !isHeld()) return false;
      lease = { ...lease, epoch: again.epoch };
      time.learn(again.claimedAt);
      heldSince = time.estimate();
      isTold = again.told;
      over = null;
      return true;
    },
    async end(end, next) {
      await write(
        "end",
        (recording) => store.end({ ...recording, ...end, ...(next !== null && { next }) }),
        () => report?.ended(end),
      );
      letGo();
    },
    async release() {
      await persist(
        () => store.release(lease),
        () => report?.released(),
      );
      letGo();
    },
    isTold: () => isTold,
    told() {
      isTold = true;
    },
    async begin() {
      await persist(() => store.begin(lease));
    },
    async readInbox() {
      isTold = false;
      return (await persist(() => store.readInbox(lease))).answer;
    },
    async cancelChild(childId) {
      const data = encode({ reason: "withdrawn" });
      for (let runId: RunId | undefined = childId; runId !== undefined;) {
        const at: RunId = runId;
        const message = {
          id: cancelFromParentId(at, lease.runId),
          runId: at,
          topic: "cancel",
          data,
          idempotencyKey: null,
        } as const;
        const { answer } = await persist(() => store.tell(message));
        // One that went on as another is over.
        runId =
          answer === "ended"
            ? (await persist(() => store.getEnds([at]))).answer.get(at)?.chainEnd
            : undefined;
      }
    },
    async loadHistory() {
      const { answer } = await persist(() => store.loadHistory(lease.runId, 0));
      // The history is the truth: a fact numbered as one that is there would be lost.
      lastSeq = Math.max(lastSeq, answer.at(-1)?.seq ?? 0);
      bytes += answer.reduce((sum, { data }) => sum + bytesOfFact + sizeOf(data), 0);
      return answer;
    },
    async loadInput() {
      const input = (await persist(() => store.getRun(lease.runId))).answer?.input ?? null;
      bytes += sizeOf(input);
      return input;
    },
    async lookAtClock() {
      time.learn((await persist(() => store.now())).answer);
    },
    async enter(fact, tookMs, isAhead) {
      const endTurn = await turns.takeWithin(
        longestTurnMs,
        () => !gathered.some(isAnswering),
        () => isAhead(true),
      );
      let hasArrived = false;
      try {
        assertHeld();
        await recordPatches();
      } catch (error) {
        endTurn();
        throw error;
      }
      const event = { seq: lastSeq + 1, ...fact };
      return createEntry({
        lease,
        event,
        record: async (marker) =>
          (await persist(() => store.record({ lease, events: [marker], children: [] }))).answer,
        load: () => loadFrom(event.seq),
        learn,
        arrived(recorded) {
          hasArrived = true;
          report?.recorded([{ event, tookMs }], null);
          arrived.push(recorded);
          bytes += bytesOfFact + sizeOf(recorded.data);
        },
        ended(isTaken) {
          if (isTaken) lastSeq = event.seq;
          if (!hasArrived) isAhead(false);
          endTurn();
        },
      });
    },
    async confirm() {
      learn((await persist(() => store.record({ lease, events: [], children: [] }))).answer);
    },
    drop() {
      isDropped = true;
      const { runId, epoch } = lease;
      endWriting(() => new LeaseLostError(runId, epoch));
    },
    isHeld,
    assertHeld,
  };
}

interface Gathered {
  /** Null for what a step writes to a stream. */
  readonly fact: Fact | null;
  readonly child: NewRun | undefined;
  readonly tookMs: number | undefined;
  readonly writing?: { readonly terms: Writing; readonly settle: (error: PawlError | null) => void };
  /** About how many bytes it adds to a write. */
  readonly size: number;
}

interface Numbered extends Gathered {
  readonly event: NewEvent | null;
}

function isPatch({ fact }: Gathered): boolean {
  return fact?.kind === "patched";
}

/** Patches after which nothing has gathered that the code has asked for. */
function waitingPatches(gathered: readonly Gathered[]): readonly Gathered[] {
  const last = gathered.findLastIndex(({ fact }) => fact !== null && meaningOf(fact) !== null);
  return gathered.slice(last + 1).filter(isPatch);
}

/** Whether its fact lets the code go on once it is recorded. */
function isAnswering({ fact }: Gathered): boolean {
  return fact !== null && (fact.kind === "cancel_requested" || meaningOf(fact)?.isAnswer === true);
}

function sizeOf(payload: Payload | null): number {
  return (payload?.json.length ?? 0) + (payload?.notes?.length ?? 0);
}

interface Written<A> {
  readonly answer: A;
  readonly isRepeated: boolean;
  readonly sent: readonly NewEvent[];
  /** What had come into the history before, in transactions of the user's. */
  readonly arrived: readonly RunEvent[];
}
