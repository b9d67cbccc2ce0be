import { backOffMs } from "./back-off.ts";
import { PawlError } from "./error.ts";
import type { Random } from "./random.ts";
import { delay, type Timers } from "./timers.ts";

/**
 * Calls again while the store is unavailable: 5 times within some 3 seconds, then rejects with the last error. Only
 * for what is safe to repeat, since a call that failed may have happened.
 */
export async function retryUnavailable<Answer>(
  seams: { readonly timers: Timers; readonly random: Random },
  call: () => Promise<Answer>,
): Promise<Answer> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await call();
    } catch (error) {
      if (failures === 5 || !PawlError.is(error, "STORE_UNAVAILABLE")) throw error;
      await delay(seams.timers, backOffMs(failures, seams.random, 200, 2_000));
    }
  }
}
