import { setTimeout as pause } from "node:timers/promises";
import { PawlError, type Pawl } from "../../packages/pawl/src/index.ts";
import { chain } from "./workflows.ts";

/** Runs of a few steps, so many a second whether earlier ones have ended or not. Notes what was acknowledged. */
export class Load {
  readonly started: string[] = [];
  /** Starts that were not acknowledged: they may be there, or not. */
  refused = 0;
  readonly #pawl: Pawl;
  readonly #going: Promise<void>;
  readonly #perSecond: number;
  readonly #stepMs: number;
  #isOver = false;

  /** @param stepMs how long each step and each transaction takes */
  constructor(pawl: Pawl, perSecond: number, stepMs = 0) {
    this.#pawl = pawl;
    this.#stepMs = stepMs;
    this.#perSecond = perSecond;
    this.#going = this.#startOnAndOn();
    // What goes wrong is told at the end.
    void this.#going.catch(() => {});
  }

  async #startOnAndOn(): Promise<void> {
    const tickMs = 50;
    let owed = 0;
    for (let last = performance.now(); !this.#isOver;) {
      const now = performance.now();
      owed += ((now - last) / 1_000) * this.#perSecond;
      last = now;
      const count = Math.floor(owed);
      owed -= count;
      if (count > 0) await this.#start(count);
      await pause(tickMs);
    }
  }

  async #start(count: number): Promise<void> {
    const items = Array.from({ length: count }, () => ({ input: { steps: 3, stepMs: this.#stepMs } }));
    try {
      const runs = await this.#pawl.startMany(chain, items);
      this.started.push(...runs.map(({ id }) => id));
    } catch (error) {
      if (!PawlError.is(error, "STORE_UNAVAILABLE")) throw error;
      this.refused += count;
    }
  }

  /** Starts no more. @throws what went wrong, other than that the database was away */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#going;
  }
}
