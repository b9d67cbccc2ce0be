import type { Timers } from "../core/timers.ts";

/** Wakes one waiter. Ringing while nobody waits makes the next wait end at once. */
export interface Bell {
  ring(): void;
  /** Resolves when rung: true; or after `ms`: false. */
  wait(ms?: number): Promise<boolean>;
}

export function createBell(timers: Timers): Bell {
  return new OneBell(timers);
}

class OneBell implements Bell {
  readonly #timers: Timers;
  #isRung = false;
  #wake: ((rung: boolean) => void) | null = null;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  ring(): void {
    if (this.#wake === null) this.#isRung = true;
    else this.#wake(true);
  }

  wait(ms?: number): Promise<boolean> {
    if (this.#isRung) {
      this.#isRung = false;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const cancel = ms === undefined ? null : this.#timers.after(ms, () => this.#wake?.(false));
      this.#wake = (rung) => {
        this.#wake = null;
        cancel?.();
        resolve(rung);
      };
    });
  }
}
