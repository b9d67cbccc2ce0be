import { createClient, type Client } from "../src/client/client.ts";
import { noProbe, type Probe } from "../src/core/crash-point.ts";
import { parseDuration, type Duration } from "../src/core/duration.ts";
import { createIds } from "../src/core/ids.ts";
import type { LoadMeter } from "../src/core/load.ts";
import type { Log } from "../src/core/log.ts";
import type { Emit } from "../src/core/pawl-event.ts";
import type { Random } from "../src/core/random.ts";
import type { Timers } from "../src/core/timers.ts";
import { createMemoryStore, type MemoryStore } from "../src/memory/memory-store.ts";
import type { Audience } from "../src/store/audience.ts";
import { createStoreClock } from "../src/store/store-clock.ts";
import type { Store } from "../src/store/store.ts";
import type { Taker } from "../src/store/taker.ts";
import type { WorkerOptions } from "../src/worker/worker-options.ts";
import { createWorker, type Worker, type WorkerDeps } from "../src/worker/worker.ts";

interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** An engine on the memory store, in which time passes only when a test says so. */
export interface ManualWorld {
  readonly store: MemoryStore;
  readonly clock: { now(): number };
  /** What the parts of an engine are made with. */
  seams(view?: WorldView): WorkerDeps;
  readonly client: Client;
  readonly lines: readonly LogLine[];
  /** A worker, on this view of the store if one is given. */
  worker(options: WorkerOptions, view?: WorldView): Worker;
  /** Lets time pass; everything that becomes due happens, each at its own instant. */
  advance(duration: Duration): Promise<void>;
  /** Lets everything happen that needs no time. */
  rest(): Promise<void>;
  /** Timers that are set now. */
  plannedCalls(): number;
  /** Time passes while nothing gets to run, as in a blocked event loop. */
  block(duration: Duration): void;
}

interface WorldView {
  readonly store?: Store;
  readonly probe?: Probe;
  readonly emit?: Emit;
  readonly startLoad?: () => LoadMeter;
  readonly takers?: Set<Taker>;
  readonly audiences?: Set<Audience>;
}

interface PlannedCall {
  readonly at: number;
  readonly order: number;
  readonly act: () => void;
}

export function createManualWorld(): ManualWorld {
  let now = Date.UTC(2026, 0, 1);
  let order = 0;
  let settling = 0;
  const planned = new Set<PlannedCall>();
  const lines: LogLine[] = [];
  const clock = { now: () => now };
  const random = createRandom();
  const timers: Timers = {
    after(ms, act) {
      const call = { at: now + Math.max(0, ms), order: order++, act };
      planned.add(call);
      return () => planned.delete(call);
    },
  };
  const store = createMemoryStore({ clock });
  const log = createLog(lines);
  const settle = async (): Promise<void> => {
    settling += 1;
    await turn();
    settling -= 1;
  };

  const rest = async (): Promise<void> => {
    await turn();
    while (settling > 0) await turn();
    await turn();
  };

  const seams = (view: WorldView = {}): WorkerDeps => {
    const seen = view.store ?? store;
    const storeClock = createStoreClock(clock, seen);
    const ids = createIds(() => storeClock.now(), random);
    const { probe = noProbe, emit, startLoad, takers, audiences } = view;
    const place = { host: "test", pid: 1, ...(startLoad !== undefined && { startLoad }) };
    return {
      store: seen,
      storeClock,
      clock,
      timers,
      random,
      ids,
      log,
      probe,
      settle,
      emit,
      takers,
      audiences,
      ...place,
    };
  };

  return {
    store,
    clock,
    lines,
    seams,
    client: createClient(seams()),
    worker: (options, view) => createWorker(seams(view), options),
    async advance(duration) {
      const until = now + parseDuration(duration);
      await rest();
      for (let next = earliest(planned); next !== null && next.at <= until; next = earliest(planned)) {
        now = Math.max(now, next.at);
        planned.delete(next);
        next.act();
        await rest();
      }
      now = until;
    },
    rest,
    plannedCalls: () => planned.size,
    block(duration) {
      now += parseDuration(duration);
    },
  };
}

function earliest(planned: ReadonlySet<PlannedCall>): PlannedCall | null {
  let first: PlannedCall | null = null;
  for (const call of planned) {
    if (first === null || call.at < first.at || (call.at === first.at && call.order < first.order))
      first = call;
  }
  return first;
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The same numbers in every test. */
function createRandom(): Random {
  let state = 1;
  return {
    next() {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    },
  };
}

function createLog(lines: LogLine[]): Log {
  const write =
    (level: keyof Log) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      lines.push({ level, message, fields });
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}
