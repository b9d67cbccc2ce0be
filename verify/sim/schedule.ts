import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import { isEnded } from "../../packages/pawl/src/core/run-status.ts";
import { createMemoryStore, type MemoryStore } from "../../packages/pawl/src/memory/memory-store.ts";
import type { NewRun } from "../../packages/pawl/src/store/run-record.ts";
import type { SnapshotRun } from "../../packages/pawl/src/store/snapshot.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import { expectEnd, findMismatch, type Surroundings } from "../gen/expect.ts";
import { workMs, type Program } from "../gen/program.ts";
import { generateScenario, type Scenario } from "../gen/scenario.ts";
import type { ExpectedRun } from "../hist/check-outcomes.ts";
import { checkHistory } from "../hist/check.ts";
import { observeStore, type StoreObserver } from "../hist/observe-store.ts";
import { Recorder } from "../hist/record.ts";
import { Verdict, type Violation } from "../hist/verdict.ts";
import { Callers } from "./callers.ts";
import { Ledger } from "./ledger.ts";
import { drawPlan, type Plan } from "./plan.ts";
import { Population, retryMs } from "./population.ts";
import { createRng, type Rng } from "./rng.ts";
import { count, countEffects, type Tally } from "./tally.ts";
import { World } from "./world.ts";

export interface ScheduleOptions {
  /** Keep a line for everything that happens. */
  readonly tracing?: boolean;
  /** Puts a mistake into the store, to see whether it is found out. */
  readonly spoil?: (store: Store) => Store;
}

export interface ScheduleResult {
  readonly violations: readonly Violation[];
  readonly landed: Tally;
  /** Calls made after the world had healed, and how many of them were answered. */
  readonly asked: number;
  readonly answered: number;
  readonly trace: string;
}

/** Runs one world from its seed to its rest, and checks what was observed in it. */
export async function runSchedule(seed: string, options: ScheduleOptions = {}): Promise<ScheduleResult> {
  return new Schedule(createRng(seed), options).run();
}

const beginning = Date.UTC(2026, 0, 1);
/** How often somebody looks whether all is done. */
const lookEveryMs = 100;
/** Beside two leases and the work itself: how long recovery may take. */
const slackMs = 10_000;

class Schedule {
  readonly #plan: Plan;
  readonly #scenario: Scenario;
  readonly #world = new World(beginning);
  readonly #healAtMs: number;
  readonly #recorder: Recorder;
  readonly #memory: MemoryStore;
  readonly #observer: StoreObserver;
  readonly #store: Store;
  readonly #population: Population;
  readonly #callers: Callers;
  readonly #around: Surroundings;
  readonly #runs = new Set<RunId>();
  readonly #landed: Tally = new Map();
  readonly #unforeseen = new Verdict();

  constructor(rng: Rng, { tracing = false, spoil = (store) => store }: ScheduleOptions) {
    const plan = (this.#plan = drawPlan(rng.fork("plan")));
    const limits = {
      leaseMs: plan.leaseMs,
      size: plan.programSize,
      depth: 2,
      roots: plan.roots,
      activeMs: plan.activeMs,
    };
    const scenario = (this.#scenario = generateScenario(rng.fork("scenario"), limits));
    const world = this.#world;
    const clock = { now: () => Math.floor(world.nowMs) };
    this.#healAtMs = beginning + plan.faultMs;
    this.#recorder = new Recorder(clock.now, tracing);
    this.#recorder.note(() => JSON.stringify({ plan, scenario }));
    this.#memory = createMemoryStore({ clock, deliver: (send) => send() });
    this.#store = spoil(this.#memory);
    this.#observer = {
      recorder: this.#recorder,
      epochs: new Map(),
      snapshot: () => this.#memory.snapshot(),
      created: (run) => this.#noteCreated(run),
      claimed: (_, epoch) => {
        if (epoch > 1) population.noteTakeover();
      },
    };
    this.#around = {
      signalsOf: (path) => scenario.signals.get(path) ?? new Map(),
      mayCrash: plan.crashLimit < 100,
    };
    const population = (this.#population = this.#populate(rng));
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
    const look = async (): Promise<void> => {
      if (!(await this.#isSettled())) return void this.#world.after(lookEveryMs, () => void look());
      // Zombies may still do harm.
      this.#population.resumeAll();
      this.#world.after(leaseMs / 2, () => (isOver = true));
    };
    this.#world.after(activeMs, () => void look());
    const boundMs = 2 * leaseMs + slackMs + this.#workMs();
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
      expected: (run) => this.#expect(run, snapshot.runs),
    });
    countEffects(this.#landed, this.#recorder.entries);
    this.#recorder.note(() => JSON.stringify(snapshot));
    return {
      ...this.#callers.afterHealing,
      violations: [...this.#unforeseen.violations, ...violations],
      landed: this.#landed,
      trace: this.#recorder.trace,
    };
  }

  #populate(rng: Rng): Population {
    const ledger = new Ledger(this.#recorder);
    return new Population({
      world: this.#world,
      rng,
      plan: this.#plan,
      healAtMs: this.#healAtMs,
      recorder: this.#recorder,
      storeFor: (process) => this.#storeFor(process),
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
    const { path } = JSON.parse(run.input?.json ?? "null") as Program;
    this.#callers.sendSignals(run.id, path);
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
  async #isSettled(): Promise<boolean> {
    if (!this.#callers.isDone) return false;
    const most = Number.MAX_SAFE_INTEGER;
    const { runs } = await this.#memory.listRuns({ limit: most, look: most });
    return runs.every(({ status, parkReason, dueAt, input }) => {
      if (isEnded(status)) return true;
      const program = JSON.parse(input?.json ?? "null") as Program;
      return parkReason === "waiting" && dueAt === null && expectEnd(program, this.#around).waits;
    });
  }

  #expect(run: SnapshotRun, runs: readonly SnapshotRun[]): ExpectedRun {
    const program = run.input?.value as Program;
    const parent = runs.find(({ id }) => id === run.parentId);
    return {
      ends: expectEnd(program, this.#around),
      attempts: program.attempts,
      isCancelled: parent === undefined ? this.#callers.cancelled.has(run.id) : parent.status === "cancelled",
      crashLimit: this.#plan.crashLimit,
      mismatch: (output) => findMismatch(program, output, this.#around),
    };
  }

  #workMs(): number {
    return this.#scenario.roots.reduce((sum, { program }) => sum + workMs(program, retryMs), 0);
  }
}
