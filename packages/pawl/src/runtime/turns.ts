import type { Timers } from "../core/timers.ts";

/** Somebody else's turn has lasted too long. */
export class TurnMissed extends Error {
  override readonly name = "TurnMissed";
}

/** One at a time. Whoever takes a turn is answered what ends it. */
export interface Turns {
  take(): Promise<() => void>;
  /** @throws {TurnMissed} */
  takeWithin(ms: number): Promise<() => void>;
}

export function createTurns(timers: Timers): Turns {
  let turn: Promise<void> | null = null;

  const take = async (isGivenUp = (): boolean => false): Promise<() => void> => {
    while (turn !== null) {
      await turn;
      if (isGivenUp()) return () => {};
    }
    let end = (): void => {};
    turn = new Promise((resolve) => {
      end = () => {
        turn = null;
        resolve();
      };
    });
    return end;
  };

  return {
    take: () => take(),
    takeWithin: (ms) =>
      new Promise((resolve, reject) => {
        let isMissed = false;
        const cancel = timers.after(ms, () => {
          isMissed = true;
          reject(new TurnMissed(`another turn lasted for ${ms} ms`));
        });
        void take(() => isMissed).then((end) => {
          cancel();
          resolve(end);
        });
      }),
  };
}
