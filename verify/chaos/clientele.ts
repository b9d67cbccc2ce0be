import type pg from "pg";
import { PawlError, type ErrorCode } from "../../packages/pawl/src/core/error.ts";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { EndStatus } from "../../packages/pawl/src/core/run-status.ts";
import type { Pawl } from "../../packages/pawl/src/index.ts";
import type { SnapshotRun } from "../../packages/pawl/src/store/snapshot.ts";
import { systemTimers } from "../../packages/pawl/src/system/system-timers.ts";
import { expectEnd, findMismatch, type Surroundings } from "../gen/expect.ts";
import { createProgramWorkflows, type ProgramHost, type ProgramWorkflow } from "../gen/program-workflow.ts";
import { chainOf, workMs, type Attempts, type Program } from "../gen/program.ts";
import { generateScenario, type RootPlan, type Scenario } from "../gen/scenario.ts";
import type { ExpectedRun } from "../hist/check-outcomes.ts";
import type { Recorder } from "../hist/record.ts";
import { createAskingPort } from "../sim/asking-port.ts";
import { Callers } from "../sim/callers.ts";
import type { ClientPort } from "../sim/client-port.ts";
import { createRng, type Rng } from "../sim/rng.ts";
import { createBornReader, type Born } from "./audit.ts";

const endOf: Readonly<Partial<Record<ErrorCode, EndStatus>>> = {
  RUN_FAILED: "failed",
  RUN_CANCELLED: "cancelled",
  RUN_TIMED_OUT: "timed_out",
  RUN_EXPIRED: "expired",
};

interface ClienteleParts {
  /** Each stands for a process: what one waits for holds up no other. */
  readonly pawls: readonly Pawl[];
  /** Past the proxy. */
  readonly pool: pg.Pool;
  readonly seed: string;
  readonly recorder: Recorder;
  readonly leaseMs: number;
  readonly retryMs: number;
  readonly crashLimit: number;
}

/** One scenario with its callers. */
interface Case {
  readonly scenario: Scenario;
  readonly callers: Callers;
  readonly around: Surroundings;
}

/** No scenario comes to so many. */
const mostCalls = 1_000_000;
/** Starts scenario after scenario, and lets their callers do with the runs what they say. */
export class Clientele {
  readonly #parts: ClienteleParts;
  readonly #cases = new Map<string, Case>();
  readonly #ports: readonly ClientPort[];
  readonly #readBorn: () => Promise<readonly Born[]>;
  readonly #died = new Promise<void>(() => {});
  readonly troubles: string[] = [];
  /** What waits until nothing is on its way any more. */
  readonly #atHealing: (() => void)[] = [];
  #healedAt = Number.POSITIVE_INFINITY;

  constructor(parts: ClienteleParts) {
    this.#parts = parts;
    this.#readBorn = createBornReader(parts.pool);
    const workflows = createProgramWorkflows(nobody, parts);
    this.#ports = parts.pawls.map((pawl) => createPort(pawl, workflows, parts.retryMs));
  }

  get scenarios(): number {
    return this.#cases.size;
  }

