import { backOffMs } from "../core/back-off.ts";
import { cancelFromParentId } from "../core/child-end.ts";
import type { Clock } from "../core/clock.ts";
import { encode } from "../core/codec.ts";
import type { CrashPoint, Probe } from "../core/crash-point.ts";
import { LeaseLostError, PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { Log } from "../core/log.ts";
import type { Emit } from "../core/pawl-event.ts";
import { plainPayloads, type Payloads } from "../core/payloads.ts";
import type { Random } from "../core/random.ts";
import { delay, type Timers } from "../core/timers.ts";
import type { Audience } from "../store/audience.ts";
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
import { GatheredFacts, sizeOf, type Fact, type Gathered, type GatheredWriting } from "./gathered.ts";
import { createFactReport, type FactReport, type WrittenFact } from "./report-facts.ts";
import { createStoreTime, type StoreTime } from "./store-time.ts";
import { createStreamWrites, type StreamWrites, type Writing } from "./stream-writes.ts";
import { Turns } from "./turns.ts";

/** The run is held by somebody else, or by nobody: whoever meets this stops at once and in silence. */
export class Lost extends Error {
  override readonly name = "Lost";
}

export type ParkTerms = Pick<Parking, "reason" | "dueAt" | "fires" | "delayMs" | "wants" | "attemptFailed">;

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
  /** The run was parked, and this worker has claimed it again. False, and as it was, unless all is as it left it, but for a timer. */
  renew(again: ClaimedRun): boolean;
  /** `next`: the run that goes on from it. `tried`: the same was sent before, and failed with this. */
  end(end: RunEnd, next: Continuation | null, tried?: Tried): Promise<"ended">;
  /** `isUnbegun`: its code has not been called since it was claimed. */
  release(isUnbegun?: boolean): Promise<void>;
  /** Unread messages may be there. */
  isTold(): boolean;
  told(): void;
  /** Says that the code begins, where the claim has not. */
  begin(): Promise<void>;
  readInbox(): Promise<readonly Message[]>;
  /**
   * Asks a child of this run to stop, or the run as which it went on. Does nothing where it has ended, or was asked before in
   * this life of the run.
   */
  cancelChild(childId: RunId, life: number): Promise<void>;
  loadHistory(): Promise<readonly RunEvent[]>;
  loadInput(): Promise<Payload | null>;
  /** Asks the store for its time. */
  lookAtClock(): Promise<void>;
  /**
   * Waits for the write in flight and for one that takes the answers that have gathered, which come before its own. Then lets
   * no other begin until the entry has ended: its fact is written in a transaction of the user's, together with the patches that
   * wait. `isAhead` is called with true once nothing comes before it any more, and with false when it has turned back.
   * @throws {TurnMissed} after 10 s, so that two that wait for each other go on
   */
  enter(fact: Fact, tookMs: number, isAhead: (is: boolean) => void): Promise<Entry>;
  /** Makes sure that the store counts the run as held. */
  confirm(): Promise<void>;
  /** From now on every call ends in `Lost`, those under way included. */
  drop(): void;
  isHeld(): boolean;
  /** Whether it has asked the store to let go of the run, and is not answered yet: it may be neither held nor lost. */
  isLeaving(): boolean;
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
  /** Who is told how runs end, before they would find it in the store. Default: nobody is. */
  readonly audiences?: ReadonlySet<Audience> | undefined;
  /** The run's code has come to its end, and that is about to be written down. Default: nobody is told. */
  readonly ending?: (runId: RunId, epoch: number) => void;
}

/** What a fact takes in memory beside its payload. */
const bytesOfFact = 300;
const longestTurnMs = 10_000;
const firstPauseMs = 100;
const longestPauseMs = 5_000;

/** A call that has failed. */
interface Tried {
  readonly failure: unknown;
}

/** Tells somebody in this process how the run ended. */
export type TellEnd = (end: RunEnd) => void;

