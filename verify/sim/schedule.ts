import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Payload } from "../../packages/pawl/src/core/json.ts";
import type { RetryPolicy } from "../../packages/pawl/src/core/retry.ts";
import { createHintBox } from "../../packages/pawl/src/memory/hint-box.ts";
import { storeOf, type MemoryStore } from "../../packages/pawl/src/memory/memory-store.ts";
import { createState, type State } from "../../packages/pawl/src/memory/state.ts";
import type { NewRun } from "../../packages/pawl/src/store/run-record.ts";
import type { SnapshotRun } from "../../packages/pawl/src/store/snapshot.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import { expectEnd, findMismatch, type Surroundings } from "../gen/expect.ts";
import { chainOf, workMs, type Attempts, type Program } from "../gen/program.ts";
import { generateScenario, type Scenario } from "../gen/scenario.ts";
import type { ExpectedRun } from "../hist/check-outcomes.ts";
import { checkHistory } from "../hist/check.ts";
import { observeStore, type StoreObserver } from "../hist/observe-store.ts";
import { Recorder } from "../hist/record.ts";
import { Verdict, type Violation } from "../hist/verdict.ts";
import type { Script } from "../points/script.ts";
import { Callers } from "./callers.ts";
import { cutAt, readSeed } from "./cuts.ts";
import { Ledger } from "./ledger.ts";
import { drawPlan, type Plan } from "./plan.ts";
import { Population } from "./population.ts";
import { createRng, type Rng } from "./rng.ts";
import { SimDatabase } from "./sim-database.ts";
import { count, countEffects, type Tally } from "./tally.ts";
import { World } from "./world.ts";

/** Answers a store with a mistake in it; its state is at hand, for mistakes that no answer shows. */
export type Spoil = (store: Store, state: State) => Store;

export interface ScheduleOptions {
  /** Keep a line for everything that happens. */
  readonly tracing?: boolean;
  /** Puts a mistake into the store, to see whether it is found out. */
  readonly spoil?: Spoil | undefined;
  /** Makes things go wrong beside what the plan says. */
  readonly script?: Script;
}

export interface ScheduleResult {
  readonly violations: readonly Violation[];
  readonly landed: Tally;
  /** Calls made after the world had healed, and how many of them were answered. */
  readonly asked: number;
  readonly answered: number;
  readonly trace: string;
}

/** What is decided before a world begins. Plain values, and the rest follows from them and the seed. */
export interface Terms {
  readonly scenario: Scenario;
  readonly plan: Plan;
}

/** @param change changes what was drawn. */
export function drawTerms(text: string, change: (drawn: Plan) => Plan = (drawn) => drawn): Terms {
  const { seed, cuts } = readSeed(text);
  const rng = createRng(seed);
  const plan = change(drawPlan(rng.fork("plan")));
  const { leaseMs, programSize: size, roots, activeMs, isDeployed: mayPatch } = plan;
  const own = { isPunctual: true, isAlone: true, mayPause: true };
  const limits = { leaseMs, size, depth: 2, roots, activeMs, mayPatch, ...own };
  const scenario = generateScenario(rng.fork("scenario"), limits);
  return cuts.reduce<Terms>(cutAt, { scenario, plan });
}

/** Runs one world from its seed to its rest, and checks what was observed in it. */
export async function runSchedule(
  seed: string,
  options: ScheduleOptions = {},
  terms: Terms = drawTerms(seed),
): Promise<ScheduleResult> {
  return new Schedule(createRng(readSeed(seed).seed), terms, options).run();
}

const beginning = Date.UTC(2026, 0, 1);
/** How often in a lease somebody looks whether all is done. */
const looksPerLease = 8;
/** How long what is under way is waited for, at a time. */
const restMs = 2;
/** A run that may have killed its worker is tried alone, and others wait meanwhile: for so long. */
const leasesOfSuspects = 4;
/** Beside two leases and the work itself: how long recovery may take. */
const slackMs = 10_000;

