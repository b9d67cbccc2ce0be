import { setTimeout as pause } from "node:timers/promises";
import type { Crew } from "./crew.ts";
import type { ProcessSettings } from "./messages.ts";
import type { Scene } from "./scene.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** A worker died that held runs. */
export interface Kill {
  readonly pid: number;
  readonly at: number;
}

/** Three workers. When one of them is killed another takes its place. */
export class Fleet {
  readonly #scene: Scene;
  readonly #crew: Crew;
  readonly #working = new Set<WorkerProcess>();
  readonly #returning: Promise<void>[] = [];

  constructor(scene: Scene, urls: Partial<Pick<ProcessSettings, "url">> = {}) {
    this.#scene = scene;
    this.#crew = scene.crew({}, urls);
  }

  async start(): Promise<void> {
    this.#crew.prepare(5);
    await Promise.all([this.#hire(), this.#hire(), this.#hire()]);
  }

  /** Kills a worker that holds runs and has a peer beside it. Answers null if it had just let go of them all. */
  async kill(): Promise<Kill | null> {
    const victim = await this.#findVictim();
    await victim.kill();
    // What it holds now that it is dead was in its hands when it died.
    const wasHolding = (await this.#holders()).has(victim.pid);
    const at = await this.#scene.now();
    this.#working.delete(victim);
    this.#crew.prepare(1);
    this.#returning.push(this.#hire());
    return wasHolding ? { pid: victim.pid, at } : null;
  }

  /** Stops a worker, as above, for so long. */
  async freeze(ms: number): Promise<void> {
    const victim = await this.#findVictim();
    this.#working.delete(victim);
    victim.signal("SIGSTOP");
    const thaw = async (): Promise<void> => {
      await pause(ms);
      victim.signal("SIGCONT");
      this.#working.add(victim);
    };
    this.#returning.push(thaw());
  }

  /** Resolves when three are at work again. */
  async isComplete(): Promise<void> {
    await Promise.all(this.#returning);
  }

  async #hire(): Promise<void> {
    this.#working.add(await this.#crew.hire());
  }

  async #findVictim(): Promise<WorkerProcess> {
    for (;;) {
      const holders = await this.#holders();
      const victims = [...this.#working].filter(({ pid }) => this.#working.size > 1 && holders.has(pid));
      const victim = victims[Math.floor(this.#scene.random.next() * victims.length)];
      if (victim !== undefined) return victim;
      await pause(50);
    }
  }

  async #holders(): Promise<ReadonlySet<number>> {
    const { pool, schema } = this.#scene;
    const { rows } = await pool.query<{ pid: number }>(
      `select distinct w.pid from ${schema}.lease l join ${schema}.worker w on w.id = l.worker_id`,
    );
    return new Set(rows.map(({ pid }) => pid));
  }
}
