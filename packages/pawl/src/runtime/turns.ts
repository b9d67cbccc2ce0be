import type { Timers } from "../core/timers.ts";

/** Somebody else's turn has lasted too long. */
export class TurnMissed extends Error {
  override readonly name = "TurnMissed";
}

/** One at a time. Whoever takes a turn is answered what ends it. */
export interface Turns {
  take(): Promise<() => void>;
  /**
   * `mayTake`: asked when it could be taken; where it says no, another turn comes first. `taken`: called in the instant it is.
   * @throws {TurnMissed}
   */
  takeWithin(ms: number, mayTake: () => boolean, taken: () => void): Promise<() => void>;
}

export function createTurns(timers: Timers): Turns {
  let turn: Promise<void> | null = null;
  const passed = new Set<() => void>();

  const nextPassed = (): Promise<void> => new Promise((resolve) => void passed.add(resolve));

  const take = async (
    isGivenUp = (): boolean => false,
    mayTake = (): boolean => true,
  ): Promise<() => void> => {
    while (turn !== null || !mayTake()) {
      await (turn ?? nextPassed());
      if (isGivenUp()) return () => {};
    }
    let end = (): void => {};
    turn = new Promise((resolve) => {
      end = () => {
        turn = null;
        resolve();
        for (const pass of passed) pass();
        passed.clear();
      };
    });
    return end;
  };

  return {
    take: () => take(),
    takeWithin: (ms, mayTake, taken) =>
      new Promise((resolve, reject) => {
        let isMissed = false;
        const cancel = timers.after(ms, () => {
          isMissed = true;
          reject(new TurnMissed(`another turn lasted for ${ms} ms`));
        });
        const may = (): boolean => {
          if (!mayTake()) return false;
          taken();
          return true;
        };
        void take(() => isMissed, may).then((end) => {
          cancel();
          resolve(end);
        });
      }),
  };
}