/** `log`: one that says which run it is about. `takenAt`: when it was taken, by the process's clock. Default: now. */
export function createHolding(claimed: ClaimedRun, parts: HoldingParts, log: Log, takenAt?: number): Holding {
  return new RunHolding(claimed, parts, log, takenAt);
}

/** Whoever in this process waits for the run to end; null: nobody does. */
export function whoWaits(audiences: HoldingParts["audiences"], runId: RunId): readonly TellEnd[] | null {
  if (audiences === undefined) return null;
  let waiting: TellEnd[] | null = null;
  for (const audience of audiences) {
    const tell = audience.waitingFor(runId);
    if (tell !== null) (waiting ??= []).push(tell);
  }
  return waiting;
}

/** One object with methods: a worker makes one for every run, and closures would be most of what that costs. */
class RunHolding implements Holding {
  readonly time: StoreTime;
  readonly #claimed: ClaimedRun;
  readonly #parts: HoldingParts;
  readonly #log: Log;
  readonly #report: FactReport | undefined;
  readonly #turns: Turns;
  #lease: Lease;
  readonly #gathered = new GatheredFacts();
  /** Facts that came into the history in a transaction of the user's, and that nobody has been told of yet. */
  #arrived: readonly RunEvent[] = none;
  #lastSeq: number;
  #heldSince: number;
  #bytes: number;
  #isTold: boolean;
  #looks = 0;
  #isDropped = false;
  #isLeaving = false;
  #streams: StreamWrites | null = null;
  /** Why nothing can be written to streams any more. */
  #over: (() => PawlError) | null = null;

  constructor(claimed: ClaimedRun, parts: HoldingParts, log: Log, takenAt?: number) {
    const { emit, workerId, clock, timers, payloads = plainPayloads } = parts;
    this.#claimed = claimed;
    this.#parts = parts;
    this.#log = log;
    const { runId, epoch, server, pack } = claimed;
    this.#lease = { runId, epoch, workerId, server, pack };
    this.time = createStoreTime(clock, claimed.claimedAt, takenAt);
    this.#report = emit && createFactReport(emit, claimed, workerId, () => this.time.estimate(), payloads);
    this.#turns = new Turns(timers);
    this.#lastSeq = claimed.lastSeq;
    this.#heldSince = takenAt === undefined ? this.time.estimate() : claimed.claimedAt;
    this.#bytes = sizeOf(claimed.input) + bytesOf(claimed.history ?? none);
    this.#isTold = claimed.told;
  }

  lease(): Lease {
    return this.#lease;
  }

  heldSince(): number {
    return this.#heldSince;
  }

  bytes(): number {
    return this.#bytes;
  }

  hasFacts(): boolean {
    return this.#arrived.length > 0 || this.#gathered.hasAny();
  }

  hasPressing(): boolean {
    return this.#arrived.length > 0 || this.#gathered.hasPressing();
  }

  hasAnswers(): boolean {
    return this.#arrived.length > 0 || this.#gathered.hasAnswers();
  }

  hasTooMany(): boolean {
    return this.#gathered.hasTooMany();
  }

  add(fact: Fact, child?: NewRun, tookMs?: number): void {
    this.#gathered.add(fact, child, tookMs);
  }

  write(terms: Writing, fact?: Fact): Promise<void> {
    return this.#streamWrites().write((settle) => this.#gathered.addWriting({ terms, settle }, fact ?? null));
  }

  record(): Promise<readonly RunEvent[]> {
    if (this.#arrived.length > 0 && !this.#gathered.hasAny()) return Promise.resolve(this.#takeArrived());
    return this.#write("record", sendRecord, eventsOf);
  }

