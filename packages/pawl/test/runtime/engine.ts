import { encode, decode } from "../../src/core/codec.ts";
import type { CrashPoint } from "../../src/core/crash-point.ts";
import { PawlError } from "../../src/core/error.ts";
import type { RunEvent } from "../../src/core/event.ts";
import { createIds, type RunId } from "../../src/core/ids.ts";
import type { Log } from "../../src/core/log.ts";
import type { RetryPolicy } from "../../src/core/retry.ts";
import { createSeededRandom } from "../../src/core/seeded-random.ts";
import type { Timers } from "../../src/core/timers.ts";
import { createMemoryStore, type MemoryStore } from "../../src/memory/memory-store.ts";
import {
  createExecution,
  type Execution,
  type ExecutionDeps,
  type Outcome,
} from "../../src/runtime/execution.ts";
import type { Workflow } from "../../src/runtime/workflow.ts";
import type { ClaimedRun } from "../../src/store/lease.ts";
import type { Topic } from "../../src/store/message.ts";
import { plainRun, type RunRecord } from "../../src/store/run-record.ts";
import type { Store } from "../../src/store/store.ts";
import { createManualClock, type ManualClock } from "../../src/testing/manual-clock.ts";

interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The smallest worker that can be: it claims, executes and waits, all by hand. */
export interface Engine {
  readonly store: MemoryStore;
  readonly clock: ManualClock;
  readonly log: readonly LogLine[];
  readonly outcomes: readonly Outcome[];
  readonly executions: readonly Execution[];
  /** Calls to the store by executions, by name. */
  readonly calls: readonly (keyof Store)[];
  nextId(): RunId;
  register(...workflows: readonly Workflow[]): void;
  start(
    workflow: Workflow,
    input?: unknown,
    options?: { readonly deadlineAt?: number; readonly key?: string; readonly retry?: RetryPolicy },
  ): Promise<RunId>;
  tell(runId: RunId, topic: Topic, data?: unknown): Promise<void>;
  /** Runs of a workflow, or all, newest first. */
  list(workflow?: string): Promise<readonly RunRecord[]>;
  /** For steps that take time. */
  delay(ms: number): Promise<void>;
  /** Claims and executes until nothing happens any more without time passing. */
  idle(): Promise<void>;
  /** Lets time pass: timers fire, parked runs wake. */
  pass(ms: number): Promise<void>;
  /** Lets time pass until the run has ended; resumes it once there is nothing else to wait for. */
  end(runId: RunId): Promise<RunRecord>;
  history(runId: RunId): Promise<readonly RunEvent[]>;
  /** History in short: `kind name`. */
  facts(runId: RunId): Promise<readonly string[]>;
  output(runId: RunId): Promise<unknown>;
  /** How many writes executions have made. */
  writes(): number;
  /** Kills the worker: whatever it holds is dropped, and taken from it by the sweep. */
  crash(): Promise<void>;
}

export interface EngineOptions {
  /** Called before and after each write by an execution; true kills the worker there. */
  readonly crashAt?: (call: number, when: "before" | "after") => boolean;
  /** Called before each write; throws to let it fail. */
  readonly failAt?: (call: number, when: "before" | "after") => boolean;
  /** Keeps the code of parked runs, as a worker does. Default false: each claim replays. */
  readonly isSticky?: boolean;
  readonly deps?: Partial<ExecutionDeps>;
  readonly probe?: (point: CrashPoint) => void;
}

const leaseMs = 15_000;
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const writes = new Set<PropertyKey>(["record", "park", "end", "release"]);

