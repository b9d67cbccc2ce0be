import type { Crew } from "./crew.ts";
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
  readonly #returning = new Set<Promise<void>>();
  #hired = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
    this.#crew = scene.crew();
  }

  async start(): Promise<void> {
    this.#crew.prepare(5);
    await Promise.all([this.#hire(), this.#hire(), this.#hire()]);
  }

  /**
   * Kills a worker that holds runs and has a peer beside it. Answers null if there is none, or if it had just let go of
   * them all: who waited here for one to come might wait for ever, since it comes with new runs.
   */
  async kill(): Promise<Kill | null> {
    const victim = await this.#findVictim();
    if (victim === null) return null;
    this.#working.delete(victim);
    await victim.kill();
    // What it holds now that it is dead was in its hands when it died.
    const wasHolding = (await this.#holders()).has(victim.pid);
    const at = await this.#scene.now();
    this.#return(this.#hire());
    return wasHolding ? { pid: victim.pid, at } : null;
  }

  /** Resolves when three are at work again. */
  async isComplete(): Promise<void> {
    await Promise.all(this.#returning);
  }

  #return(returning: Promise<void>): void {
    const owned = returning.then(() => void this.#returning.delete(owned));
    this.#returning.add(owned);
  }

  async #hire(): Promise<void> {
    this.#hired += 1;
    const hiring = this.#crew.hire();
    if (this.#hired > 3) this.#crew.prepare(1);
    this.#working.add(await hiring);
  }

  async #findVictim(): Promise<WorkerProcess | null> {
    while (this.#working.size < 2) await Promise.race(this.#returning);
    const holders = await this.#holders();
    const victims = [...this.#working].filter(({ pid }) => holders.has(pid));
    return victims[Math.floor(this.#scene.random.next() * victims.length)] ?? null;
  }

  async #holders(): Promise<ReadonlySet<number>> {
    const { pool, schema } = this.#scene;
    const { rows } = await pool.query<{ pid: number }>(
      `select distinct w.pid from ${schema}.live_runs l join ${schema}.worker w on w.id = l.worker_id`,
    );
    return new Set(rows.map(({ pid }) => pid));
  }
}
