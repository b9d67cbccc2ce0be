import type { Timers } from "../core/timers.ts";

/** What became of a COMMIT that was given up is found out. */
const commitPatienceMs = 5_000;

/** How long an answer is waited for: a library may wait for ever where its connection is lost. */
interface Patience {
  begin(): void;
  end(): void;
  /** Rejects when it has lasted too long. */
  readonly isOver: Promise<never>;
}

export function createPatience(timers: Timers, ms = commitPatienceMs): Patience {
  let giveUp: (reason: Error) => void = () => {};
  let cancel = (): void => {};
  const isOver = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  isOver.catch(() => {});
  return {
    begin() {
      cancel = timers.after(ms, () => giveUp(new Error(`the database gave no answer for ${ms} ms`)));
    },
    end: () => cancel(),
    isOver,
  };
}
