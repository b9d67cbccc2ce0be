import { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { Ids } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import { placeOfInput } from "../core/payload-codec.ts";
import { plainPayloads, type Payloads } from "../core/payloads.ts";
import { beganAnew, presentLife, undoneBefore } from "../core/present-life.ts";
import type { Watch } from "../core/watch.ts";
import type { HolderTransactions } from "../store/holder-transactions.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { Message } from "../store/message.ts";
import { createBell, type Bell } from "./bell.ts";
import { Course } from "./course.ts";
import type { Outcome } from "./ending.ts";
import { createHolding, Lost, type Holding, type HoldingParts } from "./holding.ts";
import { createInbox } from "./inbox.ts";
import { createOrders } from "./orders.ts";
import { PlainRun, type PlainRunHost } from "./plain-run.ts";
import type { RunCode } from "./run-code.ts";
import { EngineLog } from "./run-log.ts";
import { createSteps, type RunningStep, type Steps } from "./steps.ts";
import { createStreams, type Streams } from "./streams.ts";
import { createTransactions, type Transact } from "./transactions.ts";
import type { Workflow } from "./workflow.ts";

export type { Outcome } from "./ending.ts";

/** One run in a worker's hands, from its claim until it is let go. */
export interface Execution {
  /** Calls its code, if that was to wait. */
  begin(): void;
  /** Never rejects. `lost`: the lease is gone, or was said to be; the store must not be asked about it any more. */
  readonly done: Promise<Outcome>;
  /** Unread messages may be there. */
  told(): void;
  /** The lease is known to be gone: stops at once. */
  drop(): void;
  /** The store may have let go of the run because it was asked to, which its answer is about to tell. */
  isLeaving(): boolean;
  /** Starts nothing new, and gives the run back once its code, told what the running steps did, asks for more. */
  release(): void;
  /** About how many bytes a parked run holds on to. */
  bytes(): number;
  /**
   * The parked run was claimed again by the same worker: goes on where its code waits, without reading or replaying
   * anything. Null, and of no more use, unless everything is as it was left. `waits`: as in `createExecution`.
   */
  resume(again: ClaimedRun, waits: boolean): Execution | null;
  stepsInProgress(): readonly RunningStep[];
  /** Keys of the steps that ran at this instant of the process's clock, or have since. */
  stepsSince(at: number): readonly string[];
}

export interface ExecutionDeps extends HoldingParts {
  readonly findWorkflow: (name: string, version: number) => Workflow | undefined;
  readonly ids: Ids;
  /** Looks over the code's shoulder. Default: nobody does. */
  readonly watch?: Watch | undefined;
  /** What the store can do inside a user's transaction. Default: nothing. */
  readonly transactions?: HolderTransactions | undefined;
  /** Resolves when everything that can go on without the outside world has done so. */
  readonly settle: () => Promise<void>;
  /** How long code that does not ask for what its history holds may take until it does. Default 2,000 ms. */
  readonly restGraceMs?: number;
  /** How long a run stays held after a fact that led the code nowhere, before it is parked. Default 100 ms. */
  readonly parkGraceMs?: number;
}

const none: readonly never[] = [];

/** Executes a claimed run: at once, or once it is told to begin. */
export function createExecution(claimed: ClaimedRun, deps: ExecutionDeps, waits = false): Execution {
  return new RunExecution(claimed, deps, waits);
}

/** What a run needs whose code asks for something. */
interface Tools {
  readonly bell: Bell;
  readonly streams: Streams;
  readonly steps: Steps;
}

/**
 * One object with methods, and nothing made or awaited that need not be: a worker makes one for every run, and many live at a time.
 * What a plain run does not need is null until it is asked for.
 */
class RunExecution implements Execution, PlainRunHost {
  readonly claimed: ClaimedRun;
  readonly payloads: Payloads;
  readonly #deps: ExecutionDeps;
  readonly #takenAt: number;
  #madeLog: EngineLog | null = null;
  #madeHolding: Holding | null = null;
  #madeTools: Tools | null = null;
  #madeTransact: Transact | null = null;
  #isDropped = false;
  #isReleasing = false;
  /** What it does once it is told to begin. */
  #waiting: (() => void) | null = null;
  /** It was told something before it began. */
  #isTold: boolean;
  /** Its code has asked for nothing yet. */
  #plain: PlainRun | null = null;
  #course: Course | null = null;
  #done: Promise<Outcome>;
  #settleDone: (outcome: Outcome) => void = () => {};

  constructor(claimed: ClaimedRun, deps: ExecutionDeps, waits: boolean) {
    this.claimed = claimed;
    this.#isTold = claimed.told;
    this.payloads = deps.payloads ?? plainPayloads;
    this.#deps = deps;
    this.#takenAt = deps.clock.now();
    this.#done = this.#untilDone();
    if (waits) this.#waiting = () => this.#begin();
    else this.#go(() => this.#begin());
  }

  begin(): void {
    const begin = this.#waiting;
    this.#waiting = null;
    // Its lease may have run out while it waited.
    if (begin !== null && !this.isHeld()) this.stopped();
    else if (begin !== null) this.#go(begin);
  }

  #go(begin: () => void): void {
    try {
      begin();
    } catch (error) {
      this.stopped(error);
    }
  }

  /** From a claim until it is let go. */
  #untilDone(): Promise<Outcome> {
    return new Promise<Outcome>((resolve) => {
      this.#settleDone = resolve;
    });
  }

  get done(): Promise<Outcome> {
    return this.#done;
  }

  get log(): EngineLog {
    const { runId, workflow, version } = this.claimed;
    return (this.#madeLog ??= new EngineLog(this.#deps.log, { runId, workflow, version }));
  }

  get holding(): Holding {
    if (this.#madeHolding === null) {
      this.#madeHolding = createHolding(this.claimed, this.#deps, this.log, this.#takenAt);
      if (this.#isDropped) this.#madeHolding.drop();
    }
    return this.#madeHolding;
  }

  /** Transactions of a run that has no past. */
  get transact(): Transact {
    return (this.#madeTransact ??= this.#transactOver(none));
  }

  told(): void {
    if (this.#plain?.isOver === true) return;
    if (this.#waiting !== null && this.#course === null) {
      this.#isTold = true;
      return;
    }
    this.holding.told();
    this.#plain?.engage();
    this.#madeTools?.bell.ring();
  }

  drop(): void {
    const { runId } = this.claimed;
    this.#isDropped = true;
    this.#waiting = null;
    this.#madeHolding?.drop();
    if (this.#madeTools !== null) {
      const { steps, bell } = this.#madeTools;
      steps.abort(new PawlError("LEASE_LOST", `Run ${runId} is no longer held.`, { runId }));
      bell.ring();
    }
    this.#settleDone("lost");
  }

  isHeld(): boolean {
    if (this.#madeHolding !== null) return this.#madeHolding.isHeld();
    this.#isDropped ||= this.#deps.isAlive?.() === false;
    return !this.#isDropped;
  }

  isLeaving(): boolean {
    return this.#plain?.isOver === true || this.#madeHolding?.isLeaving() === true;
  }

  release(): void {
    this.#isReleasing = true;
    if (this.#waiting === null) return this.#madeTools?.bell.ring();
    this.#waiting = null;
    this.#hold(this.#letGo());
  }

  bytes(): number {
    return this.holding.bytes();
  }

  resume(again: ClaimedRun, waits: boolean): Execution | null {
    const parked = this.#course;
    if (parked === null || !parked.isResumable || !this.holding.renew(again)) return null;
    this.#done = this.#untilDone();
    const goOn = (): void => this.#hold(this.#continue(parked, again.fired));
    if (waits) this.#waiting = goOn;
    else goOn();
    return this;
  }

  stepsInProgress(): readonly RunningStep[] {
    return this.#madeTools?.steps.inProgress() ?? none;
  }

  stepsSince(at: number): readonly string[] {
    return this.#madeTools?.steps.ranSince(at) ?? none;
  }

  ended(): void {
    this.#settleDone("ended");
  }

  stopped(error?: unknown): void {
    if (error !== undefined && !(error instanceof Lost))
      this.log.error("A bug in Pawl stopped the execution: please report it.", { error });
    this.drop();
  }

  get #tools(): Tools {
    return (this.#madeTools ??= this.#makeTools());
  }

  #makeTools(): Tools {
    const { clock, timers, random, watch, probe } = this.#deps;
    const claimed = this.claimed;
    const holding = this.holding;
    const payloads = this.payloads;
    const log = this.log;
    const bell = createBell(timers);
    const changed = (): void => bell.ring();
    const streams = createStreams({ runId: claimed.runId, holding, payloads, written: changed });
    const parts = { claimed, streams, holding, probe, log, payloads, clock, timers, random, watch, changed };
    return { bell, streams, steps: createSteps(parts) };
  }

  #hold(outcome: Promise<Outcome>): void {
    outcome.then(this.#settleDone, (error: unknown) => this.stopped(error));
  }

  #findWorkflow(): Workflow | undefined {
    return this.#deps.findWorkflow(this.claimed.workflow, this.claimed.version);
  }

  #begin(): void {
    const { input, isInputLeftOut, lastSeq } = this.claimed;
    const workflow = this.#findWorkflow();
    if (workflow === undefined) return this.#hold(this.#giveBack());
    const isFresh = !isInputLeftOut && lastSeq === 0 && !this.#isTold;
    // A run that must not be executed twice is only now known to begin.
    if (!isFresh || workflow.crashLimit === 0) this.#hold(this.#load(workflow));
    else if (!this.#runPlainly(workflow)) this.#hold(this.#run(workflow, input, none, none));
  }

  /** False: there is something to be done before its code is called, or about it. */
  #runPlainly(workflow: Workflow): boolean {
    const { claimed, payloads } = this;
    const isRaw = claimed.isRaw && workflow.inputSchema !== null;
    if (isRaw || claimed.deadlineAt !== null || this.#deps.watch !== undefined) return false;
    let input: unknown;
    try {
      input = payloads.decode(claimed.input, placeOfInput(claimed.runId));
    } catch {
      return false;
    }
    this.#plain = new PlainRun(workflow, this, this.#deps);
    this.#plain.run(input);
    return true;
  }

  courseOf(code: RunCode): Course {
    return this.#makeCourse(code.workflow, this.claimed, none, none, code);
  }

  goOn(course: Course): void {
    this.#hold(course.goOn());
  }

  async #giveBack(): Promise<Outcome> {
    this.log.error("The run's workflow is not registered here: it is given back.");
    await this.holding.release();
    return "released";
  }

  async #load(workflow: Workflow): Promise<Outcome> {
    const { input, isInputLeftOut } = this.claimed;
    const told = this.#isTold;
    const holding = this.holding;
    if (workflow.crashLimit === 0) await holding.begin();
    // Most need their history alone, if that has not come with them.
    if (!isInputLeftOut && !told) return this.#run(workflow, input, await this.#history(), none);
    const [loadedInput, history, messages] = await Promise.all([
      isInputLeftOut ? holding.loadInput() : input,
      this.#history(),
      told ? holding.readInbox() : none,
    ]);
    return this.#run(workflow, loadedInput, history, messages);
  }

  #history(): readonly RunEvent[] | Promise<readonly RunEvent[]> {
    const { history, lastSeq } = this.claimed;
    if (history !== undefined) return history;
    return lastSeq > 0 ? this.holding.loadHistory() : none;
  }

  #run(
    workflow: Workflow,
    input: Payload | null,
    loaded: readonly RunEvent[],
    messages: readonly Message[],
  ): Promise<Outcome> {
    const claimed = input === this.claimed.input ? this.claimed : { ...this.claimed, input };
    return this.#makeCourse(workflow, claimed, loaded, messages).run();
  }

  /** `code`: what has begun. */
  #makeCourse(
    workflow: Workflow,
    claimed: ClaimedRun,
    loaded: readonly RunEvent[],
    messages: readonly Message[],
    code?: RunCode,
  ): Course {
    const holding = this.holding;
    const { bell, streams, steps } = this.#tools;
    const history = presentLife(loaded);
    const inbox = createInbox();
    inbox.fill(messages);
    streams.recall(history);
    steps.remember(history, undoneBefore(loaded));
    // Written out: a copy of so many properties costs more than all else that a plain run needs.
    const { clock, ids, random, settle, timers, watch, probe } = this.#deps;
    this.#course = new Course({
      claimed,
      workflow,
      history,
      holding,
      inbox,
      orders: createOrders(claimed, history, inbox, holding),
      steps,
      streams,
      bell,
      log: this.log,
      payloads: this.payloads,
      clock,
      ids,
      random,
      settle,
      timers,
      watch,
      restGraceMs: this.#deps.restGraceMs ?? 2_000,
      parkGraceMs: this.#deps.parkGraceMs ?? 100,
      isReleasing: () => this.#isReleasing,
      cancelRecorded: () => probe("cancel.recorded"),
      transact: this.#transactOver(history),
      ...(code !== undefined && { code }),
    });
    return this.#course;
  }

  /** Transactions, once there is one. */
  #transactOver(history: readonly RunEvent[]): Transact {
    let transact: Transact | null = null;
    return (...call) => (transact ??= this.#createTransactions(history))(...call);
  }

  async #continue(parked: Course, fired: RunEvent | undefined): Promise<Outcome> {
    if (this.#findWorkflow()?.crashLimit === 0) await this.holding.begin();
    // Its code may have gone on by itself since it was claimed: whoever claims it next replays it.
    return parked.isResumable ? parked.resume(fired) : this.#letGo();
  }

  /** Gives the run back before its code is called. */
  async #letGo(): Promise<Outcome> {
    await this.holding.release(true);
    return "released";
  }

  #createTransactions(history: readonly RunEvent[]): Transact {
    const { transactions, ids, clock, random, timers } = this.#deps;
    return createTransactions({
      claimed: this.claimed,
      holding: this.holding,
      life: beganAnew(history),
      transactions,
      payloads: this.payloads,
      ids,
      clock,
      random,
      timers,
      log: this.log,
    });
  }
}
