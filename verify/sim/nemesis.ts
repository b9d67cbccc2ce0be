import type { Plan } from "./plan.ts";
import type { Rng } from "./rng.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** A process from its start to its end. */
export interface Life {
  readonly process: SimProcess;
  /** Ends it in good order; resolves when it has ended. Null: this kind of process just dies. */
  readonly stop: (() => Promise<void>) | null;
}

export interface NemesisParts<L extends Life> {
  readonly world: World;
  readonly rng: Rng;
  readonly plan: Plan;
  readonly healAtMs: number;
  readonly landed: (kind: string) => void;
  /** Starts a process with a name that none had before. */
  readonly start: (number: number) => L;
}

/** Keeps one process running, apart from pausing, killing and stopping it now and then until the world heals. */
export class Nemesis<L extends Life> {
  readonly #parts: NemesisParts<L>;
  #life: L | null = null;
  #starts = 0;

  constructor(parts: NemesisParts<L>) {
    this.#parts = parts;
    this.#start();
    const { pauseMs, killMs, stopMs } = parts.plan.processes;
    this.#haunt(pauseMs, () => this.#pauseAtRandom());
    this.#haunt(killMs, () => this.kill("kill"));
    this.#haunt(stopMs, () => this.#stop("stop"));
    parts.world.after(parts.healAtMs - parts.world.nowMs, () => this.#heal());
  }

  get life(): L | null {
    return this.#life;
  }

  /** Kills the process here and now, and starts it anew some time later. */
  kill(kind: string): void {
    const life = this.#life;
    if (life === null) return;
    this.#parts.landed(kind);
    life.process.kill();
    this.#life = null;
    this.#startLater();
  }

  /** Pauses the process here and now, for so long or until the world heals. */
  pause(kind: string, ms: number): void {
    const { world, healAtMs } = this.#parts;
    const life = this.#life;
    if (life === null || life.process.isPaused) return;
    this.#parts.landed(kind);
    life.process.pause();
    world.after(Math.min(ms, healAtMs - world.nowMs), () => life.process.resume());
  }

  /** Another process has taken a run over: a process paused for more than a lease comes back just then, or soon after. */
  wakeZombie(): void {
    const { world, rng } = this.#parts;
    const process = this.#life?.process;
    if (process?.isPaused === true && rng.chance(0.7)) world.after(rng.next() * 10, () => process.resume());
  }

  #pauseAtRandom(): void {
    const { rng, plan } = this.#parts;
    const ms = rng.next() * rng.pick([0.1, 1, 5]) * plan.leaseMs;
    this.pause(ms > plan.leaseMs ? "pause longer than a lease" : "pause shorter than a lease", ms);
  }

  #start(): void {
    this.#life ??= this.#parts.start(this.#starts++);
  }

  #startLater(): void {
    const { world, rng, plan, healAtMs } = this.#parts;
    const delayMs = rng.next() * rng.pick([0, 0.1, 2]) * plan.leaseMs;
    world.after(Math.min(delayMs, Math.max(0, healAtMs - world.nowMs)), () => this.#start());
  }

  /** Does it again and again, at random times with this mean, until the world heals. */
  #haunt(meanMs: number | null, act: () => void): void {
    if (meanMs === null) return;
    const { world, rng, healAtMs } = this.#parts;
    world.after(-Math.log(1 - rng.next()) * meanMs, () => {
      if (world.nowMs >= healAtMs) return;
      act();
      this.#haunt(meanMs, act);
    });
  }

  /** Replaces the process: in good order if it can. */
  replace(kind: string): void {
    if (this.#life?.process.isPaused === true) this.kill(kind);
    else this.#stop(kind);
  }

  #stop(kind: string): void {
    const life = this.#life;
    if (life === null || life.stop === null || life.process.isPaused) return;
    this.#parts.landed(kind);
    const stopped = (): void => {
      if (this.#life !== life) return;
      this.#life = null;
      life.process.kill();
      this.#startLater();
    };
    void life.stop().then(stopped);
  }

  #heal(): void {
    this.#life?.process.resume();
    this.#start();
  }
}