  async park(terms: ParkTerms): Promise<{ answer: ParkAnswer; events: readonly RunEvent[] | null }> {
    const look = this.#nextLook();
    const send = (store: Store, recording: Recording): Promise<ParkAnswer> =>
      // Were this holder to die before it has written down the patch that waits, the next would find a timer that has fired before it.
      store.park({
        ...recording,
        ...terms,
        fires: this.#gathered.isEmpty() ? terms.fires : null,
        lastSeq: this.#lastSeq,
        look,
      });
    const tell = (answer: ParkAnswer): void => {
      if (answer.outcome === "parked") this.#report?.parked(terms, answer);
    };
    this.#isLeaving = true;
    const written = await this.#write("park", send, itself, tell, terms.delayMs);
    this.#isLeaving = false;
    if (written.answer.outcome === "parked") this.#letGo();
    // A run that is parked is no longer ours: nothing is asked about it.
    const isUnknown = written.isRepeated && written.answer.outcome === "parked";
    return { answer: written.answer, events: isUnknown ? null : await this.eventsOf(written) };
  }

  renew(again: ClaimedRun): boolean {
    const isNext = again.epoch === this.#lease.epoch + 1 && again.attempt === this.#claimed.attempt;
    const lastSeq = this.#lastSeq + (again.fired === undefined ? 0 : 1);
    if (!isNext || again.lastSeq !== lastSeq || !this.isHeld()) return false;
    this.#lastSeq = lastSeq;
    this.#lease = { ...this.#lease, epoch: again.epoch, server: again.server, pack: again.pack };
    this.time.learn(again.claimedAt);
    this.#heldSince = this.time.estimate();
    this.#isTold = again.told;
    this.#over = null;
    this.#streams?.reopen();
    return true;
  }

  async end(end: RunEnd, next: Continuation | null, tried?: Tried): Promise<"ended"> {
    this.#isLeaving = true;
    this.#parts.ending?.(this.#lease.runId, this.#lease.epoch);
    // Whoever has tried it before knows who waited then.
    const isFirst = next === null && tried === undefined;
    const waiting = isFirst ? whoWaits(this.#parts.audiences, this.#lease.runId) : null;
    const report = this.#report;
    await this.#write(
      "end",
      (store, { lease, events, children, written }) => {
        const { status, output, error } = end;
        const { parentId } = this.#claimed;
        const ending = { lease, events, children, status, output, error, parentId };
        if (written === undefined && next === null) return store.end(ending);
        return store.end({
          ...ending,
          ...(written !== undefined && { written }),
          ...(next !== null && { next }),
        });
      },
      itself,
      report && (() => report.ended(end)),
      null,
      tried,
    );
    this.#letGo();
    if (waiting !== null) for (const tell of waiting) tell(end);
    return "ended";
  }

  async release(isUnbegun = false): Promise<void> {
    this.#isLeaving = true;
    const readyAt = isUnbegun ? this.#claimed.mark.readyAt : undefined;
    await this.#persist(
      () => this.#parts.store.release(this.#lease, readyAt),
      () => this.#report?.released(),
    );
    this.#letGo();
  }

  isTold(): boolean {
    return this.#isTold;
  }

  told(): void {
    this.#isTold = true;
  }

  async begin(): Promise<void> {
    await this.#persist(() => this.#parts.store.begin(this.#lease));
  }

  async readInbox(): Promise<readonly Message[]> {
    this.#isTold = false;
    const look = this.#nextLook();
    return this.#persist(() => this.#parts.store.readInbox({ lease: this.#lease, look }));
  }

