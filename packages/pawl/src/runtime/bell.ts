import type { Timers } from "../core/timers.ts";

/** Wakes one waiter. Ringing while nobody waits makes the next wait end at once. */
export interface Bell {
  ring(): void;
  /** Resolves when rung: true; or after `ms`: false. */
  wait(ms?: number): Promise<boolean>;
}

export function createBell(timers: Timers): Bell {
  let isRung = false;
  let wake: ((rung: boolean) => void) | null = null;
  return {
    ring() {
      isRung = true;
      wake?.(true);
    },
    async wait(ms) {
      const rung = isRung || (await waitOnce(ms));
      isRung = false;
      return rung;
    },
  };

  function waitOnce(ms: number | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = ms === undefined ? null : timers.after(ms, () => wake?.(false));
      wake = (rung) => {
        wake = null;
        cancel?.();
        resolve(rung);
      };
    });
  }
}