  /** From here on every call is to succeed. */
  heal(): void {
    this.#healedAt = this.#parts.recorder.now;
    for (const act of this.#atHealing) act();
  }

  /** Calls that began after healing, and how many of them got an answer. */
  get afterHealing(): { readonly asked: number; readonly answered: number } {
    const counts = [...this.#cases.values()].map(({ callers }) => callers.afterHealing);
    return {
      asked: counts.reduce((sum, { asked }) => sum + asked, 0),
      answered: counts.reduce((sum, { answered }) => sum + answered, 0),
    };
  }

  begin(): void {
    const name = `s${this.#cases.size}`;
    const rng = createRng(`${this.#parts.seed}/${name}`);
    const { leaseMs, recorder } = this.#parts;
    const scenario = drawScenario(rng, name, leaseMs);
    const healedAt = (): number => this.#healedAt;
    const atHealing = this.#atHealing;
    const firstCall = this.#cases.size * mostCalls;
    const callers = new Callers({
      world: {
        get nowMs() {
          return recorder.now;
        },
        after(ms, act) {
          if (ms !== Number.POSITIVE_INFINITY) return systemTimers.after(ms, act);
          atHealing.push(act);
          return () => {};
        },
      },
      recorder: {
        get now() {
          return recorder.now;
        },
        add: (entry) =>
          recorder.add(entry.by === "client" ? { ...entry, call: firstCall + entry.call } : entry),
      },
      rng: rng.fork("callers"),
      plan: { leaseMs, latencyMs: 1 },
      scenario,
      get healAtMs() {
        return healedAt();
      },
      client: (chance) => ({ name: "client", port: chance.pick(this.#ports), died: this.#died }),
      unforeseen: (what, error) =>
        this.troubles.push(
          `${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        ),
    });
    const around: Surroundings = {
      signalsOf: (path) => scenario.signals.get(path) ?? new Map(),
      mayStop: scenario.mayStop,
      mayOutlive: false,
    };
    this.#cases.set(name, { scenario, callers, around });
  }

  /** Looks for runs that came to be, and tells those who have to do with them. */
  async lookForBorn(): Promise<void> {
    for (const { run, input, parent, key } of await this.#readBorn()) {
      const callers = this.#cases.get(nameOf(key))?.callers;
      // A job is no program.
      if (key === null) continue;
      for (const { path } of chainOf(input as Program)) callers?.sendSignals(run, path);
      if (parent !== null) callers?.meddle(run);
    }
  }

  /** Runs that still have to go on, callers that still have to act, and how long the longest scenario takes by itself. */
  async unsettled(): Promise<{ readonly left: number; readonly runs: readonly RunId[] }> {
    const busy = [...this.#cases.values()].filter(({ callers }) => !callers.isDone).length;
    const { rows } = await this.#parts.pool.query<{
      id: RunId;
      status: string | null;
      reason: string | null;
      due: boolean;
      input: Program;
      key: string;
    }>(
      `select r.id, e.status, p.reason, p.due_at is not null as due, r.input, o.key
         from pawl.run r left join pawl.parked p on p.run_id = r.id join pawl.run o on o.id = coalesce(r.root_id, r.id)
         left join pawl.endings e on e.run_id = r.id
        where e.status is null or e.status <> 'completed' and r.parent_id is null`,
    );
    const runs = rows.filter(({ id, status, reason, due, input, key }) => {
      const known = this.#cases.get(nameOf(key));
      if (known === undefined) return status === null;
      if (status !== null) return known.callers.isFollowed(id);
      return !(reason === "waiting" && !due && expectEnd(input, known.around).waits);
    });
    return { left: busy + runs.length, runs: runs.map(({ id }) => id) };
  }

  /** How long the longest of the scenarios takes when nothing disturbs it. */
  get workMs(): number {
    const { retryMs } = this.#parts;
    return Math.max(0, ...[...this.#cases.values()].map(({ scenario }) => scenarioMs(scenario, retryMs)));
  }

  /** @param keyOf the key of the run at the root of this one */
  expect(run: SnapshotRun, keyOf: (run: SnapshotRun) => string | null): ExpectedRun | null {
    const known = this.#cases.get(nameOf(keyOf(run)));
    if (known === undefined) return null;
    const program = run.input?.value as Program;
    const { attempts = program.attempts } = (run.retry ?? {}) as { readonly attempts?: Attempts };
    return {
      ends: expectEnd({ ...program, attempts }, known.around),
      attempts,
      crashLimit: this.#parts.crashLimit,
      mismatch: (output) => findMismatch(program, output, known.around),
    };
  }
}

function nameOf(key: string | null): string {
  return key?.split(":")[0] ?? "";
}

/** Like those of the simulation, but that many share a database: keys are its own, and nobody redrives what is not theirs. */
function drawScenario(rng: Rng, name: string, leaseMs: number): Scenario {
  const size = 1 + rng.below(6);
  // Most are short, so that there are many; few last for more than a lease.
  const scaleMs = rng.chance(0.1) ? leaseMs : leaseMs / 3;
  const limits = {
    leaseMs: scaleMs,
    size,
    depth: 2,
    roots: 1 + rng.below(2),
    activeMs: scaleMs,
    mayPatch: true,
    isPunctual: false,
  };
  const scenario = generateScenario(rng.fork("scenario"), limits);
  const own = (key: string): string => `${name}:${key}`;
  const untimed = { delayMs: null, expiresInMs: null, timeoutMs: null };
  const roots = scenario.roots.map((root): RootPlan => ({
    ...root,
    key: own(root.key),
    terms: { ...root.terms, ...untimed },
    pause: root.pause === null ? null : { ...root.pause, forMs: root.pause.forMs ?? leaseMs },
    reschedules: [],
    redrives: root.redrives.map((redrive) => ({ ...redrive, isForAll: false })),
  }));
  const { batch } = scenario;
  const items = batch?.items.map((item) => ({ ...item, key: own(item.key) })) ?? [];
  return { ...scenario, roots, batch: batch === null ? null : { ...batch, items } };
}

function scenarioMs({ roots, batch }: Scenario, retryMs: number): number {
  const programs = [
    ...roots.flatMap(({ program, rival }) => (rival === null ? [program] : [program, rival.program])),
    ...(batch?.items ?? []).map(({ program }) => program),
  ];
  const lives = 1 + Math.max(0, ...roots.map(({ redrives }) => redrives.length));
  return lives * Math.max(...programs.map((program) => workMs(program, retryMs)));
}

/** Whoever only starts runs executes none. */
const nobody: ProgramHost = {
  beginStep: () => Promise.reject(new Error("A client executes nothing.")),
  beginUndo: () => Promise.reject(new Error("A client executes nothing.")),
  work: () => Promise.resolve(),
  asked: () => {},
  delivered: () => {},
};

function createPort(
  pawl: Pawl,
  workflows: ReadonlyMap<Attempts, ProgramWorkflow>,
  retryMs: number,
): ClientPort {
  const workflowOf = (attempts: Attempts): ProgramWorkflow => {
    const workflow = workflows.get(attempts);
    if (workflow === undefined) throw new Error(`No workflow makes ${attempts} attempts.`);
    return workflow;
  };
  return {
    async start(program, key, { attempts, priority, mustBeNew }) {
      const handle = await pawl.start(workflowOf(program.attempts), program, {
        key,
        priority,
        ...(attempts === null ? {} : { retry: { attempts, backoff: "fixed", initial: retryMs } }),
        ...(mustBeNew ? { onConflict: "reject" } : {}),
      });
      return handle.id;
    },
    async startMany({ attempts, items }) {
      const given = items.map(({ program, key }) => ({ input: program, key }));
      return (await pawl.startMany(workflowOf(attempts), given)).map(({ id }) => id);
    },
    signal: (run, name, value, idempotencyKey) => pawl.signal(run, name, value, { idempotencyKey }),
    cancel: (run) => pawl.cancel(run),
    terminate: (run) => pawl.terminate(run, "terminated"),
    redrive: (run) => pawl.redrive(run),
    async signalOrStart(program, key, { attempts, priority }, signal, payload) {
      const handle = await pawl.signalOrStart(workflowOf(program.attempts), {
        key,
        signal,
        payload,
        idempotencyKey: payload,
        input: program,
        priority,
        ...(attempts === null ? {} : { retry: { attempts, backoff: "fixed", initial: retryMs } }),
      });
      return handle.id;
    },
    redriveAll: () => Promise.reject(new Error("Others have runs here, too.")),
    async fork(run, from, key) {
      try {
        return (await pawl.fork(run, { from, key })).id;
      } catch (error) {
        if (PawlError.is(error, "INVALID_OPTION")) return null;
        throw error;
      }
    },
    cancelAll: () => Promise.reject(new Error("Others have runs here, too.")),
    pauseAll: () => Promise.reject(new Error("Others have runs here, too.")),
    resumeAll: () => Promise.reject(new Error("Others have runs here, too.")),
    reschedule: () => Promise.reject(new Error("Nothing is rescheduled here.")),
    pause: (run) => pawl.pause(run),
    resume: (run) => pawl.resume(run),
    ...createAskingPort(pawl),
    async result(run) {
      try {
        return { status: "completed", output: (await pawl.handle(run).result()) ?? null };
      } catch (error) {
        const status = PawlError.is(error) ? endOf[error.code] : undefined;
        if (status === undefined) throw error;
        return { status, output: null };
      }
    },
  };
}