export function createEngine(options: EngineOptions = {}): Engine {
  const clock = createManualClock();
  const store = createMemoryStore({ clock });
  const random = createSeededRandom("engine");
  const ids = createIds(() => clock.now(), random);
  const timers = createManualTimers(clock);
  const workflows = new Map<string, Workflow>();
  const log: LogLine[] = [];
  const outcomes: Outcome[] = [];
  const calls: (keyof Store)[] = [];
  const executions: Execution[] = [];
  const open = new Map<RunId, Execution>();
  const kept = new Map<RunId, Execution>();
  let workerNumber = 0;
  let isRegistered = false;
  let hasDied = false;
  let writeNumber = 0;
  let settles = 0;

  const workerId = (): string => `worker-${workerNumber}`;

  const die = (): void => {
    hasDied ||= isRegistered;
    isRegistered = false;
    workerNumber += 1;
    for (const execution of open.values()) execution.drop();
    open.clear();
    kept.clear();
  };

  const watched = (owner: string): Store =>
    new Proxy<Store>(store, {
      get(target, name: keyof Store) {
        const method = target[name] as (...args: unknown[]) => Promise<unknown>;
        if (!writes.has(name)) {
          return (...args: unknown[]) => {
            calls.push(name);
            return method.apply(target, args);
          };
        }
        return async (...args: unknown[]) => {
          calls.push(name);
          const number = ++writeNumber;
          if (owner === workerId() && options.crashAt?.(number, "before") === true) {
            die();
            return new Promise(() => {});
          }
          if (options.failAt?.(number, "before") === true)
            throw new PawlError("STORE_UNAVAILABLE", "lost request");
          const answer = await method.apply(target, args);
          if (owner === workerId() && options.crashAt?.(number, "after") === true) {
            die();
            return new Promise(() => {});
          }
          if (options.failAt?.(number, "after") === true)
            throw new PawlError("STORE_UNAVAILABLE", "lost answer");
          return answer;
        };
      },
    });

  const write =
    (level: keyof Log) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}): void =>
      void log.push({ level, message, fields });
  const sink: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };

  /** Takes what the dead have held, and registers this worker. */
  const recover = async (): Promise<void> => {
    if (hasDied) {
      hasDied = false;
      clock.advance(leaseMs);
      await store.sweep({ limit: 1_000, after: null });
    }
    if (isRegistered) return;
    isRegistered = true;
    await store.registerWorker({
      id: workerId(),
      leaseMs,
      host: "test",
      pid: 1,
      queues: ["default"],
      concurrency: 100,
    });
  };

  /** A worker that holds something stays alive by heartbeats; one that holds nothing makes way for another. */
  const advance = async (ms: number): Promise<void> => {
    const until = Math.ceil(clock.now() + Math.max(0, ms));
    const held = store.snapshot().lease.map(({ runId, epoch }) => ({ runId, epoch }));
    if (held.length === 0 && options.isSticky !== true) {
      if (isRegistered) await store.retireWorker(workerId());
      isRegistered = false;
      die();
    }
    while (clock.now() < until) {
      clock.advance(isRegistered ? Math.min(leaseMs - 1, until - clock.now()) : until - clock.now());
      if (isRegistered) await store.heartbeat({ workerId: workerId(), held, claimsKnownTo: null });
    }
    timers.fire();
  };

  const claim = async (): Promise<number> => {
    const lanes = [...workflows.values()].map(({ name, version, queue, crashLimit }) => ({
      queue,
      workflow: name,
      version,
      after: null,
      crashLimit,
    }));
    const owner = workerId();
    // It may have died a moment ago; then somebody else registers and claims in the next round.
    if (!isRegistered) return 1;
    const request = { workerId: owner, lanes, limit: 100, begin: true };
    const claims = [
      store.claimRuns({ ...request, suspects: false }),
      store.claimRuns({ ...request, suspects: true }),
    ];
    const runs = (await Promise.all(claims)).flatMap((claim) => claim.runs);
    if (owner !== workerId()) return 1;
    for (const claimed of runs) {
      const execution = kept.get(claimed.runId)?.resume(claimed, false) ?? begin(claimed, owner);
      kept.delete(claimed.runId);
      open.set(claimed.runId, execution);
      executions.push(execution);
      void execution.done.then((outcome) => {
        outcomes.push(outcome);
        if (open.get(claimed.runId) !== execution) return;
        open.delete(claimed.runId);
        if (outcome === "parked" && options.isSticky === true) kept.set(claimed.runId, execution);
      });
    }
    return runs.length;
  };

  const begin = (claimed: ClaimedRun, owner: string): Execution =>
    createExecution(claimed, {
      store: watched(owner),
      findWorkflow: (name, version) => workflows.get(`${name}@${version}`),
      workerId: owner,
      ids,
      random,
      clock,
      timers,
      log: sink,
      probe: options.probe ?? (() => {}),
      settle() {
        settles += 1;
        return turn();
      },
      ...options.deps,
    });

  store.subscribe((hint) => {
    if (hint.kind === "told") open.get(hint.runId)?.told();
  });

  const engine: Engine = {
    store,
    clock,
    log,
    outcomes,
    calls,
    executions,
    nextId: () => ids.next(),
    register(...added) {
      for (const workflow of added) workflows.set(`${workflow.name}@${workflow.version}`, workflow);
    },
    async start(workflow, input, { deadlineAt, key, retry } = {}) {
      engine.register(workflow);
      const id = ids.next();
      await store.createRuns([
        {
          ...plainRun,
          id,
          workflow: workflow.name,
          version: workflow.version,
          queue: workflow.queue,
          input: encode(input),
          key: key ?? null,
          retry: retry ?? null,
          deadlineAt: deadlineAt ?? null,
        },
      ]);
      return id;
    },
    async tell(runId, topic, data) {
      await store.tell({ id: ids.next(), runId, topic, data: encode(data), idempotencyKey: null });
    },
    async list(workflow) {
      const page = await store.listRuns({ limit: 10, look: 10, ...(workflow !== undefined && { workflow }) });
      return page.runs;
    },
    delay: (ms) => new Promise((resolve) => void timers.after(ms, resolve)),
    async idle() {
      let quiet = 0;
      while (quiet < 12) {
        const before = calls.length + settles;
        await recover();
        await store.wakeDue(1_000);
        const claimed = await claim();
        await turn();
        quiet = claimed === 0 && calls.length + settles === before ? quiet + 1 : 0;
      }
    },
    async pass(ms) {
      const until = clock.now() + ms;
      for (;;) {
        await engine.idle();
        const next = nextInstant(store, timers);
        if (next === null || next > until) break;
        await advance(next - clock.now());
      }
      await advance(until - clock.now());
      await engine.idle();
    },
    async end(runId) {
      for (let rounds = 0; rounds < 1_000; rounds++) {
        await engine.idle();
        const run = await store.getRun(runId);
        if (run !== null && run.endedAt !== null) return run;
        const next = nextInstant(store, timers);
        if (next !== null) await advance(next - clock.now());
        else if (run?.status === "paused") await engine.tell(runId, "resume");
        else break;
      }
      throw new Error(
        `The run does not end: ${JSON.stringify([await store.getRun(runId), await engine.facts(runId), log.slice(-3)])}`,
      );
    },
    history: (runId) => store.loadHistory(runId, 0),
    async facts(runId) {
      const events = await store.loadHistory(runId, 0);
      return events.map(({ kind, name }) => (name === null ? kind : `${kind} ${name}`));
    },
    async output(runId) {
      return decode((await store.getRun(runId))?.output ?? null);
    },
    writes: () => writeNumber,
    async crash() {
      die();
      await engine.idle();
    },
  };
  return engine;
}

interface ManualTimers extends Timers {
  next(): number | null;
  fire(): void;
}

function createManualTimers(clock: ManualClock): ManualTimers {
  const waiting = new Map<symbol, { readonly at: number; readonly callback: () => void }>();
  return {
    after(ms, callback) {
      const id = Symbol("timer");
      waiting.set(id, { at: clock.now() + ms, callback });
      return () => void waiting.delete(id);
    },
    next: () => (waiting.size === 0 ? null : Math.min(...[...waiting.values()].map(({ at }) => at))),
    fire() {
      for (const [id, { at, callback }] of waiting) {
        if (at > clock.now()) continue;
        waiting.delete(id);
        callback();
      }
    },
  };
}

function nextInstant(store: MemoryStore, timers: ManualTimers): number | null {
  const due = store.snapshot().parked.flatMap(({ dueAt }) => (dueAt === null ? [] : [dueAt]));
  const timer = timers.next();
  const all = timer === null ? due : [...due, timer];
  return all.length === 0 ? null : Math.min(...all);
}
