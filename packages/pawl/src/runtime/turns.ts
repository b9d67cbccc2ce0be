import type { Timers } from "../core/timers.ts";

/** Somebody else's turn has lasted too long. */
export class TurnMissed extends Error {
  override readonly name = "TurnMissed";
}

/** One at a time. Whoever takes a turn ends it. */
export class Turns {
  readonly #timers: Timers;
  #isTaken = false;
  #waiting: (() => void)[] | null = null;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** False while somebody else has it. */
  takeNow(): boolean {
    if (this.#isTaken) return false;
    this.#isTaken = true;
    return true;
  }

  async take(): Promise<void> {
    await this.#take(
      () => false,
      () => true,
    );
  }

  /**
   * `mayTake`: asked when it could be taken; where it says no, another turn comes first. `taken`: called in the instant it is.
   * @throws {TurnMissed}
   */
  takeWithin(ms: number, mayTake: () => boolean, taken: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      let isMissed = false;
      const cancel = this.#timers.after(ms, () => {
        isMissed = true;
        reject(new TurnMissed(`another turn lasted for ${ms} ms`));
      });
      const may = (): boolean => {
        if (!mayTake()) return false;
        taken();
        return true;
      };
      void this.#take(() => isMissed, may).then(() => {
        cancel();
        resolve();
      });
    });
  }

  end(): void {
    this.#isTaken = false;
    const others = this.#waiting;
    if (others === null) return;
    this.#waiting = null;
    for (const look of others) look();
  }

  async #take(isGivenUp: () => boolean, mayTake: () => boolean): Promise<void> {
    while (this.#isTaken || !mayTake()) {
      await new Promise<void>((resolve) => void (this.#waiting ??= []).push(resolve));
      if (isGivenUp()) return;
    }
    this.#isTaken = true;
  }
}
