import { expect } from "vitest";
import type { Pawl, RunHandle } from "../../src/index.ts";
import { startOrder } from "./orders.ts";
import { outputsOf } from "./outputs-of.ts";
import type { Scene } from "./scene.ts";
import { expectedOutput, type OrderOutput } from "./workflows.ts";

/** Orders, so many under way at any time, children not counted: a slow machine gets fewer, not a pile. */
export class Traffic {
  readonly #scene: Scene;
  readonly #pawl: Pawl;
  readonly #unfinished = new Set<RunHandle<OrderOutput>>();
  readonly #going: Promise<unknown>;
  #isOver = false;
  /** How many have been started. */
  started = 0;

  constructor(scene: Scene, pawl: Pawl, inFlight: number) {
    this.#scene = scene;
    this.#pawl = pawl;
    this.#going = Promise.all(Array.from({ length: inFlight }, () => this.#keepOneGoing()));
    // What goes wrong is told at the end.
    void this.#going.catch(() => {});
  }

  async #keepOneGoing(): Promise<void> {
    while (!this.#isOver) {
      const { n, run } = await startOrder(this.#scene, this.#pawl, this.started++);
      this.#unfinished.add(run);
      expect(await run.result()).toEqual(expectedOutput(n));
      this.#unfinished.delete(run);
    }
  }

  /** Starts no more. Resolves when all have completed, each with its own output. */
  async end(withinMs: number): Promise<void> {
    this.#isOver = true;
    await outputsOf(this.#scene, [...this.#unfinished], withinMs);
    await this.#going;
  }
}
