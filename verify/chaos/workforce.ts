import { ChaosWorker } from "./chaos-worker.ts";
import type { Command, Place, Report, WorkerSettings } from "./messages.ts";
import { monotonicMs } from "./monotonic.ts";
import type { WireProxy } from "./wire-proxy.ts";

/** A place where one worker works, by a way of its own to the database. */
export interface Post extends Place {
  readonly proxy: WireProxy;
  readonly isPooled: boolean;
}

/** Something that was done to a worker. Times are of the monotonic clock. */
export type Deed =
  | { readonly kind: "kill"; readonly pid: number; readonly at: number }
  | { readonly kind: "freeze"; readonly pid: number; readonly at: number; readonly until: number };

/** One line that a worker wrote to its log. */
export type LogLine = Report & { readonly kind: "log" } & { readonly pid: number };

interface WorkforceOptions {
  readonly path: string;
  readonly settings: WorkerSettings;
  readonly posts: readonly Post[];
  readonly spares: number;
  /** Keeps the ledger. */
  readonly hear: (pid: number, report: Report) => Command | null;
}

/** One worker at each post. When one dies another, which stood by, takes its place at once. */
export class Workforce {
  readonly #options: WorkforceOptions;
  readonly #all: ChaosWorker[] = [];
  readonly #spares: Promise<ChaosWorker>[] = [];
  /** Those that take runs, and are not stopped. */
  readonly #working = new Map<ChaosWorker, Post>();
  readonly #returning = new Set<Promise<void>>();
  readonly deeds: Deed[] = [];
  readonly logs: LogLine[] = [];
  readonly troubles: string[] = [];
  /** When a process found that runs were no longer its own. */
  readonly losses: { readonly pid: number; readonly at: number }[] = [];
  /** Processes by the post they worked at. */
  readonly postOf = new Map<number, Post>();
  #isOver = false;

  constructor(options: WorkforceOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { posts, spares } = this.#options;
    for (let n = 0; n < spares; n++) this.#prepare();
    await Promise.all(posts.map((post) => this.#man(post)));
  }

  get working(): readonly ChaosWorker[] {
    return [...this.#working.keys()];
  }

  /** Kills one; another takes its place. Answers null if there is none. */
  async kill(victim: ChaosWorker): Promise<number | null> {
    const post = this.#working.get(victim);
    if (post === undefined) return null;
    this.#working.delete(victim);
    const at = monotonicMs();
    await victim.kill();
    this.deeds.push({ kind: "kill", pid: victim.pid, at });
    this.#own(this.#man(post));
    return victim.pid;
  }

  /** Stops one until this resolves. */
  freeze(victim: ChaosWorker, isOver: () => Promise<void>): void {
    const post = this.#working.get(victim);
    if (post === undefined) return;
    this.#working.delete(victim);
    victim.freeze();
    const at = monotonicMs();
    const thaw = async (): Promise<void> => {
      await isOver();
      const until = monotonicMs();
      victim.thaw();
      this.deeds.push({ kind: "freeze", pid: victim.pid, at, until });
      this.#working.set(victim, post);
    };
    this.#own(thaw());
  }

  /** Resolves when there is one at work at every post. */
  async isComplete(): Promise<void> {
    while (this.#returning.size > 0) await Promise.all(this.#returning);
  }

  /** Processes that ended by themselves, or with an error. */
  get crashed(): readonly string[] {
    return this.#all
      .filter(({ hasCrashed }) => hasCrashed)
      .map(({ pid, errorOutput }) => `${pid}: ${errorOutput}`);
  }

  /** Lets each write a diagnostic report. */
  writeReports(fileOf: (pid: number) => string): void {
    for (const worker of this.#all)
      if (worker.isAlive) worker.tell({ kind: "report", file: fileOf(worker.pid) });
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.allSettled([...this.#spares, ...this.#returning]);
    await Promise.all(this.#all.filter(({ isAlive }) => isAlive).map((worker) => worker.kill()));
  }

  #own(returning: Promise<void>): void {
    const owned = returning.finally(() => void this.#returning.delete(owned));
    owned.catch((error: unknown) => this.troubles.push(String(error)));
    this.#returning.add(owned);
  }

  #prepare(): void {
    if (this.#isOver) return;
    const { path, settings } = this.#options;
    const spare = new ChaosWorker(path, settings, (report, worker) => this.#hear(report, worker));
    this.#all.push(spare);
    const ready = spare.hears("up").then(() => spare);
    ready.catch(() => {});
    this.#spares.push(ready);
  }

  async #man(post: Post): Promise<void> {
    if (this.#isOver) return;
    this.#prepare();
    const worker = await this.#spares.shift();
    if (worker === undefined) return;
    this.postOf.set(worker.pid, post);
    const { url, foreignUrl, skewMs } = post;
    const working = worker.hears("working");
    worker.tell({ kind: "work", place: { url, foreignUrl, skewMs } });
    await working;
    this.#working.set(worker, post);
  }

  #hear(report: Report, worker: ChaosWorker): void {
    const { pid } = worker;
    if (report.kind === "log") this.logs.push({ ...report, pid });
    else if (report.kind === "trouble") this.troubles.push(`${pid}: ${report.what}`);
    else if (report.kind === "lost") this.losses.push({ pid, at: report.at });
    const answer = this.#options.hear(pid, report);
    if (answer !== null) worker.tell(answer);
  }
}
