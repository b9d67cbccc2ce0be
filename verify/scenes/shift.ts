import type { Ground } from "./ground.ts";
import type { Hand } from "./hand.ts";

/** Keeps so many workers at work: one that ends is replaced at once, as a service manager does. */
export class Shift implements AsyncDisposable {
  readonly #ground: Ground;
  readonly #options: Parameters<Ground["hire"]>[0];
  readonly #places: Promise<void>[] = [];
  #isOver = false;
  /** How many have ended. */
  ends = 0;

  constructor(ground: Ground, workers: number, options: Parameters<Ground["hire"]>[0] = {}) {
    this.#ground = ground;
    this.#options = options;
    for (let n = 0; n < workers; n++) this.#places.push(this.#keep());
  }

  async #keep(): Promise<void> {
    while (!this.#isOver) {
      const hand: Hand | null = await this.#ground.hire(this.#options).catch(() => null);
      await hand?.exited();
      this.ends += 1;
    }
  }

  /** Ends the supervision; the workers end with their ground. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    return Promise.resolve();
  }
}