  async cancelChild(childId: RunId, life: number): Promise<void> {
    const { store } = this.#parts;
    const data = encode({ reason: "withdrawn" });
    for (let runId: RunId | undefined = childId; runId !== undefined;) {
      const at: RunId = runId;
      const message = {
        id: cancelFromParentId(at, this.#lease.runId, life),
        runId: at,
        topic: "cancel",
        data,
        idempotencyKey: null,
      } as const;
      const answer = await this.#persist(() => store.tell(message));
      // One that went on as another is over.
      runId =
        answer === "ended" ? (await this.#persist(() => store.getEnds([at]))).get(at)?.chainEnd : undefined;
    }
  }

  async loadHistory(): Promise<readonly RunEvent[]> {
    const { runId, lastSeq } = this.#claimed;
    const history = await this.#persist(() => this.#parts.store.loadHistory(runId, 0, lastSeq));
    const loadedTo = history.at(-1)?.seq ?? 0;
    // Steps whose results are missing would be called again.
    if (loadedTo < lastSeq)
      throw new PawlError(
        "INTERNAL",
        `Of ${lastSeq} facts, the store has answered those up to ${loadedTo}. Please report this.`,
      );
    // The history is the truth: a fact numbered as one that is there would be lost.
    this.#lastSeq = Math.max(this.#lastSeq, loadedTo);
    this.#bytes += bytesOf(history);
    return history;
  }

  async loadInput(): Promise<Payload | null> {
    const run = await this.#persist(() => this.#parts.store.getRun(this.#lease.runId));
    const input = run?.input ?? null;
    this.#bytes += sizeOf(input);
    return input;
  }

  async lookAtClock(): Promise<void> {
    this.time.learn(await this.#persist(() => this.#parts.store.now()));
  }

  async enter(fact: Fact, tookMs: number, isAhead: (is: boolean) => void): Promise<Entry> {
    await this.#turns.takeWithin(
      longestTurnMs,
      () => !this.#gathered.hasAnswers(),
      () => isAhead(true),
    );
    if (!this.isHeld()) {
      this.#turns.end();
      throw new Lost();
    }
    let hasArrived = false;
    const { store } = this.#parts;
    const lease = this.#lease;
    const waiting = this.#gathered.patches();
    const first = this.#lastSeq + 1;
    const patches = waiting.flatMap(({ fact: patch }, index) =>
      patch === null ? [] : [numbered(patch, first + index)],
    );
    const event = numbered(fact, first + patches.length);
    return createEntry({
      lease,
      facts: { patches, fact: event },
      record: (marker) => this.#persist(() => store.record({ lease, events: [marker], children: [] })),
      load: () => this.#loadFrom(first),
      learn: (answer) => this.#learn(answer),
      arrived: (recorded) => {
        hasArrived = true;
        this.#gathered.leave(waiting);
        this.#report?.recorded([{ event, tookMs }], null);
        this.#arrived = [...this.#arrived, ...recorded];
        this.#bytes += bytesOf(recorded);
      },
      ended: (newest) => {
        if (newest !== null) this.#lastSeq = newest;
        if (!hasArrived) isAhead(false);
        this.#turns.end();
      },
    });
  }

  async confirm(): Promise<void> {
    const recording = { lease: this.#lease, events: [], children: [] };
    this.#learn(await this.#persist(() => this.#parts.store.record(recording)));
  }

  drop(): void {
    this.#isDropped = true;
    const { runId, epoch } = this.#lease;
    this.#endStreams(() => new LeaseLostError(runId, epoch));
  }

  isHeld(): boolean {
    this.#isDropped ||= this.#parts.isAlive?.() === false;
    return !this.#isDropped;
  }

  isLeaving(): boolean {
    return this.#isLeaving;
  }

  assertHeld(): void {
    if (!this.isHeld()) throw new Lost();
  }

  #probe(point: CrashPoint): void {
    this.#parts.probe(point);
    this.assertHeld();
  }

  #nextLook(): number {
    this.#looks += 1;
    return this.#looks;
  }

  /** Calls until the store answers: every call is safe to repeat. `answered` hears of it though the run is dropped by then. */
  async #persist<A>(call: () => Promise<A>, answered?: (answer: A) => void): Promise<A> {
    this.assertHeld();
    let answer: A;
    try {
      answer = await call();
    } catch (error) {
      answer = await this.#callAgain(error, call);
    }
    answered?.(answer);
    this.assertHeld();
    return answer;
  }

