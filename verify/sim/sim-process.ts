import type { Clock } from "../../packages/pawl/src/core/clock.ts";
import type { Timers } from "../../packages/pawl/src/core/timers.ts";
import type { World } from "./world.ts";

/**
 * What passes between a process and the world: what comes in and makes its code continue, and the calls that go out.
 * Holding these back holds the process.
 */
export const passages = ["timer", "answer", "hint", "settle", "call"] as const;
type Passage = (typeof passages)[number];

interface Deferred {
  readonly passage: Passage;
  readonly act: () => void;
}

export interface ProcessSettings {
  /** Added to true time by this process's clock. */
  readonly skewMs: number;
  /** How much longer (above 1) or shorter its timers take than they should. */
  readonly drift: number;
  /** What a resumed process attends to first, among all that came while it was paused. */
  readonly attendsFirst: Passage;
}

/** A process of the simulated world: it can be paused, resumed and killed, and its clock is wrong. */
export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly #world: World;
  readonly #settings: ProcessSettings;
  #isAlive = true;
  #isPaused = false;
  #deferred: Deferred[] = [];
  #onKill: () => void = () => {};

  constructor(name: string, world: World, settings: ProcessSettings) {
    this.name = name;
    this.#world = world;
    this.#settings = settings;
    this.clock = { now: () => Math.floor(world.nowMs + settings.skewMs) };
    this.timers = {
      after: (ms, callback) => {
        let isOff = false;
        const fire = (): void => {
          if (!isOff) callback();
        };
        const callOff = world.after(ms * settings.drift, () => this.pass("timer", fire));
        return () => {
          isOff = true;
          callOff();
        };
      },
    };
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Acts at once if the process is running, later if it is paused, never if it is dead. */
  pass(passage: Passage, act: () => void): void {
    if (!this.#isAlive) return;
    if (this.#isPaused) this.#deferred.push({ passage, act });
    else act();
  }

  /** Resolves when it has worked for so long. */
  work(ms: number): Promise<void> {
    this.#world.convey(ms * this.#settings.drift, () => {});
    return new Promise((resolve) => {
      this.timers.after(ms, resolve);
    });
  }

  /** Resolves once all code of this process has come to rest. */
  settle(): Promise<void> {
    return new Promise((resolve) => {
      this.#world.after(0, () => this.pass("settle", resolve));
    });
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** Everything that came meanwhile comes now, at once. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    const deferred = this.#deferred;
    this.#deferred = [];
    const { attendsFirst } = this.#settings;
    const ordered = [
      ...deferred.filter(({ passage }) => passage === attendsFirst),
      ...deferred.filter(({ passage }) => passage !== attendsFirst),
    ];
    for (const { passage, act } of ordered) this.#world.after(0, () => this.pass(passage, act));
  }

  /** Tells somebody outside when it is killed. */
  onKill(act: () => void): void {
    this.#onKill = act;
  }

  /** Nothing of it continues, ever. Code on the stack runs on to its next wait, but can no longer reach anything. */
  kill(): void {
    this.#isAlive = false;
    this.#deferred = [];
    this.#onKill();
  }
}
