import type { LogLine, ProcessSettings } from "./messages.ts";
import { WorkerProcess } from "./worker-process.ts";

/** The processes of one test. */
export class Crew implements AsyncDisposable {
  readonly #settings: ProcessSettings;
  readonly #all: WorkerProcess[] = [];
  readonly #standby: Promise<WorkerProcess>[] = [];
  readonly #killAll = (): void => {
    for (const member of this.#all) member.signal("SIGKILL");
  };

  constructor(settings: ProcessSettings) {
    this.#settings = settings;
    // Should the test's own process end first.
    process.once("exit", this.#killAll);
  }

  /** Log lines of all processes. */
  get logs(): readonly LogLine[] {
    return this.#all.flatMap((member) => member.logs);
  }

  /** What became of each process, for people. */
  get states(): readonly string[] {
    return this.#all.map(({ state }) => state);
  }

  /** Processes that ended by themselves, and not well. */
  get crashed(): readonly number[] {
    return this.#all.filter(({ hasCrashed }) => hasCrashed).map(({ pid }) => pid);
  }

  /** Lets so many processes load their code and stand by, to be at work sooner. */
  prepare(count: number): void {
    for (let n = 0; n < count; n++) this.#standby.push(this.#spawn());
  }

  /** A process that is up and does nothing yet. */
  async next(): Promise<WorkerProcess> {
    return this.#standby.shift() ?? this.#spawn();
  }

  /** A process that works. */
  async hire(): Promise<WorkerProcess> {
    const member = await this.next();
    await member.work();
    return member;
  }

  async #spawn(): Promise<WorkerProcess> {
    const member = new WorkerProcess(this.#settings);
    this.#all.push(member);
    await member.hear("up");
    return member;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.off("exit", this.#killAll);
    const settled = Promise.allSettled(this.#standby);
    await Promise.all(this.#all.map((member) => member.kill()));
    await settled;
  }
}