  /** The call has failed with this error: what the store said, or that it said nothing. */
  async #callAgain<A>(failure: unknown, call: () => Promise<A>): Promise<A> {
    let error = failure;
    for (let failures = 1; ; failures++) {
      if (PawlError.is(error, "LEASE_LOST")) this.#isDropped = true;
      this.assertHeld();
      this.#log.warn("The store did not answer; the same call is made again.", {
        runId: this.#lease.runId,
        failures,
        error,
      });
      const { random, timers } = this.#parts;
      await delay(timers, backOffMs(failures, random, firstPauseMs, longestPauseMs));
      this.assertHeld();
      try {
        return await call();
      } catch (again) {
        error = again;
      }
    }
  }

  /**
   * Sends the oldest facts that have gathered. What comes in meanwhile waits for the next write. One async function that makes no
   * others, and few around it: of every run that is in flight, all that wait for its write are kept.
   * @param tried the same was sent before
   */
  async #write<A, R>(
    at: WriteKind,
    send: Send<A>,
    finish: Finish<A, R>,
    tell?: (answer: A) => void,
    nextDelayMs: number | null = null,
    tried?: Tried,
  ): Promise<R> {
    if (!this.#turns.takeNow()) await this.#turns.take();
    try {
      const taken = this.#gathered.take(at);
      const recording = this.#number(taken);
      if (recording.writings !== none) recording.written = await this.#place(recording.writings);
      this.#probe(points[at].before);
      let answer: A;
      let isRepeated = tried !== undefined;
      try {
        answer = await (tried === undefined
          ? send(this.#parts.store, recording)
          : this.#sendAgain(tried.failure, send, recording));
      } catch (error) {
        if (isRepeated) throw error;
        answer = await this.#sendAgain(error, send, recording);
        isRepeated = true;
      }
      if (this.#report !== undefined) {
        this.#report.recorded(measuredFacts(taken, recording.events), nextDelayMs);
        tell?.(answer);
      }
      this.assertHeld();
      for (const { settle } of recording.writings) settle(null);
      this.#probe(points[at].after);
      const written = { answer, isRepeated, sent: recording.events, arrived: this.#takeArrived() };
      const finished = finish(written, this);
      return finished instanceof Promise ? await finished : finished;
    } finally {
      this.#turns.end();
    }
  }

  #sendAgain<A>(failure: unknown, send: Send<A>, recording: Recording): Promise<A> {
    return this.#callAgain(failure, () => send(this.#parts.store, recording));
  }

  /** Facts are numbered when they are written: one whose transaction rolls back leaves no gap. */
  #number(taken: readonly Gathered[]): Numbered {
    // Most writes are of one fact, and an array that grows takes more room than all else of it.
    const events: NewEvent[] = Array<NewEvent>(taken.length);
    let count = 0;
    let hasMore = false;
    for (const { fact, child, writing, size } of taken) {
      this.#bytes += bytesOfFact + size;
      hasMore ||= child !== undefined || writing !== undefined;
      if (fact === null) continue;
      this.#lastSeq += 1;
      events[count++] = numbered(fact, this.#lastSeq);
    }
    events.length = count;
    const numberedFacts: Numbered = { lease: this.#lease, events, children: none, writings: none };
    if (!hasMore) return numberedFacts;
    const writings = taken.flatMap(({ writing }) => writing ?? []);
    return {
      ...numberedFacts,
      children: taken.flatMap(({ child }) => child ?? []),
      writings: writings.length === 0 ? none : writings,
    };
  }

  async #place(writings: readonly GatheredWriting[]): Promise<readonly NewStreamItem[]> {
    const ask = (names: readonly string[]): Promise<ReadonlyMap<string, number>> =>
      this.#persist(() => this.#parts.store.lastPositions(this.#lease.runId, names));
    return this.#streamWrites().place(
      writings.map(({ terms }) => terms),
      ask,
    );
  }

  #takeArrived(): readonly RunEvent[] {
    const taken = this.#arrived;
    if (taken.length === 0) return none;
    this.#arrived = none;
    return taken;
  }

  #learn({ now, told }: Pick<RecordAnswer, "now" | "told">): void {
    this.time.learn(now);
    this.#isTold ||= told;
    // Whatever it writes before its end gives it a lease of its own.
    if (this.#lease.pack !== undefined) this.#lease = { ...this.#lease, pack: undefined };
  }

  /** What was written, as it is in the history now. */
  eventsOf(written: Written<RecordAnswer>): readonly RunEvent[] | Promise<readonly RunEvent[]> {
    const { answer, sent, arrived, isRepeated } = written;
    if (isRepeated) return this.#reload(written);
    this.#learn(answer);
    const recorded = sent.map((event) => asRecorded(event, answer));
    return arrived.length === 0 ? recorded : [...arrived, ...recorded];
  }

  /** An earlier try may have been the one that counted, at its own instant, which the answer does not tell. */
  async #reload({ answer, sent, arrived }: Written<RecordAnswer>): Promise<readonly RunEvent[]> {
    this.#learn(answer);
    const [first] = sent;
    if (first === undefined) return arrived;
    const recorded = await this.#loadFrom(first.seq);
    return [...arrived, ...recorded.slice(0, sent.length)];
  }

  #loadFrom(seq: number): Promise<readonly RunEvent[]> {
    return this.#persist(() => this.#parts.store.loadHistory(this.#lease.runId, seq - 1));
  }

  #streamWrites(): StreamWrites {
    return (this.#streams ??= createStreamWrites(this.#over));
  }

  #letGo(): void {
    const { runId } = this.#lease;
    this.#endStreams(() => new PawlError("RUN_ENDED", `Run ${runId} is no longer executed.`, { runId }));
  }

  #endStreams(reason: () => PawlError): void {
    this.#over ??= reason;
    this.#streams?.end(reason);
  }
}

