import { stat, utimes } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

// Shown on a file, by the time of its last change: to those in another container or on another
// machine with whom the file is all we share.

/** How often to beat. */
export const beatMs = 1_000;
const watchMs = 3 * beatMs;
const pollMs = beatMs / 4;
const longDeadMs = 60_000;

/** Beats once. */
export async function beat(file: string): Promise<void> {
  await touch(file, new Date());
}

/** Shows that there will be no more beats, so that nobody needs to watch for one. */
export async function endHeartbeat(file: string): Promise<void> {
  await touch(file, new Date(0));
}

/** Whether there is another beat. Watches for a few seconds unless the last was long ago. */
export async function isBeating(file: string): Promise<boolean> {
  const last = await beatenAt(file);
  if (Math.abs(Date.now() - last) > longDeadMs) return false;
  for (let waitedMs = 0; waitedMs < watchMs; waitedMs += pollMs) {
    await delay(pollMs);
    if ((await beatenAt(file)) > last) return true;
  }
  return false;
}

async function beatenAt(file: string): Promise<number> {
  const found = await stat(file).catch(() => undefined);
  return found?.mtimeMs ?? 0;
}

/** A file that has gone with its folder has nobody left to show it to. */
async function touch(file: string, at: Date): Promise<void> {
  await utimes(file, at, at).catch(() => undefined);
}
