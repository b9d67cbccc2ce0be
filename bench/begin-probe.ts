import { setTimeout as pause } from "node:timers/promises";

/** Long enough for the product to complete the job and go idle before the next one. */
export const restMs = 50;

/** Times one job after the other: from the call of start until its handler begins, and until `start` is done. */
export interface BeginProbe {
  /** To be called by the handler, first thing. */
  begin(): void;
  /** `start` resolves when the caller has what it waits for: the result, where the product has one. */
  time(count: number, start: (order: number) => Promise<unknown>): Promise<Timed>;
}

interface Timed {
  readonly begins: readonly number[];
  readonly ends: readonly number[];
}

export function createBeginProbe(): BeginProbe {
  let begun: (() => void) | null = null;
  let next = 0;

  async function timeOne(start: (order: number) => Promise<unknown>): Promise<readonly [number, number]> {
    const beginsAt = new Promise<number>((resolve) => {
      begun = () => resolve(performance.now());
    });
    const startedAt = performance.now();
    await start(next++);
    const endsAt = performance.now();
    return [(await beginsAt) - startedAt, endsAt - startedAt];
  }

  return {
    begin() {
      begun?.();
    },
    async time(count, start) {
      const begins: number[] = [];
      const ends: number[] = [];
      for (let done = 0; done < count; done++) {
        const [begin, end] = await timeOne(start);
        begins.push(begin);
        ends.push(end);
        await pause(restMs);
      }
      begun = null;
      return { begins, ends };
    },
  };
}
