import type { CrashPoint, Probe } from "../../packages/pawl/src/core/crash-point.ts";
import type { Log } from "../../packages/pawl/src/core/log.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import { createProgramWorkflows, type ProgramHost } from "../gen/program-workflow.ts";
import type { Recorder } from "../hist/record.ts";
import type { Script } from "../points/script.ts";
import type { ClientProcess } from "./client-port.ts";
import { createSimClient } from "./client-process.ts";
import { createFaultyStore, type StoreLink } from "./faulty-store.ts";
import { createFaultyTransactions } from "./faulty-transactions.ts";
import { Nemesis, type Life } from "./nemesis.ts";
import type { Plan } from "./plan.ts";
import type { Rng } from "./rng.ts";
import type { SimDatabase } from "./sim-database.ts";
import { passages, SimProcess } from "./sim-process.ts";
import { createTenures } from "./tenures.ts";
import { createSimWorker, type ProcessSeams } from "./worker-process.ts";
import type { World } from "./world.ts";

export interface PopulationParts {
  readonly world: World;
  readonly rng: Rng;
  readonly plan: Plan;
  readonly healAtMs: number;
  readonly script?: Script | undefined;
  readonly recorder: Recorder;
  /** The store as this process's calls reach it. */
  readonly storeFor: (process: string) => Store;
  readonly database: SimDatabase;
  readonly hostFor: (process: SimProcess) => ProgramHost;
  readonly landed: (process: string, kind: string) => void;
  /** Something happened in a process that should never happen. */
  readonly unforeseen: (what: string, error: unknown) => void;
}

/** For how many leases a process is paused where the script says so: others take over, and it comes back meanwhile. */
const longerThanLease = 1.7;

/** The processes of a world: workers and clients, each with its nemesis. */
export class Population {
  readonly #parts: PopulationParts;
  readonly #clients: Nemesis<ClientLife>[] = [];
  readonly #workers: Nemesis<WorkerLife>[] = [];

  constructor(parts: PopulationParts) {
    this.#parts = parts;
    const { workers, clients } = parts.plan;
    for (let i = 0; i < workers; i++) this.#addWorker(`w${i}`);
    for (let i = 0; i < clients; i++)
      this.#clients.push(this.#haunt(`c${i}`, (seams) => this.#startClient(seams)));
  }

  /** Some client process that is alive, or null while there is none. */
  findClient(rng: Rng): ClientProcess | null {
    const alive = [...this.#clients, ...this.#workers].flatMap(({ life }) => life?.client ?? []);
    return alive.length === 0 ? null : rng.pick(alive);
  }

  /** A run was claimed that had been held before. */
  noteTakeover(): void {
    for (const worker of this.#workers) worker.wakeZombie();
  }

  /** Whoever is paused goes on. Answers whether anybody was. */
  resumeAll(): boolean {
    const paused = [...this.#workers, ...this.#clients].flatMap(({ life }) =>
      life?.process.isPaused === true ? [life.process] : [],
    );
    for (const process of paused) process.resume();
    return paused.length > 0;
  }

  #addWorker(name: string): void {
    const { rng, plan, healAtMs, world } = this.#parts;
    const { point, atPoint, pointRate } = plan.processes;
    const chance = rng.fork(`${name} point`);
    const reach = (reached: CrashPoint): void => {
      const harm = world.nowMs < healAtMs ? (this.#parts.script?.atPoint(reached) ?? null) : null;
      if (harm === "crash") nemesis.kill(`crash at ${reached}`);
      if (harm === "pause") nemesis.pause(`pause at ${reached}`, longerThanLease * plan.leaseMs);
      if (reached !== point || world.nowMs >= healAtMs || !chance.chance(pointRate)) return;
      if (atPoint === "crash") nemesis.kill(`crash at ${point}`);
      else nemesis.pause(`pause at ${point}`, plan.leaseMs * chance.between(1, 4));
    };
    const deploys = plan.isDeployed ? this.#drawDeploys(name) : [];
    const isChanged = (): boolean =>
      !plan.isDeployed || deploys.filter((at) => at <= world.nowMs).length % 2 > 0;
    const nemesis: Nemesis<WorkerLife> = this.#haunt(name, (seams) =>
      this.#startWorker(seams, reach, isChanged()),
    );
    this.#workers.push(nemesis);
    for (const at of deploys.filter((time) => time > world.nowMs))
      world.after(at - world.nowMs, () => nemesis.replace("deploy"));
  }

  /**
   * When the worker's code is changed, and perhaps back for a while. The last old one goes once nothing that it said is
   * still on its way: the new one then looks after what does not fit old code.
   */
  #drawDeploys(name: string): readonly number[] {
    const { rng, plan, healAtMs, world } = this.#parts;
    const chance = rng.fork(`${name} deploys`);
    const count = chance.chance(0.6) ? 3 : 1;
    const drawn = Array.from({ length: count }, () => world.nowMs + chance.next() * plan.faultMs);
    // Some have new code from the beginning, and are turned back first.
    if (count > 1 && chance.chance(0.6)) drawn[1] = world.nowMs;
    const last = healAtMs + 2 * plan.latencyMs + 1;
    return (name === "w0" ? [last, ...drawn.slice(1)] : drawn).toSorted((a, b) => a - b);
  }

