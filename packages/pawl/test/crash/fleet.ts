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
  readonly #crews: readonly Crew[];
  readonly #working = new Set<WorkerProcess>();
  readonly #returning = new Set<Promise<void>>();
  #hired = 0;

  /** Workers reach their database by these routes in turn. */
  constructor(scene: Scene, routes: readonly Partial<Pick<ProcessSettings, "url">>[] = [{}]) {
    this.#scene = scene;
    this.#crews = routes.map((urls) => scene.crew({}, urls));
  }

  async start(): Promise<void> {
    for (let n = 0; n < 5; n++) this.#crews[n % this.#crews.length]!.prepare(1);
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

  /** Stops a worker, as above, for so long. Answers whether there was one. */
  async freeze(ms: number): Promise<boolean> {
    const victim = await this.#findVictim();
    if (victim === null) return false;
    this.#working.delete(victim);
    victim.signal("SIGSTOP");
    const wasHolding = (await this.#holders()).has(victim.pid);
    const thaw = async (): Promise<void> => {
      await pause(ms);
      victim.signal("SIGCONT");
      this.#working.add(victim);
    };
    this.#return(thaw());
    return wasHolding;
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
    const crew = this.#crews[this.#hired++ % this.#crews.length]!;
    const hiring = crew.hire();
    if (this.#hired > 3) crew.prepare(1);
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
      `select distinct w.pid from ${schema}.lease l join ${schema}.worker w on w.id = l.worker_id`,
    );
    return new Set(rows.map(({ pid }) => pid));
  }
}
