import type { Ground } from "../scenes/ground.ts";
import { chain } from "../scenes/workflows.ts";

/** Runs a second, with more of them waiting than can be taken. */
export async function drainRate(ground: Ground): Promise<number> {
  const items = Array.from({ length: 500 }, () => ({ input: { steps: 3, stepMs: 0 } }));
  let ms = 0;
  // The first time plans are made, and connections.
  for (let round = 0; round < 2; round++) {
    await ground.pawl.startMany(chain, items);
    ms = await ground.drain(120_000);
  }
  return (1_000 * items.length) / ms;
}