  #startWorker(seams: ProcessSeams, reach: Probe, isChanged: boolean): WorkerLife {
    const { plan, hostFor, unforeseen } = this.#parts;
    const { process } = seams;
    const probe: Probe = (point) => {
      if (process.isAlive && !process.isPaused) reach(point);
    };
    const tenures = createTenures();
    const { transactorOf } = seams.transactions;
    const host = {
      ...hostFor(process),
      epochNow: tenures.epochOf,
      transactorOf,
      isChanged,
      unforeseen: (what: string) => (process.isAlive ? unforeseen(what, null) : undefined),
    };
    const workflows = createProgramWorkflows(host, plan);
    const worker = createSimWorker(seams, plan, probe, [...workflows.values()], tenures);
    const start = (): void => {
      // A process that cannot reach the store at first is started again, as a supervisor would.
      worker.start().catch(() => process.timers.after(plan.leaseMs / 4, start));
    };
    start();
    const stop = (): Promise<void> => worker.stop({ timeout: plan.leaseMs });
    // It shares the worker's store, which takes note of what is held.
    const client = plan.startsAtWorkers
      ? this.#createClient({ ...seams, store: tenures.watch(seams.store) })
      : null;
    return {
      process,
      stop: () => stop().catch((error: unknown) => unforeseen("A worker did not stop", error)),
      client,
    };
  }

  #startClient(seams: ProcessSeams): ClientLife {
    return { process: seams.process, stop: null, client: this.#createClient(seams) };
  }

  #createClient(seams: ProcessSeams): ClientProcess {
    const { process } = seams;
    const { plan, hostFor } = this.#parts;
    const workflows = createProgramWorkflows(hostFor(process), plan);
    const died = new Promise<void>((resolve) => {
      process.onKill(resolve);
    });
    return { name: process.name, port: createSimClient(seams, workflows, plan), died };
  }

  #haunt<L extends Life>(name: string, start: (seams: ProcessSeams) => L): Nemesis<L> {
    const { world, rng, plan, healAtMs, landed } = this.#parts;
    const link = {
      crash: () => nemesis.kill("kill"),
      pause: () => nemesis.pause("pause longer than a lease", longerThanLease * plan.leaseMs),
    };
    const nemesis = new Nemesis({
      world,
      rng: rng.fork(name),
      plan,
      healAtMs,
      landed: (kind) => landed(name, kind),
      start: (number) => start(this.#startProcess(`${name}.${number}`, link)),
    });
    return nemesis;
  }

  #startProcess(name: string, harms: Pick<StoreLink, "crash" | "pause">): ProcessSeams {
    const { world, plan, healAtMs, recorder, landed, script } = this.#parts;
    const role = name.startsWith("w") ? "worker" : "client";
    const rng = this.#parts.rng.fork(name);
    const process = new SimProcess(name, world, {
      skewMs: rng.between(-plan.skewMs, plan.skewMs),
      drift: rng.between(0.98, 1.02),
      attendsFirst: rng.pick(passages),
    });
    const reliable = this.#parts.storeFor(name);
    const link: Omit<StoreLink, "rng"> = {
      world,
      process,
      recorder,
      plan,
      healAtMs,
      landed: (kind) => landed(name, kind),
      scripted: (call: string) => script?.atCall(role, call) ?? null,
      ...harms,
    };
    const store = createFaultyStore(reliable, { ...link, rng: rng.fork("link") });
    const transactions = createFaultyTransactions(this.#parts.database, reliable, {
      ...link,
      rng: rng.fork("transactions"),
    });
    const log = this.#logOf(process);
    return {
      process,
      store,
      transactions,
      rng: rng.fork("own"),
      log,
      takers: new Set(),
      audiences: new Set(),
    };
  }

  #logOf(process: SimProcess): Log {
    const { recorder, unforeseen } = this.#parts;
    const write =
      (level: string): Log["info"] =>
      (message, fields) =>
        recorder.note(() => `${process.name} ${level}: ${message} ${JSON.stringify(fields ?? {})}`);
    return {
      debug: write("debug"),
      info: write("info"),
      warn: write("warn"),
      error(message, fields) {
        write("error")(message, fields);
        if (process.isAlive && !foreseen.some((text) => message.startsWith(text)))
          unforeseen(`${process.name} logged an error: ${message}`, fields?.["error"]);
      },
    };
  }
}

/** What the engine logs of a run whose program lets it fail, not be undone, or not fit: the history says whether it should. */
const foreseen: readonly string[] = [
  "The run has failed.",
  "A step could not be undone.",
  "The code no longer fits the run's history",
];

interface WorkerLife extends Life {
  readonly client: ClientProcess | null;
}

interface ClientLife extends Life {
  readonly client: ClientProcess;
}