class Schedule {
  readonly #plan: Plan;
  readonly #scenario: Scenario;
  readonly #world = new World(beginning);
  readonly #healAtMs: number;
  readonly #recorder: Recorder;
  readonly #state: State;
  readonly #memory: MemoryStore;
  readonly #observer: StoreObserver;
  readonly #store: Store;
  readonly #population: Population;
  readonly #callers: Callers;
  readonly #around: Surroundings;
  readonly #runs = new Set<RunId>();
  readonly #landed: Tally = new Map();
  readonly #unforeseen = new Verdict();

  constructor(
    rng: Rng,
    { plan, scenario }: Terms,
    { tracing = false, spoil = (store) => store, script }: ScheduleOptions,
  ) {
    this.#plan = plan;
    this.#scenario = scenario;
    const world = this.#world;
    const clock = { now: () => Math.floor(world.nowMs) };
    this.#healAtMs = beginning + plan.faultMs;
    this.#recorder = new Recorder(clock.now, tracing);
    this.#recorder.note(() => JSON.stringify({ plan, scenario }));
    const state = (this.#state = createState(
      clock.now,
      createHintBox((send) => send()),
    ));
    this.#memory = storeOf(state);
    this.#store = spoil(this.#memory, state);
    this.#observer = {
      recorder: this.#recorder,
      epochs: new Map(),
      snapshot: () => this.#memory.snapshot(),
      look: (run) => lookAt(state, run),
      created: (run) => this.#noteCreated(run),
      redriven: (run) => {
        const program = readProgram(state.runs.get(run)?.input);
        this.#sendSignals(run, program);
        this.#callers.patrol(run, program);
      },
      claimed: (_, epoch) => {
        if (epoch > 1) population.noteTakeover();
      },
    };
    this.#around = {
      signalsOf: (path) => scenario.signals.get(path) ?? new Map(),
      mayStop: scenario.mayStop || plan.crashLimit < 100,
      mayOutlive: scenario.roots.some(({ redrives }) => redrives.some(({ isForAll }) => isForAll)),
    };
    const population = (this.#population = this.#populate(rng, state, script));
    this.#callers = new Callers({
      world,
      plan,
      scenario,
      recorder: this.#recorder,
      healAtMs: this.#healAtMs,
      rng: rng.fork("callers"),
      client: (chance) => population.findClient(chance),
      unforeseen: (what, error) => this.#noteUnforeseen(what, error),
    });
  }

  async run(): Promise<ScheduleResult> {
    const onRejection = (error: unknown): void =>
      this.#noteUnforeseen("a rejection that nobody handled", error);
    process.on("unhandledRejection", onRejection);
    const { leaseMs, activeMs } = this.#plan;
    let isOver = false;
    let restsUntilMs: number | null = null;
    const look = (): void => {
      if (!this.#isSettled()) return void this.#world.after(leaseMs / looksPerLease, look);
      // Zombies may still do harm, and what is under way.
      const hadZombies = this.#population.resumeAll();
      restsUntilMs ??= this.#world.nowMs + leaseMs / 2;
      isOver = !hadZombies && (this.#world.isQuiet || this.#world.nowMs >= restsUntilMs);
      if (!isOver) this.#world.after(hadZombies ? leaseMs / 2 : restMs, look);
    };
    this.#world.after(activeMs, look);
    const boundMs = (2 + leasesOfSuspects) * leaseMs + slackMs + this.#workMs();
    await this.#world.runUntil(this.#healAtMs + boundMs, () => isOver);
    await this.#storeFor("the end").sweep({ limit: 1_000, after: null });
    // Rejections that nobody handles are told of at the end of a turn.
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", onRejection);
    return this.#conclude();
  }

  #conclude(): ScheduleResult {
    const snapshot = this.#memory.snapshot();
    const violations = checkHistory({
      entries: this.#recorder.entries,
      snapshot,
      expected: (run) => this.#expect(run),
    });
    countEffects(this.#landed, this.#recorder.entries, snapshot);
    this.#recorder.note(() => JSON.stringify(snapshot));
    return {
      ...this.#callers.afterHealing,
      violations: [...this.#unforeseen.violations, ...violations],
      landed: this.#landed,
      trace: this.#recorder.trace,
    };
  }

  #populate(rng: Rng, state: State, script: Script | undefined): Population {
    const ledger = new Ledger(this.#recorder);
    return new Population({
      world: this.#world,
      rng,
      plan: this.#plan,
      healAtMs: this.#healAtMs,
      script,
      recorder: this.#recorder,
      storeFor: (process) => this.#storeFor(process),
      database: new SimDatabase(this.#recorder, state),
      hostFor: (process) => ledger.hostFor(process),
      landed: (process, kind) => this.#noteFault(process, kind),
      unforeseen: (what, error) => this.#noteUnforeseen(what, error),
    });
  }

  #storeFor(process: string): Store {
    return observeStore(this.#store, process, this.#observer);
  }

  #noteCreated(run: NewRun): void {
    if (this.#runs.has(run.id)) return;
    this.#runs.add(run.id);
    const program = readProgram(run.input);
    this.#sendSignals(run.id, program);
    this.#callers.attend(run.id, program);
    this.#callers.patrol(run.id, program);
    if (run.parent !== null) this.#callers.meddle(run.id);
  }

  /** Those for the runs that go on from it, too: they take along what is unread. */
  #sendSignals(run: RunId, program: Program): void {
    for (const { path } of chainOf(program)) this.#callers.sendSignals(run, path);
  }

  #noteFault(process: string, kind: string): void {
    count(this.#landed, kind);
    this.#recorder.add({ by: "fault", at: this.#recorder.now, process, kind });
  }

  #noteUnforeseen(what: string, error: unknown): void {
    const described = error instanceof Error ? (error.stack ?? `${error.name}: ${error.message}`) : error;
    this.#unforeseen.report("I19", what, described ?? null);
  }

  /** All callers are done, and every run has ended that can. */
  #isSettled(): boolean {
    if (!this.#callers.isDone) return false;
    for (const { id, room, input } of this.#state.runs.values()) {
      if (room === null) {
        if (this.#callers.isFollowed(id)) return false;
      } else {
        if (room.kind !== "parked" || room.reason !== "waiting" || room.dueAt !== null) return false;
        if (!expectEnd(readProgram(input), this.#around).waits) return false;
      }
    }
    return true;
  }

  #expect(run: SnapshotRun): ExpectedRun {
    const program = run.input?.value as Program;
    const attempts = (run.retry as RetryPolicy | null)?.attempts ?? program.attempts;
    return {
      ends: expectEnd({ ...program, attempts: attempts as Attempts }, this.#around),
      attempts,
      crashLimit: this.#plan.crashLimit,
      mismatch: (output) => findMismatch(program, output, this.#around),
    };
  }

  /** How long all programs take at most, in as many lives as callers give them, and what callers do meanwhile. */
  #workMs(): number {
    const { roots, batch } = this.#scenario;
    const lives = roots.reduce((sum, { redrives }) => sum + redrives.length, 1);
    const once = [
      ...roots.map(({ program, terms }) => ({ ...program, attempts: terms.attempts ?? program.attempts })),
      ...(batch?.items ?? []).map(({ program }) => program),
      ...roots.flatMap(({ rival }) => rival?.program ?? []),
    ].reduce((sum, program) => sum + workMs(program, this.#plan.retryMs), 0);
    const waits = roots.flatMap(({ terms, reschedules, redrives }) => [
      terms.delayMs ?? 0,
      terms.timeoutMs ?? 0,
      terms.expiresInMs ?? 0,
      ...reschedules.map(({ startInMs }) => startInMs ?? 0),
      ...redrives.map(({ afterMs }) => afterMs),
    ]);
    return once * lives + waits.reduce((sum, ms) => sum + ms, 0);
  }
}

function readProgram(input: Payload | null | undefined): Program {
  return JSON.parse(input?.json ?? "null") as Program;
}

function lookAt(state: State, runId: RunId): { readonly isHeld: boolean; readonly isDeaf: boolean } {
  const run = state.runs.get(runId);
  const room = run?.room;
  return {
    isHeld: room?.kind === "lease",
    isDeaf: room?.kind === "ready" && !room.told && (run?.unread.size ?? 0) > 0,
  };
}