type WriteKind = "record" | "park" | "end";
type Send<A> = (store: Store, recording: Recording) => Promise<A>;

/** Makes something of what was written. */
type Finish<A, R> = (written: Written<A>, holding: RunHolding) => R | Promise<R>;

const sendRecord: Send<RecordAnswer> = (store, recording) => store.record(recording);
const eventsOf: Finish<RecordAnswer, readonly RunEvent[]> = (written, holding) => holding.eventsOf(written);

function itself<A>(written: Written<A>): Written<A> {
  return written;
}

const points = {
  record: { before: "record.before", after: "record.after" },
  park: { before: "park.before", after: "park.after" },
  end: { before: "end.before", after: "end.after" },
} as const satisfies Record<WriteKind, Record<string, CrashPoint>>;

const none: readonly never[] = [];

/** One write: the facts have their numbers. */
interface Numbered extends Recording {
  /** Those that are still without their places, as `written` has them then. */
  readonly writings: readonly GatheredWriting[];
  written?: readonly NewStreamItem[];
}

function bytesOf(events: readonly RunEvent[]): number {
  return events.reduce((sum, { data }) => sum + bytesOfFact + sizeOf(data), 0);
}

/** Written out, so that all have one shape: whoever reads them is as fast for one kind as for all. */
function numbered(fact: Fact, seq: number): NewEvent {
  const { kind, name, attempt, beganAt, delayMs, dueAt, data, takes } = fact;
  return { seq, kind, name, attempt, beganAt, delayMs, dueAt, data, takes };
}

/** With how long what each speaks of took. */
function measuredFacts(taken: readonly Gathered[], events: readonly NewEvent[]): readonly WrittenFact[] {
  const times = taken.flatMap(({ fact, tookMs }) => (fact === null ? [] : [tookMs]));
  return events.map((event, index) => ({ event, tookMs: times[index] }));
}

interface Written<A> {
  readonly answer: A;
  readonly isRepeated: boolean;
  readonly sent: readonly NewEvent[];
  /** What had come into the history before, in transactions of the user's. */
  readonly arrived: readonly RunEvent[];
}
