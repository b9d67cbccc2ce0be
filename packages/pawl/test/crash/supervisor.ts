import type { Crew } from "./crew.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** Keeps so many workers at work: one that ends is replaced at once, as a service manager does. */
export class Supervisor implements AsyncDisposable {
  readonly #crew: Crew;
  readonly #places = new Set<Promise<void>>();
  #isOver = false;
  /** How many have ended. */
  ends = 0;

  constructor(crew: Crew) {
    this.#crew = crew;
  }

  async start(workers: number): Promise<void> {
    this.#crew.prepare(2 * workers);
    const hired = await Promise.all(Array.from({ length: workers }, () => this.#crew.hire()));
    for (const worker of hired) this.#places.add(this.#keep(worker));
  }

  async #keep(worker: WorkerProcess): Promise<void> {
    for (let current: WorkerProcess | null = worker; current !== null;) {
      await current.exited();
      this.ends += 1;
      current = await this.#replacement();
    }
  }

  /** One that dies while it starts is replaced as well. */
  async #replacement(): Promise<WorkerProcess | null> {
    while (!this.#isOver) {
      try {
        this.#crew.prepare(1);
        return await this.#crew.hire();
      } catch {
        this.ends += 1;
      }
    }
    return null;
  }

  /** Ends the supervision, not the workers: those belong to the crew, which must end after this. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    return Promise.resolve();
  }
}
